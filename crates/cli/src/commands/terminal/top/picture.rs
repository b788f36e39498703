//! What `top` shows: words first, so that nothing is drawn where no word has changed, and then cells.

use alhena_model::Timestamp;
use alhena_terminal::screen::Status;
use alhena_terminal::status_name;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Row, Table, TableState, Wrap};

use super::agents::Agent;
use crate::style::{Colours, Harmless, age, one_line, short};

/// So many characters of what an agent does are kept: no terminal is wider.
const WIDEST: usize = 400;
/// So many lines below the table tell more of the chosen agent.
const DETAIL: u16 = 7;

/// Everything on the screen, as words. Two that are equal look the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    pub head: String,
    pub rows: Vec<(Status, [String; 6])>,
    pub chosen: Option<usize>,
    pub detail: String,
    /// A text instead of the table, and how far it has been moved.
    pub page: Option<(String, u16)>,
    pub note: String,
    pub help: String,
    pub size: (u16, u16),
}

/// The head line: how many, and how many do what.
pub fn head(agents: &[Agent]) -> String {
    let count = |status| agents.iter().filter(|agent| agent.status == status).count();
    let states = [
        Status::Waiting,
        Status::Processing,
        Status::Starting,
        Status::Completed,
        Status::Idle,
        Status::Error,
        Status::Exited,
        Status::Unknown,
    ];
    let told = states.into_iter().map(|status| (status, count(status))).filter(|(_, count)| *count > 0);
    let told: Vec<String> = told.map(|(status, count)| format!("{count} {}", status_name(status))).collect();
    let agents = if agents.len() == 1 { "1 agent".to_owned() } else { format!("{} agents", agents.len()) };
    if told.is_empty() { agents } else { format!("{agents}: {}", told.join(", ")) }
}

/// The words of one agent.
pub fn row(agent: &Agent, now: Timestamp) -> (Status, [String; 6]) {
    let cells = [
        one_line(&agent.name, 24),
        status_name(agent.status).to_owned(),
        agent.since.map_or_else(String::new, |since| age(now.as_millis() - since.as_millis())),
        agent.turn.map_or_else(String::new, |turn| turn.to_string()),
        agent.tokens.map_or_else(String::new, short),
        one_line(&agent.doing, WIDEST),
    ];
    (agent.status, cells)
}

/// Foreign text of several lines, without what a terminal would obey.
pub fn clean(text: &str) -> String {
    Harmless::default().clean(text).replace('\t', "    ")
}

pub fn draw(frame: &mut Frame<'_>, picture: &Picture, table: &mut TableState, colours: Colours) {
    let detail = if picture.detail.is_empty() || picture.page.is_some() { 0 } else { DETAIL };
    let heights = [1, 0, detail, 1, 1].map(Constraint::Length);
    let [head, _, detail, note, help] = heights;
    let areas: [Rect; 5] =
        Layout::vertical([head, Constraint::Min(3), detail, note, help]).areas(frame.area());
    let [head, body, detail, note, help] = areas;
    let bold = Style::new().add_modifier(Modifier::BOLD);
    frame.render_widget(Line::styled(picture.head.as_str(), bold), head);
    match &picture.page {
        Some((text, moved)) => {
            let page = Paragraph::new(text.as_str()).wrap(Wrap { trim: false }).scroll((*moved, 0));
            frame.render_widget(page, body);
        }
        None => draw_table(frame, picture, table, colours, body),
    }
    frame.render_widget(Paragraph::new(picture.detail.as_str()).wrap(Wrap { trim: false }), detail);
    frame.render_widget(Line::styled(picture.note.as_str(), painted(colours, Color::Yellow)), note);
    frame.render_widget(Line::styled(picture.help.as_str(), Style::new().add_modifier(Modifier::DIM)), help);
}

