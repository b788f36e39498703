//! The command line, and which trials it asks for.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::dice::Dice;
use super::plan::{Kind, Plan};

#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    pub time: Duration,
    pub seed: u64,
    pub trial: Option<u64>,
    pub kind: Option<Kind>,
    pub most: Option<u64>,
    /// How many at once.
    pub jobs: usize,
    pub json: bool,
    /// Build the binaries first, instead of using those that are there.
    pub build: bool,
}

impl Options {
    pub fn new(time: Duration, seed: u64) -> Self {
        Self { time, seed, trial: None, kind: None, most: None, jobs: 2, json: false, build: true }
    }

    pub fn read(words: &[&str]) -> Result<Self, String> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let seed = Dice::new(u64::try_from(now.as_nanos()).unwrap_or_default()).next() >> 32;
        let mut options = Self::new(Duration::from_secs(120), seed);
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut number = || {
                let value = words.next().ok_or_else(|| format!("{word} needs a number"))?;
                value.parse::<u64>().map_err(|_| format!("{value} is no number for {word}"))
            };
            match *word {
                "--minutes" => options.time = Duration::from_secs(60 * number()?),
                "--seconds" => options.time = Duration::from_secs(number()?),
                "--seed" => options.seed = number()?,
                "--trial" => options.trial = Some(number()?),
                "--most" => options.most = Some(number()?),
                "--jobs" => options.jobs = number()?.clamp(1, 64) as usize,
                "--kind" => {
                    let name = words.next().copied().unwrap_or_default();
                    options.kind =
                        Some(Kind::named(name).ok_or_else(|| format!("there is no kind {name:?}"))?);
                }
                "--json" => options.json = true,
                "--no-build" => options.build = false,
                other => return Err(format!("unknown option {other}")),
            }
        }
        Ok(options)
    }

    /// The trial with this number; none when there are no more.
    pub fn plan(&self, number: u64, has_real_cli: bool) -> Option<Plan> {
        if self.most.is_some_and(|most| number >= most) || (self.trial.is_some() && number > 0) {
            return None;
        }
        let seed = self.trial.unwrap_or_else(|| Dice::trial(self.seed, number));
        let plan = Plan::of(seed, self.kind);
        // Where it could not be fetched, other trials take its place.
        if plan.real && !has_real_cli { Some(Plan::of(seed, Some(Kind::Stop))) } else { Some(plan) }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Options;
    use crate::torture::plan::Kind;

    #[test]
    fn options_are_read_and_wrong_ones_refused() {
        let options =
            Options::read(&["--minutes", "3", "--seed", "7", "--kind", "stop", "--json", "--no-build"])
                .unwrap();
        let new = Options::new(Duration::from_secs(180), 7);
        let expected = Options { kind: Some(Kind::Stop), json: true, build: false, ..new };
        assert_eq!(options, expected);
        assert_eq!(Options::read(&["--seed", "x"]).unwrap_err(), "x is no number for --seed");
        assert_eq!(Options::read(&["--sed"]).unwrap_err(), "unknown option --sed");
        assert_eq!(Options::read(&["--kind", "x"]).unwrap_err(), "there is no kind \"x\"");
    }

    #[test]
    fn a_trial_is_repeated_alone() {
        let options = Options::read(&["--trial", "99"]).unwrap();
        assert_eq!(options.plan(0, true).map(|plan| plan.seed), Some(99));
        assert_eq!(options.plan(1, true), None);
    }
}
