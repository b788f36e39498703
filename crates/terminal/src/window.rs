//! Where a terminal is in tmux: a window of its own, or a pane beside others.

use alhena_model::options::BadValue;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::error::TerminalError;
use crate::launch::Launch;
use crate::store::Record;
use crate::terminals::Terminals;
use crate::tmux::{SESSION, Tmux};

/// Lines that tmux remembers of each pane.
const HISTORY: &str = "50000";
/// What stands in the bar for each window, and above each pane that shares one: its agent, and what that does.
const IN_BAR: &str = "#I:#W#{?@alhena-state, #{@alhena-state},}";
const IN_BAR_WAITING: &str = "#{?#{==:#{@alhena-state},waiting},#[fg=yellow],}";
const ABOVE_PANE: &str = " #{@alhena-name} #{@alhena-state} ";

/// How terminals lie in tmux.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// Each has a window of its own.
    #[default]
    Windows,
    /// Side by side and one below the other, in one window.
    Tiled,
    /// Side by side.
    Columns,
    /// One below the other.
    Rows,
}

impl std::str::FromStr for Layout {
    type Err = BadValue;

    fn from_str(name: &str) -> Result<Self, BadValue> {
        Ok(match name {
            "windows" => Layout::Windows,
            "tiled" => Layout::Tiled,
            "columns" => Layout::Columns,
            "rows" => Layout::Rows,
            _ => {
                return Err(BadValue::new(format!(
                    "unknown layout {name:?}; use windows, tiled, columns or rows"
                )));
            }
        })
    }
}

impl Layout {
    /// Its name here, and in tmux.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Layout::Windows => ("windows", ""),
            Layout::Tiled => ("tiled", "tiled"),
            Layout::Columns => ("columns", "even-horizontal"),
            Layout::Rows => ("rows", "even-vertical"),
        }
    }

    /// The name in tmux of the way its panes lie, if they share a window.
    pub(crate) fn in_tmux(self) -> Option<&'static str> {
        Some(self.names().1).filter(|name| !name.is_empty())
    }

    /// How large a window has to be so that each of its panes is as large as was wanted.
    pub(crate) fn size(self, panes: u16, columns: u16, rows: u16) -> (u16, u16) {
        let (across, down) = match self {
            Layout::Windows => return (columns, rows),
            Layout::Rows => (1, panes),
            Layout::Columns => (panes, 1),
            Layout::Tiled => tiles(panes),
        };
        // A line between two, and one above each.
        let many = |count: u16, one: u16| count.saturating_mul(one.saturating_add(1)).min(10_000);
        (many(across, columns).saturating_sub(1), many(down, rows))
    }
}

/// How tmux tiles: another row first, and then another column.
fn tiles(panes: u16) -> (u16, u16) {
    let (mut across, mut down): (u16, u16) = (1, 1);
    while across.saturating_mul(down) < panes {
        down += 1;
        if across.saturating_mul(down) < panes {
            across += 1;
        }
    }
    (across, down)
}

struct Words(Vec<OsString>);

impl Words {
    fn add<W: AsRef<OsStr>>(&mut self, words: impl IntoIterator<Item = W>) -> &mut Self {
        self.0.extend(words.into_iter().map(|word| word.as_ref().to_owned()));
        self
    }

    fn all(&self) -> Vec<&OsStr> {
        self.0.iter().map(OsString::as_os_str).collect()
    }
}

impl Terminals {
    pub(crate) fn open_pane(&self, record: &Record, launch: &Launch) -> Result<(), TerminalError> {
        let tmux = &self.inner.tmux;
        let (columns, rows) = (launch.columns.max(20), launch.rows.max(5));
        let mut words = Words(Vec::new());
        if let Some(file) = &launch.tmux_conf {
            check_conf(tmux, file)?;
            words.add(["source-file"]).add([file.as_os_str()]).add([";"]);
        }
        set_up(&mut words, launch.tmux_conf.is_none());
        let beside = self.window_with(launch.layout);
        let target = format!("={SESSION}:");
        if let Some(window) = &beside {
            let (width, height) = launch.layout.size(panes_in(tmux, window) + 1, columns, rows);
            let (width, height) = (width.to_string(), height.to_string());
            words.add(["resize-window", "-t", window, "-x", &width, "-y", &height, ";"]);
            words.add(["split-window", "-d", "-t", window]);
        } else if tmux.has_session() {
            words.add(["new-window", "-d", "-t", &target, "-n", &record.name]);
        } else {
            let (columns, rows) = (columns.to_string(), rows.to_string());
            words.add(["new-session", "-d", "-s", SESSION, "-x", &columns, "-y", &rows, "-n", &record.name]);
        }
        // What is typed into the shell begins with a blank, and is none of its history.
        words.add(["-e", "HISTIGNORE= *", "-e", "HISTORY_IGNORE= *"]);
        words.add(["-c".as_ref(), record.dir.as_os_str()]).add(["-P", "-F", "#{pane_id} #{window_id}"]);
        // An option in it that this tmux does not know makes tmux complain and go on.
        let opened = tmux.outcome(&words.all())?;
        let last = opened.printed.lines().last().filter(|line| line.starts_with('%'));
        let Some((pane, window)) = last.and_then(|line| line.split_once(' ')) else {
            return Err(TerminalError::tmux(format!("{} {}", opened.printed, opened.said).trim()));
        };
        let mut words = Words(Vec::new());
        words.add(["set-option", "-p", "-t", pane, "@alhena-id", &record.id, ";"]);
        words.add(["set-option", "-p", "-t", pane, "@alhena-name", &record.name, ";"]);
        let (name, _) = launch.layout.names();
        let (width, height) = launch.layout.size(panes_in(tmux, window), columns, rows);
        let (width, height) = (width.to_string(), height.to_string());
        // For whoever has looked at it from a terminal of another size, and for the panes that are left when others end.
        let (size, pane_size) = (format!("{width} {height}"), format!("{columns} {rows}"));
        words.add(["set-option", "-w", "-t", window, "@alhena-size", &size, ";"]);
        words.add(["set-option", "-w", "-t", window, "@alhena-pane-size", &pane_size, ";"]);
        if launch.layout != Layout::Windows {
            words.add(["set-option", "-w", "-t", window, "@alhena-layout", name, ";"]);
            words.add(["set-option", "-w", "-t", window, "pane-border-status", "top", ";"]);
            words.add(["set-option", "-w", "-t", window, "pane-border-format", ABOVE_PANE, ";"]);
            words.add(["rename-window", "-t", window, name, ";"]);
        }
        words.add(["resize-window", "-t", window, "-x", &width, "-y", &height]);
        if let Some(layout) = launch.layout.in_tmux() {
            words.add([";", "select-layout", "-t", window, layout]);
        }
        tmux.run(&words.all()).map(|_| ())
    }

