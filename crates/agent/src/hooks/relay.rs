//! `alhena hook SOCKET MOMENT`: carries a question to the Alhena that started the CLI, and its decision back.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::path::Path;

use alhena_model::hook::UNDECIDED;
use alhena_sys::sockets::Stream;
use serde_json::json;

use super::occasion::Word;

/// What the CLI takes for a denial, whatever else was said.
const BLOCKED: u8 = 2;

/// Asks, and says what was decided on stdout. Gives the exit code: 0, or the one that blocks.
pub fn relay(socket: &OsStr, moment: &OsStr) -> u8 {
    match carry(Path::new(socket), moment) {
        Ok(()) => 0,
        Err(error) => {
            // The CLI shows the reason to the model.
            let denial = json!({"decision": "deny", "reason": format!("{UNDECIDED}{error}")});
            let _nobody_listens = writeln!(io::stdout(), "{denial}");
            BLOCKED
        }
    }
}

fn carry(socket: &Path, moment: &OsStr) -> io::Result<()> {
    let word = moment.to_str().and_then(Word::named);
    let word = word.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no such moment"))?;
    let mut line = Stream::connect(socket)?;
    line.write_all(word.name().as_bytes())?;
    line.write_all(b"\n")?;
    io::copy(&mut io::stdin().lock(), &mut line)?;
    line.shutdown(Shutdown::Write)?;
    let mut decision = Vec::new();
    line.read_to_end(&mut decision)?;
    // Half of a decision is none: the last byte is the end of its line.
    if decision.pop() != Some(b'\n') {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "Alhena is gone"));
    }
    let mut out = io::stdout().lock();
    out.write_all(&decision)?;
    out.flush()
}
