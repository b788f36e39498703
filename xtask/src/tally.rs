//! Adds up what test runners really said: nextest's summary line, and libtest's `test result` lines.

/// Tests by how they ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Ran and held.
    pub passed: u64,
    /// Ran and did not, ran out of time, could not be started, or were to run and did not.
    pub failed: u64,
    /// Ignored or filtered out.
    pub skipped: u64,
}

impl Tally {
    /// A check that is no test failed: it counts, so that the last line never says 0 failed when something did.
    pub const FAILURE: Self = Self { passed: 0, failed: 1, skipped: 0 };

    /// What one line of a runner's output adds, if it is a summary.
    pub fn of_line(line: &str) -> Option<Self> {
        let line = without_colours(line);
        let line = line.trim();
        if let Some(rest) = line.strip_prefix("test result: ") {
            return Some(Self::of_libtest(rest));
        }
        let summary = line.strip_prefix("Summary [")?;
        let (count, parts) = summary.split_once("] ")?.1.split_once(" run: ")?;
        Some(Self::of_nextest(count, parts))
    }

    /// `ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.00s`
    fn of_libtest(rest: &str) -> Self {
        let mut tally = Self::default();
        for part in rest.split(['.', ';']).map(str::trim) {
            match part.split_once(' ').and_then(|(number, what)| Some((number.parse::<u64>().ok()?, what))) {
                Some((number, "passed" | "measured")) => tally.passed += number,
                Some((number, "failed")) => tally.failed += number,
                Some((number, "ignored" | "filtered out")) => tally.skipped += number,
                _ => {}
            }
        }
        tally
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
    use super::Tally;

    fn tally(passed: u64, failed: u64, skipped: u64) -> Option<Tally> {
        Some(Tally { passed, failed, skipped })
    }

    #[test]
    fn summaries_of_both_runners_are_read() {
        let lines = [
            (
                "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.00s",
                tally(3, 0, 3),
            ),
            (
                "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.2s",
                tally(3, 2, 0),
            ),
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
            ("    Starting 5 tests across 3 binaries", None),
            ("test result", None),
            ("", None),
        ];
        for (line, expected) in lines {
            assert_eq!(Tally::of_line(line), expected, "{line}");
        }
    }
}
