//! Stops a run from elsewhere, as soon as it calls a tool.
//!
//! What the run has started dies with it, and its outcome says that it was cancelled. Dropping a `Run` stops it as well.
//!
//! `cargo run -p alhena --example stop -- "Wait for a minute, by a shell command"`

use std::error::Error;
use std::sync::mpsc;

use alhena::{Approval, EventKind, Gemini, RunOptions, Trust};

fn main() -> Result<(), Box<dyn Error>> {
    // This program supervises its runs itself, where there is no `alhena` binary that could.
    alhena::keeper::run_if_keeper();
    let prompt = std::env::args().nth(1).ok_or("give a prompt")?;
    let options = RunOptions::default().approval(Approval::Yolo).trust(Trust::Run);
    let mut run = Gemini::find()?.run(prompt, &options)?;

    // A stopper can be cloned and sent anywhere: into a signal handler, another thread, a web server.
    let stopper = run.stopper();
    let (seen, enough) = mpsc::channel();
    let other = std::thread::spawn(move || {
        if enough.recv().is_ok() {
            stopper.stop();
        }
    });

    while let Some(event) = run.next_blocking() {
        if let EventKind::ToolCall { name, .. } = event.kind {
            println!("{name} was called: that is enough");
            // It may have been told before.
            let _told = seen.send(());
        }
    }
    drop(seen);
    let outcome = run.outcome_blocking();
    println!("{:?} {:?}", outcome.status, outcome.warnings);
    other.join().map_err(|_| "the other thread failed")?;
    Ok(())
}
