//! What happens in a trial, decided by its seed alone: who runs, where, what it is denied, what it writes, and how and when
//! it is stopped. [`parts`] are what it is made of.

mod parts;

use std::time::Duration;

use alhena_testbed::Child;
use parts::{HOSTILE_STREAMS, ODD_HOMES};
use rustix::process::Signal;

use super::place::Limits;

pub use parts::{Blow, Disk, Home, Moment, Stop, Stream, Target, View};

/// The kinds of attack. Each fixes what it is about and leaves the rest to chance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Stop,
    /// Two are killed at the same instant.
    Two,
    /// The agent leaves processes of every kind behind.
    Daemons,
    Stream,
    Repository,
    /// The environment holds secrets, and the agent says them.
    Secrets,
    /// The home is not an ordinary one.
    Home,
    /// A disk is full, or descriptors or inotify are used up.
    Shortage,
    /// Several runs at once in one folder.
    Together,
    Real,
}

pub const KINDS: &[(Kind, &str, u64)] = &[
    (Kind::Stop, "stop", 22),
    (Kind::Two, "two", 10),
    (Kind::Daemons, "daemons", 12),
    (Kind::Stream, "stream", 12),
    (Kind::Repository, "repository", 8),
    (Kind::Secrets, "secrets", 8),
    (Kind::Home, "home", 8),
    (Kind::Shortage, "shortage", 8),
    (Kind::Together, "together", 6),
    (Kind::Real, "real", 6),
];

impl Kind {
    pub fn name(self) -> &'static str {
        KINDS.iter().find(|(kind, _, _)| *kind == self).map_or("", |(_, name, _)| name)
    }

    pub fn named(name: &str) -> Option<Self> {
        KINDS.iter().find(|(_, known, _)| *known == name).map(|(kind, _, _)| *kind)
    }

    /// The kind that a word of the command line names.
    pub fn read(name: &str) -> Result<Self, String> {
        Self::named(name).ok_or_else(|| {
            let names: Vec<&str> = KINDS.iter().map(|(_, name, _)| *name).collect();
            format!("there are {}", names.join(", "))
        })
    }

    fn thrown(dice: &mut Dice) -> Self {
        let mut left = dice.below(KINDS.iter().map(|(_, _, weight)| weight).sum());
        for (kind, _, weight) in KINDS {
            match left.checked_sub(*weight) {
                Some(rest) => left = rest,
                None => return *kind,
            }
        }
        Kind::Stop
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub seed: u64,
    pub kind: Kind,
    pub real: bool,
    pub home: Home,
    pub alhena_home: bool,
    /// A disk that is nearly full, and how many bytes are free.
    pub small_disk: Option<(Disk, u64)>,
    pub limits: Limits,
    pub stream: Stream,
    pub daemons: Vec<Child>,
    pub deaf: bool,
    pub wiped: bool,
    pub traps: bool,
    /// Whether secrets are in the environment and said by the agent.
    pub secrets: bool,
    pub record: bool,
    pub view: View,
    /// Whether all runs go on with one session that the user has.
    pub resumes: bool,
    /// How many runs at once; the stop is for the first.
    pub runs: usize,
    pub stop: Stop,
}

impl Plan {
    /// The trial of a seed; of one kind, if that is given.
    pub fn of(seed: u64, only: Option<Kind>) -> Self {
        let mut dice = Dice::new(seed);
        let thrown = Kind::thrown(&mut dice);
        let mut plan = Self::ordinary(seed, only.unwrap_or(thrown), &mut dice);
        match plan.kind {
            Kind::Stop => {
                plan.stop = one_stop(&mut dice);
                plan.deaf = dice.percent(25);
            }
            Kind::Two => plan.stop = two_blows(&mut dice),
            Kind::Daemons => {
                plan.daemons = (0..=dice.below(3)).map(|_| daemon(&mut dice)).collect();
                plan.stop = if dice.percent(30) { Stop::None } else { one_stop(&mut dice) };
            }
            Kind::Stream => {
                plan.stream = dice.pick(HOSTILE_STREAMS, Stream::Garbage);
                plan.stop = match dice.below(4) {
                    0 => Stop::Timeout(Duration::from_millis(500 + dice.below(2000))),
                    1 => one_stop(&mut dice),
                    _ => Stop::None,
                };
            }
            Kind::Repository => plan.traps = true,
            Kind::Secrets => {
                plan.secrets = true;
                plan.record = true;
                plan.stop = if dice.percent(60) { Stop::None } else { one_stop(&mut dice) };
            }
            Kind::Home => {
                plan.home = dice.pick(ODD_HOMES, Home::Empty);
                plan.alhena_home = dice.percent(20);
                plan.stop = if dice.percent(60) { Stop::None } else { one_stop(&mut dice) };
            }
            Kind::Shortage => shortage(&mut plan, &mut dice),
            Kind::Together => {
                plan.runs = 2 + dice.below(3) as usize;
                plan.resumes = dice.percent(40);
                plan.stop = if dice.percent(40) { Stop::None } else { one_stop(&mut dice) };
            }
            Kind::Real => {
                plan.real = true;
                plan.stop = if dice.percent(25) { Stop::None } else { one_stop(&mut dice) };
                plan.daemons = if dice.percent(50) { vec![daemon(&mut dice)] } else { Vec::new() };
                plan.home = if dice.percent(30) { dice.pick(REAL_HOMES, Home::Plain) } else { Home::Plain };
                plan.traps = dice.percent(20);
                plan.resumes = plan.home == Home::Plain && dice.percent(20);
                plan.runs = if dice.percent(15) { 2 } else { 1 };
                // The CLI waits for whoever holds a command's output open, as long as it takes.
                let ends_by_itself = plan.stop == Stop::None || plan.runs > 1;
                plan.daemons.iter_mut().for_each(|daemon| daemon.closed_files |= ends_by_itself);
            }
        }
        plan.stream = plan.fitting_stream(&mut dice);
        plan.wiped &= plan.stream == Stream::Endless && plan.stop.is_gentle();
        plan
    }

