//! The command line, and which trials it asks for.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::dice::Dice;
use super::plan::{Kind, Plan};

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Begin no new trial after this many minutes
    #[arg(long, default_value_t = 2)]
    minutes: u64,
    #[arg(long, conflicts_with = "minutes")]
    seconds: Option<u64>,
    /// Seed of all trials; random by default
    #[arg(long)]
    seed: Option<u64>,
    /// Run only the trial with this seed
    #[arg(long)]
    trial: Option<u64>,
    #[arg(long, value_parser = Kind::read)]
    pub kind: Option<Kind>,
    /// Maximum number of trials
    #[arg(long)]
    most: Option<u64>,
    /// Maximum concurrent trials
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub jobs: u8,
    /// Print the report as JSON on stdout
    #[arg(long)]
    pub json: bool,
    /// Use binaries that are already built
    #[arg(long)]
    pub no_build: bool,
}

impl Options {
    pub fn time(&self) -> Duration {
        Duration::from_secs(self.seconds.unwrap_or(self.minutes * 60))
    }

    /// The seed of this run.
    pub fn seed(&self) -> u64 {
        self.seed.unwrap_or_else(|| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            Dice::new(u64::try_from(now.as_nanos()).unwrap_or_default()).next() >> 32
        })
    }

    /// The trial with this number; none when there are no more.
    pub fn plan(&self, seed: u64, number: u64, has_real_cli: bool) -> Option<Plan> {
        if self.most.is_some_and(|most| number >= most) || (self.trial.is_some() && number > 0) {
            return None;
        }
        let seed = self.trial.unwrap_or_else(|| Dice::trial(seed, number));
        let plan = Plan::of(seed, self.kind);
        // Where it could not be fetched, other trials take its place.
        if plan.real && !has_real_cli { Some(Plan::of(seed, Some(Kind::Stop))) } else { Some(plan) }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::Options;

    #[derive(Debug, Parser)]
    struct Torture {
        #[command(flatten)]
        options: Options,
    }

    #[test]
    fn a_trial_is_repeated_alone_and_an_unknown_kind_is_refused() {
        let options = Torture::parse_from(["torture", "--trial", "99", "--kind", "stop"]).options;
        assert_eq!(options.plan(7, 0, true).map(|plan| plan.seed), Some(99));
        assert_eq!(options.plan(7, 1, true), None);
        assert!(Torture::try_parse_from(["torture", "--kind", "x"]).is_err());
    }
}
