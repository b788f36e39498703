//! Ending a run from outside at the right moment: waits until something can be seen, and strikes.

use std::path::Path;
use std::time::{Duration, SystemTime};

use alhena_testbed::Deadline;
use alhena_testbed::processes::{alive, signal};

use super::agent::mark;
use super::members::Team;
use super::place::Place;
use super::plan::{Blow, Moment, Plan, Stop, Target};
use super::trial::Started;

/// A moment that does not come within this is not waited for any longer.
const PATIENCE: Duration = Duration::from_secs(15);

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    pub blow: Blow,
    pub at: SystemTime,
    /// Whether the agent was at work: before, it is asked for its version, by a keeper of its own.
    pub at_work: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Deed {
    pub hits: Vec<Hit>,
    pub closed: Option<SystemTime>,
}

impl Deed {
    pub fn hit(&self, target: Target, wanted: rustix::process::Signal) -> Option<SystemTime> {
        self.hits.iter().find(|hit| hit.blow.target == target && hit.blow.signal == wanted).map(|hit| hit.at)
    }

    pub fn is_nothing(&self) -> bool {
        self.hits.is_empty() && self.closed.is_none()
    }
}

pub fn perform(plan: &Plan, place: &Place, run: &mut Started) -> Deed {
    let mut deed = Deed::default();
    match &plan.stop {
        Stop::None | Stop::Timeout(_) | Stop::Stall(_) => {}
        Stop::CloseOutput { moment } => {
            wait_for(*moment, plan, place, run);
            deed.closed = run.close_output();
        }
        Stop::Blows { moment, delay, blows } => {
            wait_for(*moment, plan, place, run);
            std::thread::sleep(*delay);
            let at_work = if plan.real { run.was_asked() } else { mark(place, 0, "text").exists() };
            strike(blows, &place.alhena, at_work, run, &mut deed);
        }
    }
    deed
}

fn wait_for(moment: Moment, plan: &Plan, place: &Place, run: &mut Started) {
    let team = |run: &Started| Team::of(run.pid(), &place.alhena);
    let marked = |name: &str| mark(place, 0, name).exists();
    let mut seen_cli = None;
    Deadline::after(PATIENCE).wait_until(|| {
        let reached = match moment {
            Moment::Spawned => true,
            Moment::Keeper => team(run).keeper.is_some(),
            Moment::Cli => team(run).cli.is_some(),
            Moment::Text if plan.real => run.was_asked(),
            Moment::Text => marked("text"),
            Moment::Tool => marked("tool"),
            Moment::Result => marked("result"),
            Moment::Ended => {
                seen_cli = seen_cli.or_else(|| team(run).cli);
                seen_cli.is_some_and(|pid| !alive(pid))
            }
        };
        reached || run.has_ended()
    });
}

fn strike(blows: &[Blow], alhena: &Path, at_work: bool, run: &mut Started, deed: &mut Deed) {
    // Found first, so that those of one instant are struck as closely together as can be.
    let team = Team::of(run.pid(), alhena);
    for blow in blows {
        std::thread::sleep(blow.after);
        let victim = match blow.target {
            Target::Alhena => (!run.has_ended()).then(|| run.pid()),
            Target::Guard => team.guard,
            Target::Keeper => team.keeper,
            Target::Cli => team.cli,
        };
        if let Some(pid) = victim.filter(|pid| alive(*pid)) {
            signal(pid, blow.signal);
            deed.hits.push(Hit { blow: *blow, at: SystemTime::now(), at_work });
        }
    }
}
