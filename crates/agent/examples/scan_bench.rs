//! Measures the scan for changed files on a tree of 100,000 files under git, with a few changes and with none.
//!
//! `cargo run --release -p alhena-agent --example scan_bench [FILES [ROUNDS]]`

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use alhena_agent::changes::{Changes, scan, scan_start};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let files: usize = arguments.next().map_or(Ok(100_000), |text| text.parse())?;
    let rounds: usize = arguments.next().map_or(Ok(9), |text| text.parse())?;
    let root = tempfile::tempdir()?;
    plant(root.path(), files)?;
    git(root.path(), &["init", "-q"])?;
    git(root.path(), &["add", "-A"])?;
    std::thread::sleep(Duration::from_millis(50));

    let since = scan_start(root.path(), Instant::now());
    measure("nothing changed", rounds, || scan(root.path(), since));
    for number in 0..100.min(files) {
        fs::write(file(root.path(), number * (files / 100).max(1)), "changed")?;
        fs::write(root.path().join(format!("new-{number}")), "new")?;
    }
    fs::remove_file(file(root.path(), 1))?;
    measure("201 changes", rounds, || scan(root.path(), since));
    Ok(())
}

/// Ten files to a directory, a hundred directories to a package: about what a large repository looks like.
fn file(root: &Path, number: usize) -> std::path::PathBuf {
    let (package, directory) = (number / 1000, number / 10 % 100);
    root.join(format!("packages/package-{package:03}/src/component-{directory:02}/file-{}.ts", number % 10))
}

fn plant(root: &Path, files: usize) -> Result<(), Box<dyn Error>> {
    for number in 0..files {
        let path = file(root, number);
        if number % 10 == 0 {
            fs::create_dir_all(path.parent().ok_or("no parent")?)?;
        }
        fs::write(path, "export {};\n")?;
    }
    fs::write(root.join(".gitignore"), "node_modules/\ndist/\n*.log\n.env\n")?;
    Ok(())
}

fn git(root: &Path, arguments: &[&str]) -> Result<(), Box<dyn Error>> {
    let status = Command::new("git").args(arguments).current_dir(root).status()?;
    if status.success() { Ok(()) } else { Err(format!("git {arguments:?}: {status}").into()) }
}

fn measure(name: &str, rounds: usize, scan: impl Fn() -> Changes) {
    let mut times: Vec<Duration> = Vec::new();
    let before = processor_time();
    let mut found = Changes::default();
    for _ in 0..rounds.max(1) {
        let start = Instant::now();
        found = scan();
        times.push(start.elapsed());
    }
    let used = processor_time().saturating_sub(before) / u32::try_from(times.len()).unwrap_or(1);
    times.sort();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    let (created, modified, deleted) = (found.created.len(), found.modified.len(), found.deleted.len());
    println!("{name}: median {median:?} of {}, {used:?} of processor time each", times.len());
    println!("    {created} created, {modified} modified, {deleted} deleted");
}

/// What this process and its children have used so far, where `/proc` tells. On a busy machine that says more than the time
/// on the wall.
fn processor_time() -> Duration {
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}
