//! What the tests need from outside, fetched before they start: one table, all of it in the private cache, in parallel.

use std::io::Write;
use std::process::Command;
use std::time::Instant;

use alhena_testbed::cache;
use alhena_testbed::tools::{self, Tool};
use parking_lot::Mutex;

use crate::commands::{first_line, works};

/// The oldest Node that Gemini CLI runs on.
const OLDEST_NODE: u32 = 20;
/// How many downloads run at once.
const AT_ONCE: usize = 3;

/// Fetches what the tests need, and gives their environment.
pub fn for_tests(quick: bool) -> Result<Vec<(String, String)>, String> {
    if !quick {
        fetch_all(tools::all().into_iter().filter(Tool::needed).collect())?;
    }
    let mut environment =
        vec![(cache::CACHE_VARIABLE.to_owned(), cache::root().to_string_lossy().into_owned())];
    if !works(Command::new("tmux").arg("-V"))
        && let Some(directory) = tools::cached_tmux_directory()
    {
        let path = std::env::var("PATH").unwrap_or_default();
        environment.push(("PATH".to_owned(), format!("{}:{path}", directory.display())));
    }
    Ok(environment)
}

pub fn fetch(name: Option<&str>, version: Option<&str>) -> Result<(), String> {
    let chosen =
        |tool: &Tool| Some(tool.name) == name && version.is_none_or(|version| tool.version == version);
    let chosen: Vec<Tool> = tools::all().into_iter().filter(chosen).collect();
    if !chosen.is_empty() {
        return fetch_all(chosen);
    }
    for tool in tools::all() {
        let state = match (tool.cached(), tool.needed()) {
            (true, _) => "cached",
            (false, true) => "would be fetched",
            (false, false) => "not needed",
        };
        // A reader that has seen enough is no failure.
        let _closed =
            writeln!(std::io::stdout(), "{:12} {:10} {state:18} {}", tool.name, tool.version, tool.about);
    }
    if name.is_none() { Ok(()) } else { Err("nothing in this table has that name".to_owned()) }
}

pub fn check_node() -> Result<(), String> {
    node_is_enough(first_line("node", "--version").as_deref())?;
    match first_line("npm", "--version") {
        Some(_) => Ok(()),
        None => {
            Err("npm is needed to fetch the Gemini CLI, and `npm` is not on PATH (it comes with Node)"
                .to_owned())
        }
    }
}

fn node_is_enough(version: Option<&str>) -> Result<(), String> {
    let Some(version) = version else {
        return Err(format!(
            "Node {OLDEST_NODE} or newer is needed to test on the real CLI, and `node` is not on PATH"
        ));
    };
    let major =
        version.trim_start_matches('v').split('.').next().and_then(|number| number.parse::<u32>().ok());
    match major {
        Some(major) if major >= OLDEST_NODE => Ok(()),
        _ => Err(format!(
            "Node {OLDEST_NODE} or newer is needed to test on the real CLI, and `node` is {version}"
        )),
    }
}

fn fetch_all(wanted: Vec<Tool>) -> Result<(), String> {
    let missing: Vec<Tool> = wanted.into_iter().filter(|tool| !tool.cached()).collect();
    let waiting = Mutex::new(missing);
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(tool) = take(&waiting) {
                    if let Err(message) = fetch_one(&tool) {
                        failures.lock().push(message);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner();
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

fn take(waiting: &Mutex<Vec<Tool>>) -> Option<Tool> {
    let mut waiting = waiting.lock();
    if waiting.is_empty() { None } else { Some(waiting.remove(0)) }
}

fn fetch_one(tool: &Tool) -> Result<(), String> {
    let label = format!("{} {}", tool.name, tool.version);
    let start = Instant::now();
    eprintln!("fetching {label} ...");
    let place = tool.get().map_err(|error| format!("{label} could not be fetched: {error}"))?;
    eprintln!("fetched {label} in {:.1} s: {}", start.elapsed().as_secs_f64(), place.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::node_is_enough;

    #[test]
    fn an_old_or_missing_node_is_refused_with_the_reason() {
        assert_eq!(node_is_enough(Some("v20.20.2")), Ok(()));
        assert_eq!(node_is_enough(Some("v24.0.0")), Ok(()));
        let old = "Node 20 or newer is needed to test on the real CLI, and `node` is v18.19.0";
        assert_eq!(node_is_enough(Some("v18.19.0")), Err(old.to_owned()));
        let missing = "Node 20 or newer is needed to test on the real CLI, and `node` is not on PATH";
        assert_eq!(node_is_enough(None), Err(missing.to_owned()));
        assert!(node_is_enough(Some("nonsense")).is_err());
    }
}
