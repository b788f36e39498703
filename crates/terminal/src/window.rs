//! The windows of tmux: opened for a terminal, shown to a person, and given back their size.
//!
//! A window has a fixed size while nobody looks at it, and that of the person's screen while somebody does: 0.61.0 draws
//! everything anew when the size changes. Whoever looked may have been killed before they could put it back, and panes that
//! share a window come and go; so the watcher looks after it now and then, and everybody does who has changed something.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use alhena_model::options::BadValue;
use alhena_sys::processes::{Process, Signal};

use crate::control::Control;
use crate::error::TerminalError;
use crate::launch::Launch;
use crate::store::Record;
use crate::terminal::Terminal;
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
    fn in_tmux(self) -> Option<&'static str> {
        Some(self.names().1).filter(|name| !name.is_empty())
    }

    /// How large a window has to be so that each of its panes is as large as was wanted.
    fn size(self, panes: u16, columns: u16, rows: u16) -> (u16, u16) {
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
        let opened = tmux.outcome(&words.0)?;
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
        tmux.run(&words.0).map(|_| ())
    }

    fn window_with(&self, layout: Layout) -> Option<String> {
        let (name, _) = layout.names();
        let session = format!("={SESSION}");
        let list = ["list-windows", "-t", &session, "-F", "#{window_id} #{@alhena-layout}"];
        let windows = self.inner.tmux.run(list).ok()?;
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
    let checked = tmux.outcome(words)?;
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
    let count = ["display-message", "-p", "-t", window, "#{window_panes}"];
    tmux.run(count).ok().and_then(|count| count.trim().parse().ok()).unwrap_or(1)
}

/// What the sessions of those who look are called, with the number of their process behind it.
const VIEW: &str = "alhena-view-";

const WINDOWS: &str =
    "#{window_id},#{window-size},#{window_panes},#{@alhena-layout},#{@alhena-pane-size},#{@alhena-size}";
const VIEWS: &str = "#{session_attached},#{session_name},#{@alhena-window}";

#[derive(Debug, PartialEq, Eq)]
struct Window<'a> {
    id: &'a str,
    /// Whether it keeps its size, whoever looks.
    fixed: bool,
    panes: u16,
    layout: Layout,
    /// How large each pane is to be.
    pane: (u16, u16),
    /// What it was made, as it is written down.
    size: &'a str,
}

impl<'a> Window<'a> {
    /// None for one that is not ours.
    fn read(line: &'a str) -> Option<Self> {
        let mut words = line.split(',');
        let mut next = || words.next().unwrap_or_default();
        let (id, policy, panes, layout, pane) = (next(), next(), next(), next(), next());
        let (columns, rows) = pane.split_once(' ')?;
        Some(Self {
            id,
            fixed: policy == "manual",
            panes: panes.parse().ok()?,
            layout: layout.parse().unwrap_or_default(),
            pane: (columns.parse().ok()?, rows.parse().ok()?),
            size: next(),
        })
    }

    fn wanted(&self) -> (u16, u16) {
        self.layout.size(self.panes, self.pane.0, self.pane.1)
    }

    /// The commands that give it the size it should have. None where it has it, or where somebody looks.
    fn mend(&self, looked_at: bool) -> Option<Vec<Vec<String>>> {
        let (width, height) = self.wanted();
        let size = format!("{width} {height}");
        if looked_at || (self.fixed && size == self.size) {
            return None;
        }
        let (width, height) = (width.to_string(), height.to_string());
        let resize = ["resize-window", "-t", self.id, "-x", &width, "-y", &height];
        let note = ["set-option", "-w", "-t", self.id, "@alhena-size", &size];
        let mut commands = vec![resize.map(str::to_owned).to_vec(), note.map(str::to_owned).to_vec()];
        if let Some(layout) = self.layout.in_tmux() {
            commands.push(["select-layout", "-t", self.id, layout].map(str::to_owned).to_vec());
        }
        Some(commands)
    }
}

/// Ends views without a client, and restores the size of windows without a viewer.
///
/// Not by tmux's own `destroy-unattached`: 3.3a then ends a session whose client is about to leave, and crashes when it
/// looks at that client once more, with every agent.
pub(crate) fn tidy(control: &Control) {
    let _gone_meanwhile = try_tidy(control);
}

fn try_tidy(control: &Control) -> Result<(), TerminalError> {
    let session = format!("={SESSION}");
    let [views, windows] = control
        .run([&["list-sessions", "-F", VIEWS], &["list-windows", "-t", session.as_str(), "-F", WINDOWS]])?;
    let (gone, looked_at) = sorted(&views, |pid| Process::of(pid).is_some());
    for view in gone {
        let _already_gone = control.run([&["kill-session", "-t", &format!("={view}")]]);
    }
    for window in windows.lines().filter_map(Window::read) {
        for command in window.mend(looked_at.contains(&window.id)).unwrap_or_default() {
            let words: Vec<&str> = command.iter().map(String::as_str).collect();
            let _closed_meanwhile = control.run([words.as_slice()]);
        }
    }
    Ok(())
}

