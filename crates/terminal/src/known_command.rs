//! Whether the CLI has a command, before it is run.
//!
//! 0.61.0 sends what begins with `/` and is no command of its own to the model, as text. Which commands there are is known to
//! it alone: its own, those of files, of extensions and skills, and the prompts of MCP servers. But it offers those that fit
//! below its box as soon as something is typed there, the one that is meant among them; so the name is typed, looked for in
//! what is offered, and taken back.

use std::time::{Duration, Instant};

use crate::error::TerminalError;
use crate::terminal::{History, Live, Terminal};
use crate::typing::{PATIENCE, is_empty};
use crate::wording::Wording;

/// How long the CLI may take to offer something, once the name is in its box.
const OFFER: Duration = Duration::from_secs(6);
/// What has not been offered when everything has stood still for so long is not.
const STILL: Duration = Duration::from_millis(1200);

/// Other names of the CLI's own commands, under which it offers those (0.30 to 0.61).
const OTHER_NAMES: [(&str, &str); 12] = [
    ("?", "help"),
    ("background", "tasks"),
    ("bashes", "shells"),
    ("bg", "tasks"),
    ("compact", "compress"),
    ("dir", "directory"),
    ("exit", "quit"),
    ("mem", "memory"),
    ("new", "clear"),
    ("statusline", "footer"),
    ("summarize", "compress"),
    ("usage", "stats"),
];

impl Terminal {
    /// Fails where the CLI has no command of that name. Its box is empty before and after.
    pub(crate) fn check_command(&self, live: &Live, text: &str) -> Result<(), TerminalError> {
        let name = text.trim_start_matches('/').split_whitespace().next().unwrap_or_default();
        let typed = Wording::as_it_is(&format!("/{name}"));
        self.paste(live, typed.paste().trim_end())?;
        let offered = self.wait_for_offers(live, name)?;
        self.take_back_name(live)?;
        if is_offered(&offered, name) {
            return Ok(());
        }
        let version = self.record()?.gemini_version;
        let meant = offered.iter().find(|offered| is_like(offered, name));
        let meant = meant.map(|meant| format!("Did you mean /{meant}? ")).unwrap_or_default();
        Err(TerminalError::usage(
            format!("Gemini CLI {version} has no command /{name} here"),
            format!("{meant}To send it to the model, send it as a text."),
        ))
    }

    /// By a key that does nothing to an empty box: ^C twice would end the CLI.
    fn take_back_name(&self, live: &Live) -> Result<(), TerminalError> {
        live.press("C-u")?;
        match is_empty(&self.wait_for_prompt(live, PATIENCE, is_empty)?) {
            true => Ok(()),
            false => Err(self.not_taken("the prompt does not become empty")),
        }
    }

    /// What the CLI offers for a name, once that is among it, or nothing moves any more.
    fn wait_for_offers(&self, live: &Live, name: &str) -> Result<Vec<String>, TerminalError> {
        let mut shown: Option<Instant> = None;
        live.watch(Instant::now() + PATIENCE, STILL / 4, |late| {
            let offers = offers(&live.capture_pane(History::None)?.text, name);
            shown = shown.filter(|_| offers.is_some()).or_else(|| offers.as_ref().map(|_| Instant::now()));
            let names = offers.unwrap_or_default();
            let for_long = shown.is_some_and(|since| {
                since.elapsed() > OFFER || since.elapsed().min(live.control.quiet(&live.pane)) > STILL
            });
            let over = is_offered(&names, name) || for_long || late || self.is_over()?;
            Ok(over.then_some(names))
        })
    }
}

fn is_offered(offered: &[String], name: &str) -> bool {
    let other = OTHER_NAMES.iter().find(|(other, _)| *other == name).map(|(_, own)| *own);
    offered.iter().any(|offered| offered == name || Some(offered.as_str()) == other)
}

/// Whether what is offered has the letters of a name, in their order: so the CLI searches, and its footer is something else.
fn is_like(offered: &str, name: &str) -> bool {
    let mut letters = offered.chars();
    name.chars().all(|wanted| letters.any(|letter| letter.eq_ignore_ascii_case(&wanted)))
}

/// The first words of the rows below the box with a command's name in it: what is offered, and then the footer. None while
/// the name is not there.
fn offers(screen: &str, name: &str) -> Option<Vec<String>> {
    let lines: Vec<&str> = screen.lines().collect();
    let in_box = |line: &&str| {
        let line = line.trim_matches([' ', '│']);
        line.trim_start_matches(['>', '*']).trim() == format!("/{name}") && line.starts_with(['>', '*'])
    };
    let at = lines.iter().rposition(in_box)?;
    let below = lines.get(at + 1..).unwrap_or_default().iter().map(|line| line.trim_end());
    let is_edge = |line: &str| line.chars().all(|c| "▀▄─╰╯│ ".contains(c));
    let rows = below.skip_while(|line| is_edge(line)).take_while(|line| !line.trim().is_empty());
    Some(rows.filter_map(|row| row.split_whitespace().next()).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOOTER: &str =
        " workspace (/directory)      sandbox     /model\n /tmp/w      no sandbox     gemini-2.5-flash\n";

    /// As 0.61.0 draws it.
    fn screen(name: &str, offered: &str) -> String {
        format!("Tips\n\n▄▄▄▄\n > /{name}\n▀▀▀▀\n{offered}{FOOTER}")
    }

    fn knows(name: &str, offered: &str) -> bool {
        is_offered(&offers(&screen(name, offered), name).unwrap(), name)
    }

    #[test]
    fn a_command_is_known_by_what_is_offered_for_its_name() {
        assert!(knows("greet", " greet   Say hi\n"));
        assert!(knows("search", " search [MCP]   Ask the server\n"));
        assert!(knows("exit", " quit   Exit the cli\n"));
        assert!(!knows("nosuch", ""));
        assert!(!knows("hel", " help   For help on gemini-cli\n"));
        assert!(is_like("help", "hel") && !is_like("workspace", "nosuch"));
        assert_eq!(offers("nothing\n > /other", "greet"), None);
    }
}