    fn window_with(&self, layout: Layout) -> Option<String> {
        let (name, _) = layout.names();
        let session = format!("={SESSION}");
        let list = ["list-windows", "-t", &session, "-F", "#{window_id} #{@alhena-layout}"].map(OsStr::new);
        let windows = self.inner.tmux.run(&list).ok()?;
        let found = windows.lines().find_map(|line| line.strip_suffix(name)?.strip_suffix(' '));
        found.map(str::to_owned)
    }
}

/// What every pane of ours needs, whatever a person's own configuration says.
fn set_up(words: &mut Words, is_ours_alone: bool) {
    words.add(["set-option", "-g", "history-limit", HISTORY, ";"]);
    words.add(["set-option", "-s", "escape-time", "20", ";"]);
    words.add(["set-option", "-g", "remain-on-exit", "off", ";"]);
    words.add(["set-option", "-g", "destroy-unattached", "off", ";"]);
    // Not every release has it: titles tell what the CLI does.
    words.add(["set-option", "-gq", "allow-set-title", "on", ";"]);
    let in_bar = format!("{IN_BAR_WAITING}{IN_BAR}");
    words.add(["set-option", "-g", "window-status-format", &in_bar, ";"]);
    words.add(["set-option", "-g", "window-status-current-format", &format!("{in_bar}*"), ";"]);
    if is_ours_alone {
        words.add(["set-option", "-g", "mouse", "on", ";"]);
    }
}

/// Whether tmux can read a person's configuration, before anything is done with it.
fn check_conf(tmux: &Tmux, file: &Path) -> Result<(), TerminalError> {
    let refused = |why: String| {
        let hint = "Mend it, or launch without `tmux_conf`.";
        TerminalError::usage(format!("the tmux configuration cannot be used: {why}"), hint)
    };
    std::fs::File::open(file).map_err(|error| refused(format!("{}: {error}", file.display())))?;
    let words =
        ["start-server".as_ref(), ";".as_ref(), "source-file".as_ref(), "-n".as_ref(), file.as_os_str()];
    let checked = tmux.outcome(&words)?;
    if checked.success {
        return Ok(());
    }
    Err(refused([checked.printed, checked.said].join(" ").trim().to_owned()))
}

/// Where a person's configuration is, by tmux's own rules.
#[must_use]
pub fn usual_tmux_conf(environment: &alhena_agent::env::Environment) -> Option<PathBuf> {
    let home = environment.filled("HOME").map(PathBuf::from);
    let config = environment.filled("XDG_CONFIG_HOME").map(PathBuf::from);
    let candidates = [
        home.as_ref().map(|home| home.join(".tmux.conf")),
        config.map(|config| config.join("tmux/tmux.conf")),
        home.map(|home| home.join(".config/tmux/tmux.conf")),
    ];
    candidates.into_iter().flatten().find(|file| file.is_file())
}

fn panes_in(tmux: &Tmux, window: &str) -> u16 {
    let count = ["display-message", "-p", "-t", window, "#{window_panes}"].map(OsStr::new);
    tmux.run(&count).ok().and_then(|count| count.trim().parse().ok()).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_large_enough_for_its_panes() {
        assert_eq!([1, 2, 3, 4, 5, 7].map(tiles), [(1, 1), (1, 2), (2, 2), (2, 2), (2, 3), (3, 3)]);
        assert_eq!(Layout::Windows.size(1, 150, 46), (150, 46));
        assert_eq!(Layout::Columns.size(3, 100, 30), (302, 31));
        assert_eq!(Layout::Rows.size(3, 100, 30), (100, 93));
        assert_eq!(Layout::Tiled.size(4, 100, 30), (201, 62));
        assert_eq!(Layout::Columns.size(u16::MAX, 1000, 30), (9_999, 31));
    }
}
