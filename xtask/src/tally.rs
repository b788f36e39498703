//! Adds up what test runners really said: nextest's summary line, libtest's `test result` lines, and the last words of
//! `cargo xtask torture` and `cargo xtask package`.
//!
//! A failed test's own output is printed between them, and a test of a test runner prints such lines too. nextest 0.9
//! indents it, and its own summary stands under a rule at the margin; libtest does not, but says before how many tests
//! it runs.

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    pub passed: u64,
    /// Ran and did not, ran out of time, could not be started, or were to run and did not.
    pub failed: u64,
    pub skipped: u64,
}

impl Tally {
    /// A check that is no test failed: it counts, so that the last line never says 0 failed when something did.
    pub const FAILURE: Self = Self { passed: 0, failed: 1, skipped: 0 };

    /// `ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.00s`, when that is the end of this
    /// many tests.
    fn of_libtest(rest: &str, expected: u64) -> Option<Self> {
        let mut tally = Self::default();
        let mut filtered = 0;
        for part in rest.split(['.', ';']).map(str::trim) {
            match part.split_once(' ').and_then(|(number, what)| Some((number.parse::<u64>().ok()?, what))) {
                Some((number, "passed" | "measured")) => tally.passed += number,
                Some((number, "failed")) => tally.failed += number,
                Some((number, "ignored")) => tally.skipped += number,
                Some((number, "filtered out")) => filtered += number,
                _ => {}
            }
        }
        let complete = tally.passed + tally.failed + tally.skipped == expected;
        tally.skipped += filtered;
        complete.then_some(tally)
    }

    fn of_xtask(rest: &str) -> Option<Self> {
        let (passed, failed) = rest.strip_suffix(" failed")?.split_once(" passed, ")?;
        Some(Self { passed: passed.parse().ok()?, failed: failed.parse().ok()?, skipped: 0 })
    }

    /// `5/6 tests` and `3 passed (1 slow, 1 leaky), 1 failed, 1 timed out, 2 skipped`
    fn of_nextest(count: &str, parts: &str) -> Self {
        let mut tally = Self::default();
        for part in outside_parentheses(parts).split(',').map(str::trim) {
            match part
                .split_once(' ')
                .and_then(|(number, what)| Some((number.parse::<u64>().ok()?, what.trim())))
            {
                Some((number, "passed")) => tally.passed += number,
                Some((number, "skipped")) => tally.skipped += number,
                Some((number, _)) => tally.failed += number,
                None => {}
            }
        }
        if let Some((ran, all)) = count.split(' ').next().and_then(|numbers| numbers.split_once('/')) {
            let missing = |ran: u64, all: u64| all.saturating_sub(ran);
            tally.failed += ran.parse().ok().zip(all.parse().ok()).map_or(0, |(ran, all)| missing(ran, all));
        }
        tally
    }
}

#[derive(Debug, Default)]
pub struct Reading {
    finished: Tally,
    after_rule: bool,
    /// A libtest binary that is under way: how many tests it runs, and the latest line that can be its end.
    binary: Option<(u64, Option<Tally>)>,
}

impl Reading {
    pub fn line(&mut self, line: &str) {
        let line = without_colours(line);
        let line = line.trim_end();
        let after_rule = std::mem::replace(&mut self.after_rule, is_rule(line));
        if let Some(summary) = line.strip_prefix(NEXTEST_SUMMARY) {
            let parts = summary.split_once("] ").and_then(|(_, rest)| rest.split_once(" run: "));
            if let Some((count, parts)) = parts
                && after_rule
            {
                self.finished += Tally::of_nextest(count, parts);
            }
        } else if let Some(rest) = line.strip_prefix("test result: ") {
            if let Some((expected, end)) = &mut self.binary {
                // A later one that fits is printed by the runner; an earlier one was a test's output.
                *end = Tally::of_libtest(rest, *expected).or(*end);
            }
        } else if let Some(end) =
            OF_XTASK.iter().find_map(|name| line.strip_prefix(name)).and_then(Tally::of_xtask)
        {
            self.finished += end;
        } else if let Some(expected) = announced(line)
            && !matches!(self.binary, Some((_, None)))
        {
            self.end_binary();
            self.binary = Some((expected, None));
        }
    }

    fn end_binary(&mut self) {
        if let Some((_, Some(end))) = self.binary.take() {
            self.finished += end;
        }
    }

    pub fn tally(mut self) -> Tally {
        self.end_binary();
        self.finished
    }
}

const OF_XTASK: [&str; 2] = ["torture: ", "package: "];

/// Right-aligned, as all of nextest's own words.
const NEXTEST_SUMMARY: &str = "     Summary [";

fn is_rule(line: &str) -> bool {
    !line.is_empty() && line.chars().all(|character| matches!(character, '─' | '-'))
}

fn announced(line: &str) -> Option<u64> {
    let (number, what) = line.strip_prefix("running ")?.split_once(' ')?;
    matches!(what, "test" | "tests").then(|| number.parse().ok()).flatten()
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

fn outside_parentheses(text: &str) -> String {
    let mut depth = 0_u32;
    let mut kept = String::new();
    for character in text.chars() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            other if depth == 0 => kept.push(other),
            _ => {}
        }
    }
    kept
}