    fn ordinary(seed: u64, kind: Kind, dice: &mut Dice) -> Self {
        let views = ["text", "pretty", "stream-json", "json", "messages", "aiwf", "promptfoo"];
        let view = match dice.below(10) {
            0 => View::Outcome,
            1 => View::Other(dice.pick(&views, "text")),
            _ => View::Events,
        };
        Self {
            seed,
            kind,
            real: false,
            home: Home::Plain,
            alhena_home: dice.percent(50),
            small_disk: None,
            limits: Limits::default(),
            stream: Stream::Good,
            daemons: if dice.percent(30) { vec![daemon(dice)] } else { Vec::new() },
            deaf: false,
            wiped: dice.percent(20),
            traps: false,
            secrets: dice.percent(15),
            record: dice.percent(40),
            view,
            resumes: false,
            runs: 1,
            stop: Stop::None,
        }
    }

    /// A run that is to be stopped before its end must not end first.
    fn fitting_stream(&self, dice: &mut Dice) -> Stream {
        let early = match &self.stop {
            Stop::None => false,
            Stop::Timeout(_) | Stop::Stall(_) => true,
            Stop::CloseOutput { moment } | Stop::Blows { moment, .. } => {
                !matches!(moment, Moment::Result | Moment::Ended)
            }
        };
        match self.stream {
            Stream::Good if early && dice.percent(75) => Stream::Endless,
            other => other,
        }
    }

    /// Whether something is missing that a run needs, so that it may fail in other ways than otherwise.
    pub fn is_short(&self) -> bool {
        self.small_disk.is_some()
            || self.limits.descriptors.is_some()
            || self.limits.file_size.is_some()
            || matches!(self.home, Home::Unset | Home::ReadOnly)
    }
}

/// Homes in which the real CLI can work.
const REAL_HOMES: &[Home] = &[Home::OddName, Home::Linked, Home::Long, Home::ReadOnly];

fn daemon(dice: &mut Dice) -> Child {
    Child {
        new_session: dice.percent(60),
        daemon: dice.percent(60),
        closed_files: dice.percent(50),
        cleared_environment: dice.percent(50),
        ignores_signals: dice.percent(50),
        writes_every_ms: dice.percent(20).then_some(50),
    }
}

fn moment(dice: &mut Dice) -> Moment {
    let moments = [
        Moment::Spawned,
        Moment::Keeper,
        Moment::Cli,
        Moment::Cli,
        Moment::Text,
        Moment::Tool,
        Moment::Tool,
        Moment::Result,
        Moment::Ended,
    ];
    dice.pick(&moments, Moment::Text)
}

fn delay(dice: &mut Dice) -> Duration {
    let most = dice.pick(&[1, 20, 200, 1000], 1);
    Duration::from_micros(dice.below(most * 1000))
}

fn blow(target: Target, signal: Signal) -> Blow {
    Blow { target, signal, after: Duration::ZERO }
}

