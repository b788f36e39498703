//! Decides what the model may do: rules first, and a person for the rest.
//!
//! A `Conversation` asks before anything is done that neither the approval mode nor a rule allows. Here a rule denies to delete,
//! changes of files are shown and allowed, and everything else is rejected with a reason that the model is told.
//!
//! `cargo run -p alhena --example permissions -- "Write a haiku into haiku.txt, then delete old.txt"`

use std::error::Error;

use alhena::agent::Action;
use alhena::{EventKind, Gemini, RunOptions, Trust, TurnItem};

fn main() -> Result<(), Box<dyn Error>> {
    let prompt = std::env::args().nth(1).ok_or("give a prompt")?;
    let options = RunOptions::default().deny("shell(rm *)").trust(Trust::Run);
    let mut conversation = Gemini::find()?.converse(&options)?;

    let mut turn = conversation.prompt(prompt)?;
    while let Some(item) = turn.next_blocking() {
        match item {
            TurnItem::Asked(permission) => match &permission.action {
                Action::Diff { path, after, .. } => {
                    println!("[allowed: {} gets {} bytes]", path.display(), after.len());
                    permission.allow_once();
                }
                _ => {
                    println!("[rejected: {} {}]", permission.tool, permission.title);
                    permission.reject("Only files may be changed here");
                }
            },
            TurnItem::Event(event) => match event.kind {
                EventKind::Text { delta } => print!("{delta}"),
                EventKind::ToolResult { name, error: Some(error), .. } => {
                    println!("[{name}: {}]", error.message)
                }
                _ => {}
            },
            // More kinds will come: whoever matches them all has a case for the rest.
            _ => {}
        }
    }
    let outcome = turn.outcome_blocking();
    println!("\n{:?}, {} files", outcome.status, outcome.files.len());
    conversation.close_blocking();
    Ok(())
}