fn without_colours(line: &str) -> String {
    let mut kept = String::new();
    let mut inside = false;
    for character in line.chars() {
        match (inside, character) {
            (false, '\u{1b}') => inside = true,
            (true, letter) if letter.is_ascii_alphabetic() => inside = false,
            (true, _) => {}
            (false, other) => kept.push(other),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::{Reading, Tally};

    fn tally(passed: u64, failed: u64, skipped: u64) -> Tally {
        Tally { passed, failed, skipped }
    }

    fn read(output: &str) -> Tally {
        let mut reading = Reading::default();
        output.lines().for_each(|line| reading.line(line));
        reading.tally()
    }

    #[test]
    fn summaries_of_nextest_are_read() {
        let lines = [
            ("     Summary [   0.012s] 5 tests run: 5 passed, 0 skipped", tally(5, 0, 0)),
            ("     Summary [   0.012s] 1 test run: 1 passed, 7 skipped", tally(1, 0, 7)),
            (
                "     Summary [  12.000s] 7 tests run: 3 passed (1 slow, 1 leaky), 2 failed, 1 exec failed, 1 timed out, 2 skipped",
                tally(3, 4, 2),
            ),
            ("     Summary [  12.000s] 5/9 tests run: 5 passed, 0 skipped", tally(5, 4, 0)),
            (
                "\u{1b}[32;1m     Summary\u{1b}[0m [   0.012s] \u{1b}[1m5\u{1b}[0m tests run: \u{1b}[1m5\u{1b}[0m \u{1b}[32;1mpassed\u{1b}[0m, \u{1b}[1m0\u{1b}[0m \u{1b}[33;1mskipped\u{1b}[0m",
                tally(5, 0, 0),
            ),
            (
                "     Summary [   2.288s] 5 tests run: 1 passed, 3 failed (1 due to being leaky), 1 timed out, 1 skipped",
                tally(1, 4, 1),
            ),
            ("     Summary [   0.144s] 2/5 tests run: 0 passed, 2 failed, 1 skipped", tally(0, 5, 1)),
            ("    Starting 5 tests across 3 binaries", tally(0, 0, 0)),
            ("", tally(0, 0, 0)),
        ];
        for (line, expected) in lines {
            assert_eq!(read(&format!("────────────\n{line}\n")), expected, "{line}");
        }
    }

    #[test]
    fn each_binary_of_libtest_counts_once() {
        let ended =
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.00s";
        let failed = "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.2s";
        let output =
            format!("\nrunning 4 tests\ntest a ... ok\n\n{ended}\n\n\nrunning 5 tests\n\n{failed}\n");
        assert_eq!(read(&output), tally(6, 2, 3));
        assert_eq!(read("running 0 tests\n"), tally(0, 0, 0), "it ended without a word");
    }

    #[test]
    fn the_last_words_of_torture_and_of_packages_are_read() {
        let output =
            "torture: seed 1, 120 s, 2 at once\ntorture: 10 s, 17 trials, 1 failed (stop 16+1 failed)\n";
        assert_eq!(read(&format!("{output}torture: 350 passed, 1 failed\n")), tally(350, 1, 0));
        let packages =
            "package                                size    build  try-out\npackage: 7 passed, 1 failed\n";
        assert_eq!(read(packages), tally(7, 1, 0));
        assert_eq!(read(output), tally(0, 0, 0), "it ended without a word");
    }

    /// As nextest 0.9.143 prints a failed test, immediately and again after its summary.
    #[test]
    fn what_failed_tests_print_is_not_counted() {
        let inner = "
    running 1 test
    test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 32 filtered out; finished in 0.32s
         Summary [  1.000s] 5 tests run: 3 passed, 2 failed, 0 skipped
     Summary [  1.000s] 5 tests run: 3 passed, 2 failed, 0 skipped
    ────────────
     Summary [  1.000s] 5 tests run: 3 passed, 2 failed, 0 skipped
";
        let summary = "────────────\n     Summary [   0.340s] 2 tests run: 1 passed, 1 failed, 0 skipped";
        assert_eq!(read(&format!("{inner}\n{summary}\n{inner}")), tally(1, 1, 0));
    }

    /// As a failed doc test is printed: its output is not indented.
    #[test]
    fn what_failed_doc_tests_print_is_not_counted() {
        let result = |passed: u64, failed: u64| {
            format!(
                "test result: FAILED. {passed} passed; {failed} failed; 0 ignored; 0 measured; 0 filtered out; finished in 1s"
            )
        };
        let failures = format!(
            "failures:\n\n---- src/lib.rs - a (line 1) stdout ----\nrunning 1 test\n{}\nrunning 9 tests\n{}\n",
            result(9, 9),
            result(2, 0),
        );
        let output =
            format!("running 2 tests\n\n{failures}\nfailures:\n    src/lib.rs\n\n{}\n", result(1, 1));
        assert_eq!(read(&output), tally(1, 1, 0));
    }
}