fn one_stop(dice: &mut Dice) -> Stop {
    let moment = moment(dice);
    let gentle = [Signal::INT, Signal::TERM, Signal::HUP];
    let blows = match dice.below(16) {
        0..=3 => vec![blow(Target::Alhena, dice.pick(&gentle, Signal::TERM))],
        4 | 5 => vec![blow(Target::Alhena, Signal::KILL)],
        6 | 7 => vec![blow(Target::Keeper, Signal::KILL)],
        8 => vec![blow(Target::Guard, Signal::KILL)],
        9 => vec![blow(Target::Cli, Signal::KILL)],
        10 => vec![blow(Target::Cli, dice.pick(&gentle, Signal::TERM))],
        11 => vec![
            blow(Target::Alhena, Signal::STOP),
            Blow { after: Duration::from_millis(dice.below(200)), ..blow(Target::Alhena, Signal::KILL) },
        ],
        12 => vec![
            blow(Target::Alhena, Signal::INT),
            Blow { after: Duration::from_millis(dice.below(400)), ..blow(Target::Alhena, Signal::INT) },
        ],
        13 => vec![
            blow(dice.pick(&[Target::Keeper, Target::Cli], Target::Cli), Signal::STOP),
            Blow { after: Duration::from_millis(dice.below(300)), ..blow(Target::Alhena, Signal::TERM) },
        ],
        14 => return Stop::CloseOutput { moment },
        _ => {
            let time = Duration::from_millis(50 + dice.below(2500));
            return if dice.percent(70) { Stop::Timeout(time) } else { Stop::Stall(time) };
        }
    };
    Stop::Blows { moment, delay: delay(dice), blows }
}

fn two_blows(dice: &mut Dice) -> Stop {
    let pairs = [
        (Target::Alhena, Target::Keeper),
        (Target::Keeper, Target::Alhena),
        (Target::Alhena, Target::Cli),
        (Target::Alhena, Target::Guard),
        (Target::Keeper, Target::Cli),
        (Target::Guard, Target::Cli),
    ];
    let (first, second) = dice.pick(&pairs, (Target::Alhena, Target::Keeper));
    let blows = vec![blow(first, Signal::KILL), blow(second, Signal::KILL)];
    Stop::Blows { moment: moment(dice), delay: delay(dice), blows }
}

fn shortage(plan: &mut Plan, dice: &mut Dice) {
    match dice.below(8) {
        0..=3 => {
            let disks = [Disk::Home, Disk::Temporary, Disk::Record, Disk::Output];
            let disk = dice.pick(&disks, Disk::Home);
            plan.small_disk = Some((disk, dice.pick(&[0, 4 << 10, 64 << 10, 512 << 10], 0)));
            plan.record |= disk == Disk::Record;
            plan.alhena_home = false;
            plan.stream = dice.pick(&[Stream::Good, Stream::LargeOutputs, Stream::StderrFlood], Stream::Good);
        }
        4 => plan.limits.file_size = Some(dice.pick(&[0, 1 << 10, 64 << 10, 1 << 20], 0)),
        5 => plan.limits.descriptors = Some(4 + dice.below(28)),
        _ => plan.limits.no_inotify = true,
    }
    plan.stop = if dice.percent(70) { Stop::None } else { one_stop(dice) };
}

/// Chance that repeats: the same seed gives the same throws on every machine (SplitMix64).
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn trial(seed: u64, number: u64) -> u64 {
        // Short enough to be typed.
        Self::new(seed ^ number.wrapping_mul(0xA076_1D64_78BD_642F)).next() >> 24
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 up to, but not with, the limit.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    pub fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    pub fn pick<T: Clone>(&mut self, choices: &[T], otherwise: T) -> T {
        let index = usize::try_from(self.below(choices.len() as u64)).unwrap_or_default();
        choices.get(index).cloned().unwrap_or(otherwise)
    }
}

#[cfg(test)]
mod tests {
    use super::{Dice, KINDS, Kind, Plan};

    #[test]
    fn a_seed_gives_the_same_trial_again() {
        for seed in 0..200 {
            assert_eq!(Plan::of(seed, None), Plan::of(seed, None));
        }
    }

    #[test]
    fn every_kind_of_attack_comes_and_is_known_by_name() {
        for (kind, name, _) in KINDS {
            assert!((0..500).any(|seed| Plan::of(seed, None).kind == *kind), "{name}");
            assert_eq!(Kind::named(name), Some(*kind));
            assert_eq!(Plan::of(3, Some(*kind)).kind, *kind);
        }
    }

    #[test]
    fn a_seed_gives_the_same_throws_again() {
        let throws = |seed| {
            let mut dice = Dice::new(seed);
            [dice.below(1000), dice.below(1000), dice.below(1000)]
        };
        assert_eq!(throws(7), throws(7));
        assert_ne!(throws(7), throws(8));
        assert_eq!(Dice::trial(1, 2), Dice::trial(1, 2));
        assert_ne!(Dice::trial(1, 2), Dice::trial(1, 3));
    }
}
