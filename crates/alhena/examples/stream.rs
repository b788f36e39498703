//! Shows what happens while it happens.
//!
//! A `Run` is a stream: any async runtime can wait for its events, and `next_blocking` needs none. Here the smallest of
//! executors does it.
//!
//! `cargo run -p alhena --example stream -- "Explain this folder"`

use std::error::Error;

use alhena::{Approval, EventKind, Gemini, RunOptions, Trust};

fn main() -> Result<(), Box<dyn Error>> {
    let prompt = std::env::args().nth(1).ok_or("give a prompt")?;
    let options = RunOptions::default().approval(Approval::AutoEdit).trust(Trust::Run);
    let mut run = Gemini::find()?.run(prompt, &options)?;

    let outcome = futures_executor::block_on(async {
        while let Some(event) = run.next().await {
            match event.kind {
                EventKind::Text { delta } => print!("{delta}"),
                EventKind::Thinking { text, .. } => println!("(thinks: {text})"),
                EventKind::ToolCall { name, input, .. } => println!("[{name} {input}]"),
                EventKind::FileChange(change) => println!("[{:?} {}]", change.change, change.path),
                // More kinds will come: whoever matches them all has a case for the rest.
                _ => {}
            }
        }
        run.outcome().await
    });
    println!("\n{:?}", outcome.status);
    Ok(())
}
