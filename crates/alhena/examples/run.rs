//! Asks once and waits: what most programs need.
//!
//! `cargo run -p alhena --example run -- "Explain this folder"`

use std::error::Error;
use std::time::Duration;

use alhena::{Approval, Gemini, RunOptions, Trust};

fn main() -> Result<(), Box<dyn Error>> {
    let prompt = std::env::args().nth(1).ok_or("give a prompt")?;
    let options = RunOptions::default()
        .approval(Approval::AutoEdit) // it may edit files, and run nothing
        .trust(Trust::Run) // here, without what this folder's own settings want
        .timeout(Duration::from_secs(600));

    // An error here means that nothing was started; `Hint::hint` says what to do about it.
    let outcome = Gemini::find()?.run_blocking(prompt, &options)?;

    // From here on there is an outcome, whatever the agent did. It is a success only if everything says so.
    println!("{}", outcome.text.last());
    for file in &outcome.files {
        println!("{:?} {}", file.change, file.path);
    }
    println!("{:?}, {} tokens", outcome.status, outcome.usage.all.total);
    match &outcome.failure {
        Some(failure) => Err(format!("{failure}\n{}", failure.hint).into()),
        None => Ok(()),
    }
}