/// Returns the views without a client, and the windows that have a viewer. A client whose `alhena` was killed would otherwise stay on a
/// terminal that its shell takes for free.
fn sorted(views: &str, lives: impl Fn(u32) -> bool) -> (Vec<&str>, Vec<&str>) {
    let (mut gone, mut looked_at) = (Vec::new(), Vec::new());
    for view in views.lines() {
        let mut words = view.split(',');
        let mut next = || words.next().unwrap_or_default();
        let (attached, name, window) = (next(), next(), next());
        let Some(viewer) = name.strip_prefix(VIEW) else { continue };
        match attached != "0" && viewer.parse().is_ok_and(&lives) {
            true => looked_at.push(window),
            false => gone.push(name),
        }
    }
    (gone, looked_at)
}

/// Between two looks whether the person has left, or is to.
const PAUSE: Duration = Duration::from_millis(30);
/// How long tmux's client may take to leave when it is told to.
const LEAVE: Duration = Duration::from_secs(3);

impl Terminal {
    /// Shows the terminal in the caller's own, until they leave it, or are to: `over` is asked now and then. It is done through
    /// a session of their own that shares the windows, so that what they look at moves nobody else's view.
    pub fn attach(&self, over: impl Fn() -> bool) -> Result<ExitStatus, TerminalError> {
        let live = self.live()?;
        let [window] = live.control.run([&["display-message", "-p", "-t", &live.pane, "#{window_id}"]])?;
        let window = window.trim();
        let tmux = &self.terminals.inner.tmux;
        let view = format!("{VIEW}{}", std::process::id());
        let mut command = tmux.command();
        command.args(["new-session", "-t", &format!("={SESSION}"), "-s", &view, ";"]);
        command.args(["set-option", "-t", &view, "@alhena-window", window, ";"]);
        // Fixed while nobody looks; from now on the person's.
        command.args(["set-option", "-w", "-t", window, "window-size", "latest", ";"]);
        command.args(["select-window", "-t", &format!("{view}:{window}"), ";"]);
        command.args(["select-pane", "-t", &live.pane]);
        let done = command.spawn().and_then(|mut client| wait(&mut client, over));
        tidy(&Control::plain(tmux));
        done.map_err(TerminalError::tmux)
    }
}

/// Waits for a client. It is asked to leave, which gives the terminal back, when it is over; and ended if it does not.
fn wait(client: &mut Child, over: impl Fn() -> bool) -> std::io::Result<ExitStatus> {
    let mut told: Option<Instant> = None;
    loop {
        if let Some(status) = client.try_wait()? {
            return Ok(status);
        }
        match told {
            None if over() => {
                told = Some(Instant::now());
                if let Some(client) = Process::of(client.id()) {
                    client.signal(Signal::TERM);
                }
            }
            Some(since) if since.elapsed() > LEAVE => client.kill()?,
            _ => {}
        }
        std::thread::sleep(PAUSE);
    }
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

    fn mended(line: &str, looked_at: bool) -> Option<Vec<String>> {
        let commands = Window::read(line).unwrap().mend(looked_at)?;
        Some(commands.into_iter().map(|words| words.join(" ")).collect())
    }

    #[test]
    fn a_window_that_nobody_looks_at_gets_the_size_that_its_panes_need() {
        assert_eq!(mended("@1,manual,1,,150 46,150 46", false), None);
        let small = "@1,latest,1,,150 46,150 46";
        assert_eq!(mended(small, true), None);
        assert_eq!(mended(small, false).unwrap()[0], "resize-window -t @1 -x 150 -y 46");
        // Two were side by side, and one has ended.
        assert_eq!(
            mended("@2,manual,1,columns,150 46,301 47", false).unwrap(),
            [
                "resize-window -t @2 -x 150 -y 47",
                "set-option -w -t @2 @alhena-size 150 47",
                "select-layout -t @2 even-horizontal"
            ]
        );
        assert_eq!(Window::read("@3,latest,1,,,"), None);
    }

    #[test]
    fn a_view_without_anybody_ends_and_one_with_somebody_keeps_its_window() {
        let views = "1,alhena,\n0,alhena-view-1,@1\n1,alhena-view-2,@2\n1,alhena-view-3,@3\n0,person,\n";
        assert_eq!(sorted(views, |pid| pid < 3), (vec!["alhena-view-1", "alhena-view-3"], vec!["@2"]));
    }
}
