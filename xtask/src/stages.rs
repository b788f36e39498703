//! The stages of `cargo xtask test`: their results added up, the time of each, and the slowest tests by nextest's JUnit report.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::commands::{follow, show};
use crate::tally::{Reading, Tally};

/// No stage takes longer; single tests have limits of their own in `.config/nextest.toml`.
const LIMIT: Duration = Duration::from_secs(90 * 60);
const LISTED: usize = 20;

#[derive(Debug, Default)]
pub struct Stages {
    pub total: Tally,
    times: Vec<(String, Duration)>,
}

impl Stages {
    pub fn check(&mut self, command: &mut Command) -> Result<(), String> {
        if !self.follow(command, |_| ())? {
            self.total += Tally::FAILURE;
        }
        Ok(())
    }

    /// Runs a test runner. One that fails without naming a failed test (the tests did not compile) counts as a failure.
    pub fn tests(&mut self, command: &mut Command) -> Result<(), String> {
        let mut reading = Reading::default();
        let ended_well = self.follow(command, |line| reading.line(line))?;
        let tally = reading.tally();
        self.total += tally;
        if !ended_well && tally.failed == 0 {
            self.total += Tally::FAILURE;
        }
        Ok(())
    }

    fn follow(&mut self, command: &mut Command, each: impl FnMut(&str)) -> Result<bool, String> {
        let (ended_well, time) = timed(|| follow(command, LIMIT, each));
        self.add(show(command), time);
        ended_well
    }

    /// Adds the time of something that was no command.
    pub fn add(&mut self, stage: String, time: Duration) {
        self.times.push((stage, time));
    }

    /// The times, and the slowest tests of a JUnit report.
    pub fn times(&self, junit: &str) -> String {
        let stages = self.times.iter().map(|(stage, time)| line(time.as_secs_f64(), stage));
        let tests = slowest(junit).into_iter().map(|(seconds, test)| line(seconds, &test));
        let tests: String = tests.collect();
        let title = if tests.is_empty() { "" } else { "slowest tests:\n" };
        let flaky = flaky(junit).into_iter().map(|test| format!("passed at the second try: {test}\n"));
        format!("stages:\n{}{title}{tests}{}", stages.collect::<String>(), flaky.collect::<String>())
    }
}

pub fn timed<T>(run: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    (run(), start.elapsed())
}

fn line(seconds: f64, of: &str) -> String {
    format!("{seconds:8.1} s  {of}\n")
}

/// The tests of a JUnit report: the attributes of each, and what is inside. Output of tests is escaped, so each `<` begins a tag.
fn cases(junit: &str) -> impl Iterator<Item = (&str, &str)> {
    junit.split("<testcase").skip(1).filter_map(|rest| rest.split_once('>'))
}

/// The tests that failed first and then passed.
fn flaky(junit: &str) -> Vec<String> {
    let flaky = cases(junit).filter(|(_, inside)| inside.contains("<flakyFailure"));
    flaky.filter_map(|(tag, _)| Some(test(tag)?.1)).collect()
}

/// The slowest tests of a JUnit report, slowest first.
fn slowest(junit: &str) -> Vec<(f64, String)> {
    let mut tests: Vec<(f64, String)> = cases(junit).filter_map(|(tag, _)| test(tag)).collect();
    tests.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    tests.truncate(LISTED);
    tests
}

/// ` name="module::test" classname="package::binary" timestamp="..." time="0.012"`
fn test(tag: &str) -> Option<(f64, String)> {
    let value = |name: &str| tag.split_once(&format!(" {name}=\""))?.1.split('"').next();
    Some((value("time")?.parse().ok()?, format!("{} {}", value("classname")?, value("name")?)))
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use super::{LISTED, Stages, flaky, slowest};
    use crate::tally::Tally;

    #[test]
    fn the_slowest_tests_of_a_report_come_first() {
        let report = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="3" failures="1" errors="0" uuid="1" timestamp="2026-11-18T20:00:00.000+00:00" time="9.000">
    <testsuite name="alhena-cli::it" tests="2" disabled="0" errors="0" failures="1">
        <testcase name="cli::run::fast" classname="alhena-cli::it" timestamp="2026-11-18T20:00:00.000+00:00" time="0.012">
        </testcase>
        <testcase name="stops::slow" classname="alhena-cli::it" timestamp="2026-11-18T20:00:00.000+00:00" time="61.500">
            <failure type="test failure">&lt;testcase name=&quot;none&quot; classname=&quot;x&quot; time=&quot;99&quot;&gt;</failure>
        </testcase>
    </testsuite>
    <testsuite name="xtask::bin/xtask" tests="1" disabled="0" errors="0" failures="0">
        <testcase name="tally::tests::read" classname="xtask::bin/xtask" timestamp="2026-11-18T20:00:00.000+00:00" time="1.000">
            <flakyFailure type="test failure">panicked</flakyFailure>
        </testcase>
    </testsuite>
</testsuites>"#;
        let expected = [
            (61.5, "alhena-cli::it stops::slow"),
            (1.0, "xtask::bin/xtask tally::tests::read"),
            (0.012, "alhena-cli::it cli::run::fast"),
        ];
        assert_eq!(slowest(report), expected.map(|(seconds, test)| (seconds, test.to_owned())));
        assert_eq!(flaky(report), ["xtask::bin/xtask tally::tests::read"]);
    }

    #[test]
    fn a_long_report_gives_a_short_list_and_a_broken_one_what_it_has() {
        let case = |number: usize| format!("<testcase name=\"t{number}\" classname=\"x\" time=\"{number}\">");
        let listed = slowest(&(0..LISTED + 5).map(case).collect::<String>());
        assert_eq!((listed.len(), listed.first()), (LISTED, Some(&(24.0, "x t24".to_owned()))));
        let cut = format!("{}\n<testcase name=\"b\" classname=\"x\" time=\"1", case(3));
        assert_eq!(slowest(&cut), [(3.0, "x t3".to_owned())]);
        assert_eq!(slowest(""), []);
    }

    #[test]
    fn stages_have_their_times_and_results_and_an_unnamed_failure_counts() {
        let mut stages = Stages::default();
        stages.check(&mut Command::new("true")).unwrap();
        stages.tests(&mut Command::new("false")).unwrap();
        stages.times.iter_mut().for_each(|(_, time)| *time = Duration::from_millis(1234));
        assert_eq!(stages.total, Tally::FAILURE);
        assert_eq!(stages.times(""), "stages:\n     1.2 s  true\n     1.2 s  false\n");
        let report = "<testcase name=\"a\" classname=\"x\" time=\"2\">";
        assert!(stages.times(report).ends_with("  false\nslowest tests:\n     2.0 s  x a\n"));
    }
}
