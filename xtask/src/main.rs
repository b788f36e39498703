//! `cargo xtask`: the project's own chores, with all their set-up.

mod bench;
mod checks;
mod commands;
mod coverage;
mod lints;
mod package;
mod screenshot;
mod setup;
mod soak;
mod stages;
mod tally;
mod torture;

use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask test [--quick] [FILTER]   everything that has to hold: format, lints, documentation, tests, two minutes of torture, packages
cargo xtask fetch [NAME [VERSION]]    what the tests need from outside; without NAME: the table
cargo xtask bench NAME [ARGS]         measurements; without NAME: their names
cargo xtask coverage [PACKAGE...]     line coverage per crate
cargo xtask package [NAME...] [--out DIR] [--profile NAME] [--target TRIPLE] [--binary PATH] [--list]
                                      builds packages, installs each where nothing is, runs its example
cargo xtask screenshot [PATH]         the README's picture of the page, docs/page.png
cargo xtask soak batch [--seeds N] [--first SEED] [--jobs N] [--real-jobs N]
                                      batches on workers, everybody killed at random: every job has one result
cargo xtask soak terminal [--minutes N] [--tmux PATH]
                                      eight agents, eight loops of commands: nothing may end
cargo xtask soak warm [--prompts N] [--minutes N]
                                      prompts through the pool with stops, kills and slow answers; 1,000 without an option
cargo xtask torture [--minutes N] [--seed S] [--jobs N] [--kind NAME] [--json] [--no-build]
                                      stops, faults and attacks at random; `--trial SEED` repeats one
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["test", rest @ ..] => checks::Options::read(rest).and_then(|options| checks::run(&options)),
        ["fetch", rest @ ..] => setup::fetch(rest),
        ["bench", rest @ ..] => bench::run(rest),
        ["coverage", rest @ ..] => coverage::run(rest),
        ["package", rest @ ..] => package::command(rest),
        ["screenshot", rest @ ..] => screenshot::take(rest),
        ["soak", rest @ ..] => soak::command(rest),
        ["torture", rest @ ..] => torture::command(rest),
        ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            Ok(())
        }
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            if !message.is_empty() {
                eprintln!("xtask: {message}");
            }
            ExitCode::FAILURE
        }
    }
}
