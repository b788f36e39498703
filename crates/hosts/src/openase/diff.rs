//! Unified diffs in the output of tools (C-31), such as that of `git diff`: found by their form, so every line made of them is
//! marked as derived.

/// The diff of one file.
#[derive(Debug, PartialEq, Eq)]
pub struct FileDiff<'a> {
    /// The file after the change; of a deleted file the one before.
    pub path: String,
    /// From the line `---` to the end of the last hunk.
    pub diff: &'a str,
}

/// Returns every diff in a text, in order. Text around them is left out; a diff that was cut off ends with the text.
pub fn find(text: &str) -> Vec<FileDiff<'_>> {
    let mut found = Vec::new();
    let mut rest = Lines { text, at: 0 };
    while let Some(start) = rest.next_header() {
        let header = Lines { text, at: start };
        if let Some((path, end)) = file_diff(header) {
            found.push(FileDiff { path, diff: text.get(start..end).unwrap_or_default() });
            rest.at = end;
        }
    }
    found
}

/// The path of the diff that begins here, and where it ends; None when no hunk follows.
fn file_diff(mut lines: Lines<'_>) -> Option<(String, usize)> {
    let (before, after) = (name(lines.next()?, "--- ")?, name(lines.next()?, "+++ ")?);
    let mut end = None;
    while let Some((old, new)) = lines.peek().and_then(hunk) {
        lines.next();
        lines.skip_hunk(old, new);
        end = Some(lines.at);
    }
    let path = match (before, after) {
        (before, "/dev/null") => before.strip_prefix("a/").unwrap_or(before),
        (before, after) if before.starts_with("a/") || before == "/dev/null" => {
            after.strip_prefix("b/").unwrap_or(after)
        }
        (_, after) => after,
    };
    Some((path.to_owned(), end?))
}

/// The file in a header, without the time that `diff` writes behind a tab.
fn name<'a>(line: &'a str, mark: &str) -> Option<&'a str> {
    let name = line.strip_prefix(mark)?.split('\t').next()?.trim_end();
    Some(name.strip_prefix('"').and_then(|name| name.strip_suffix('"')).unwrap_or(name))
}

/// The number of old and new lines of a hunk: `@@ -1,3 +1 @@`.
fn hunk(line: &str) -> Option<(usize, usize)> {
    let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let count = |range: &str| match range.split_once(',') {
        Some((_, count)) => count.parse().ok(),
        None => range.parse::<usize>().ok().map(|_| 1),
    };
    Some((count(old)?, count(new)?))
}

/// Lines with their place in the text.
#[derive(Clone, Copy)]
struct Lines<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lines<'a> {
    fn rest(self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(self) -> Option<&'a str> {
        self.rest().lines().next()
    }

    fn next(&mut self) -> Option<&'a str> {
        let line = self.rest().split_inclusive('\n').next()?;
        self.at += line.len();
        Some(line.strip_suffix('\n').map_or(line, |line| line.strip_suffix('\r').unwrap_or(line)))
    }

    /// Where the next line `---` is.
    fn next_header(&mut self) -> Option<usize> {
        loop {
            let start = self.at;
            if self.next()?.starts_with("--- ") {
                return Some(start);
            }
        }
    }

    /// Moves behind a hunk, by the numbers in its header: a deleted line can look like a header.
    fn skip_hunk(&mut self, mut old: usize, mut new: usize) {
        while old > 0 || new > 0 {
            let Some(line) = self.peek() else { return };
            match line.as_bytes().first() {
                Some(b'-') if old > 0 => old -= 1,
                Some(b'+') if new > 0 => new -= 1,
                // Some programs cut the space of an empty line.
                Some(b' ') | None if old > 0 && new > 0 => (old, new) = (old - 1, new - 1),
                Some(b'\\') => {}
                _ => return,
            }
            self.next();
        }
        if self.peek().is_some_and(|line| line.starts_with('\\')) {
            self.next();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(String, String)> {
        find(text).into_iter().map(|one| (one.path, one.diff.to_owned())).collect()
    }

    #[test]
    fn every_file_of_a_printed_diff_is_found_and_the_text_around_is_not() {
        let one = "--- a/src/one.rs\n+++ b/src/one.rs\n@@ -1,2 +1,2 @@ fn main()\n same\n--- not a header\n+++ new\n";
        let two = "--- /dev/null\n+++ b/two\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n";
        let three = "--- a/three\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n@@ -9 +8 @@\n-y\n+z";
        let text = format!(
            "On main\ndiff --git a/src/one.rs b/src/one.rs\n{one}diff --git a/two b/two\n{two}done\n{three}"
        );
        let expected = [("src/one.rs", one), ("two", two), ("three", three)];
        assert_eq!(found(&text), expected.map(|(path, diff)| (path.to_owned(), diff.to_owned())));
    }

    #[test]
    fn names_are_taken_as_diff_writes_them() {
        let hunk = "@@ -1 +1 @@\n-x\n+y\n";
        for (header, path) in [
            ("--- old.txt\t2026-01-01 00:00:00\n+++ new.txt\t2026-01-02 00:00:00\n", "new.txt"),
            ("--- b/same\n+++ b/same\n", "b/same"),
            ("--- \"a/with \\\"quotes\"\n+++ \"b/with \\\"quotes\"\n", "with \\\"quotes"),
            ("--- a/x\r\n+++ b/x\r\n", "x"),
        ] {
            assert_eq!(found(&format!("{header}{hunk}")), [(path.to_owned(), format!("{header}{hunk}"))]);
        }
    }

    #[test]
    fn other_text_is_no_diff_and_a_cut_one_ends_with_the_text() {
        for text in
            ["", "--- a\n+++ b\n", "--- a\n@@ -1 +1 @@\n", "--- a\n+++ b\n@@ nothing @@\n", "- one\n+ two\n"]
        {
            assert_eq!(find(text), [], "{text}");
        }
        let cut = "--- a\n+++ a\n@@ -1,5 +1,5 @@\n x\n-y";
        // The numbers in a header are not to be trusted.
        let most = usize::MAX;
        let false_numbers = format!("--- a\n+++ a\n@@ -1,{most} +1,{most} @@\n x\n-y\n+z");
        for cut in [cut, &false_numbers] {
            assert_eq!(found(cut), [("a".to_owned(), cut.to_owned())]);
        }
    }
}
