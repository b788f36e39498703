//! Lists the sessions that Gemini CLI keeps for this folder, and prints the latest.
//!
//! Nothing is started, and nothing is changed.
//!
//! `cargo run -p alhena --example sessions`

use std::error::Error;

use alhena::agent::Environment;
use alhena::model::Include;
use alhena::model::message::{Block, Content};
use alhena::session::{Scope, Store, Transcript, Which};

fn main() -> Result<(), Box<dyn Error>> {
    // `GEMINI_CLI_HOME` or `HOME`, as the CLI does it.
    let home = Environment::of_process().gemini_home().ok_or("there is no home directory")?;
    let store = Store::of_home(&home);
    let here = Scope::Folder(std::env::current_dir()?.canonicalize()?);

    for session in store.list(&here)? {
        let title = session.survey.title.as_deref().unwrap_or("without a title");
        println!("{}  {} messages  {title}", session.id, session.survey.messages);
    }

    let latest = store.find(&here, &Which::of("latest"))?;
    let transcript = Transcript::read(&latest.file.path)?;
    for message in transcript.messages(Include::Said) {
        println!("\n{:?}:", message.role);
        match &message.content {
            Content::Text(text) => println!("{text}"),
            Content::Blocks(blocks) => blocks.iter().for_each(show),
        }
    }
    Ok(())
}

/// The blocks are Claude's, whatever tool of Gemini CLI was called.
fn show(block: &Block<'_>) {
    match block {
        Block::Text { text, .. } => println!("{text}"),
        Block::ToolUse { name, input, .. } => println!("[{name} {input}]"),
        _ => {}
    }
}
