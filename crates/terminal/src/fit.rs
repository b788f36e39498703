//! Windows that are as large as their panes need, whoever came and went.
//!
//! A window has a fixed size while nobody looks at it, and that of the person's screen while somebody does. Whoever looked may
//! have been killed before they could put it back, and panes that share a window come and go; so the watcher looks after it
//! now and then, and everybody does who has changed something.

use alhena_sys::Process;

use crate::control::Control;
use crate::error::TerminalError;
use crate::tmux::SESSION;
use crate::window::Layout;

/// What the sessions of those who look are called, with the number of their process behind it.
pub(crate) const VIEW: &str = "alhena-view-";

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

/// Ends the views that nobody looks through any more, and gives windows that nobody looks at their size back.
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

/// The views that nobody looks through, and the windows that somebody came to look at. A client whose `alhena` was killed
/// would stay, on a terminal that its shell believes to be free.
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

#[cfg(test)]
mod tests {
    use super::*;

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
