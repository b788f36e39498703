//! `alhena terminal answer`.

use std::process::ExitCode;

use alhena_terminal::{Reply, TerminalError, Terminals};

/// Answer a dialog of an agent: an approval, a question.
///
/// A question may take several options, or a text of your own, or both. A text with an approval or a refusal is a word of
/// feedback: the agent gets it as its next message.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  alhena terminal answer fixer 1
  alhena terminal answer fixer --choose 1,3 --text \"and a bit of grey\"
  alhena terminal answer fixer --choose no --text \"Use a temporary directory\"")]
pub struct Args {
    /// The terminal, by its name or id.
    terminal: String,
    /// The number of an option, the beginning of its label, or a text where one is asked for.
    #[arg(required_unless_present_any = ["choose", "text"], conflicts_with_all = ["choose", "text"])]
    answer: Option<String>,
    /// Options, by number or by the beginning of their labels.
    #[arg(long, value_name = "OPTIONS", value_delimiter = ',')]
    choose: Vec<String>,
    /// A text of your own.
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
}

pub fn execute(args: Args, terminals: &Terminals, json: bool) -> Result<ExitCode, TerminalError> {
    let terminal = terminals.find(&args.terminal)?;
    let reading = match args.answer {
        Some(answer) => terminal.answer(&answer)?,
        None => terminal.reply(&Reply { choose: args.choose, text: args.text })?,
    };
    super::print_reading(&terminal, reading, json)
}
