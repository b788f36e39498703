//! `cargo xtask screenshot`: the README's picture of the page, taken by the test that looks at the page.

use std::path::PathBuf;
use std::time::Duration;

use alhena_testbed::cache::workspace;

use crate::commands::{cargo, follow};

/// The test that shows what the README shows, and the variable that tells it where to put the picture.
const TEST: &str = "the_picture_in_the_readme_is_a_run_with_a_diff";
const VARIABLE: &str = "ALHENA_SCREENSHOT";

pub fn take(path: Option<PathBuf>) -> Result<(), String> {
    let path = path.unwrap_or_else(|| workspace().join("docs/page.png"));
    let path = std::path::absolute(path).map_err(|error| error.to_string())?;
    let mut test = cargo();
    test.args(["test", "-p", "alhena-cli", "--test", "real", "--", "--exact"])
        .arg(format!("real_page::looks::{TEST}"))
        .env(VARIABLE, &path);
    match follow(&mut test, Duration::from_secs(1800), |_| {})? {
        true => {
            println!("{}", path.display());
            Ok(())
        }
        false => Err("the page was not shown as it should be".to_owned()),
    }
}