fn draw_table(
    frame: &mut Frame<'_>,
    picture: &Picture,
    state: &mut TableState,
    colours: Colours,
    area: Rect,
) {
    if picture.rows.is_empty() {
        let text = "There are no terminals. One that is launched appears here.";
        return frame.render_widget(Line::from(text), area);
    }
    let wide = |column: usize, least: usize| {
        let cells = picture.rows.iter().filter_map(|(_, cells)| cells.get(column));
        let widest = cells.map(|cell| unicode_width::UnicodeWidthStr::width(cell.as_str())).max();
        Constraint::Length(u16::try_from(widest.unwrap_or(0).max(least)).unwrap_or(u16::MAX))
    };
    let widths = [wide(0, 4), wide(1, 5), wide(2, 3), wide(3, 4), wide(4, 6), Constraint::Min(10)];
    let rows = picture.rows.iter().map(|(status, cells)| {
        Row::new(cells.iter().map(String::as_str)).style(match status {
            Status::Waiting => painted(colours, Color::Yellow).add_modifier(Modifier::BOLD),
            Status::Error => painted(colours, Color::Red),
            Status::Processing | Status::Starting => painted(colours, Color::Cyan),
            Status::Completed => painted(colours, Color::Green),
            Status::Exited | Status::Unknown => Style::new().add_modifier(Modifier::DIM),
            Status::Idle => Style::new(),
        })
    });
    let head = Row::new(["NAME", "STATE", "FOR", "TURN", "TOKENS", "WHAT"])
        .style(Style::new().add_modifier(Modifier::UNDERLINED));
    let table = Table::new(rows, widths)
        .header(head)
        .column_spacing(2)
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
        .highlight_symbol("› ");
    state.select(picture.chosen);
    frame.render_stateful_widget(table, area, state);
}

fn painted(colours: Colours, colour: Color) -> Style {
    match colours {
        Colours::On => Style::new().fg(colour),
        Colours::Off => Style::new(),
    }
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn agents(count: usize) -> Vec<Agent> {
        let agent = |number: usize| Agent {
            id: number.to_string(),
            name: format!("agent-{number}"),
            status: if number == 3 { Status::Waiting } else { Status::Processing },
            since: Some(Timestamp::from_millis(0)),
            turn: Some(2),
            tokens: Some(1234),
            doing: "\u{1b}[2J\u{202e}Reads\nfiles \u{9b}31m日本語".to_owned(),
            detail: None,
        };
        (0..count).map(agent).collect()
    }

    fn picture(agents: &[Agent], chosen: usize, size: (u16, u16)) -> Picture {
        Picture {
            head: head(agents),
            rows: agents.iter().map(|agent| row(agent, Timestamp::from_millis(90_000))).collect(),
            chosen: Some(chosen),
            detail: clean("Allow?\n  1. Yes\u{1b}]0;title\u{7}"),
            page: None,
            note: String::new(),
            help: "q quit".to_owned(),
            size,
        }
    }

    fn drawn(picture: &Picture) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(picture.size.0, picture.size.1)).unwrap();
        terminal.draw(|frame| draw(frame, picture, &mut TableState::new(), Colours::Off)).unwrap();
        let buffer = terminal.backend().buffer();
        let row = |y| (0..buffer.area.width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        (0..buffer.area.height).map(row).collect()
    }

    #[test]
    fn every_agent_has_a_line_and_nothing_foreign_is_obeyed() {
        let lines = drawn(&picture(&agents(20), 3, (100, 40)));
        assert_eq!(lines[0].trim_end(), "20 agents: 1 waiting, 19 processing");
        assert!(lines[1].contains("NAME") && lines[1].contains("TOKENS"), "{lines:#?}");
        assert_eq!(lines.iter().filter(|line| line.contains("agent-")).count(), 20);
        assert!(
            lines[5].starts_with("› agent-3   waiting     1m   2     1.2k    Reads files 日"),
            "{lines:#?}"
        );
        let all = lines.concat();
        assert!(all.contains("1. Yes") && !all.contains("title") && !all.chars().any(char::is_control));
    }

    #[test]
    fn a_small_screen_shows_the_chosen_agent_and_the_keys() {
        let lines = drawn(&picture(&agents(20), 17, (60, 16)));
        assert!(lines.iter().any(|line| line.starts_with("› agent-17")), "{lines:#?}");
        assert!(lines[15].starts_with("q quit"), "{lines:#?}");
        for size in [(1, 1), (3, 2), (10, 4)] {
            drawn(&picture(&agents(20), 17, size));
        }
    }
}
