//! The end of a conversation that was held in a terminal or by a program.

use alhena_agent::Talk;

use crate::output::say;
use crate::style::{one_line, with_flags};

/// Ends it, says what is only known then, and gives its session's id.
pub fn close(talk: Talk) -> Option<String> {
    let (session, left) = talk.close();
    for warning in left.warnings {
        say(format_args!("warning: {}", one_line(&with_flags(&warning), 2000)));
    }
    session
}
