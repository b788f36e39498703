//! Screens written by hand: the layout of the CAO document, variants that recordings lack, and impostors.

use alhena_terminal::screen::{Capture, Choice, ExtractError, Reading, Status, Turn, WaitingFor};

const TOP: &str = "▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀";
const BOTTOM: &str = "▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄";

/// A query as the document draws it.
fn query(text: &str) -> String {
    format!("{TOP}\n > {text}\n{BOTTOM}\n")
}

/// The prompt as the document draws it, with the mode above and the status bar below.
fn prompt(text: &str) -> String {
    format!(
        "                                                  YOLO mode (ctrl + y to toggle)\n{TOP}\n {text}\n{BOTTOM}\n \
         .../project (main)   no sandbox   Auto (Gemini 3) /model | 199.2 MB\n"
    )
}

const EMPTY: &str = "*   Type your message or @path/to/file";

fn completed(message: &str) -> Reading {
    Reading { message: Some(message.to_owned()), ..Reading::of(Status::Completed) }
}

fn classify(screen: &str, title: Option<&str>) -> Reading {
    Capture::new(screen).title(title.unwrap_or_default()).read()
}

fn status(screen: &str, title: Option<&str>) -> Status {
    Capture::new(screen).title(title.unwrap_or_default()).status()
}

fn last_answer(screen: &str) -> Result<String, ExtractError> {
    Capture::new(screen).last_answer()
}

fn turns(screen: &str) -> Vec<Turn> {
    Capture::new(screen).turns()
}

// D-03, D-10, D-15, D-16
#[test]
fn the_documents_idle_screen_is_idle() {
    assert_eq!(
        classify(&format!(" ███ GEMINI BANNER\n\n{}", prompt(EMPTY)), None),
        Reading::of(Status::Idle)
    );
}

// D-05, D-11 to D-13, D-18 to D-21
#[test]
fn the_documents_own_screen_is_completed_with_its_answer() {
    let screen = format!(
        " ███ GEMINI BANNER\n{}  Responding with gemini-3-flash-preview\n✦ Hello! How can I help you today?\n\n{}",
        query("say hello"),
        prompt(EMPTY)
    );
    assert_eq!(classify(&screen, None), completed("Hello! How can I help you today?"));
}

// D-07, D-08
#[test]
fn padding_below_the_prompt_does_not_matter() {
    let padded = |rows: usize| {
        format!(
            "{TOP}\n {EMPTY}\n{BOTTOM}\n{} .../p (main)   sandbox   Auto /model | 2 MB\n",
            "\n".repeat(rows)
        )
    };
    for rows in [0, 1, 32, 60, 200] {
        assert_eq!(status(&padded(rows), None), Status::Idle, "{rows} rows");
    }
}

// D-04
#[test]
fn a_turn_without_a_prompt_below_it_is_still_going_on() {
    let cut = format!(
        "{}  Responding with gemini-3-flash-preview\n✦ Here's the function:\n\n",
        query("write a function")
    );
    assert_eq!(status(&cut, None), Status::Processing);
    assert_eq!(status(&query("only a query"), None), Status::Processing);
    let tool = format!("{}╭────────────────╮\n│ ✓  ReadFile x  │\n╰────────────────╯\n", query("read"));
    assert_eq!(status(&tool, None), Status::Processing);
}

// D-06, D-09
#[test]
fn errors_count_only_where_the_cli_reports_them() {
    let answer = format!(
        "{}✦ Error: you need a return statement.\n  APIError: no\n\n{}",
        query("fix it"),
        prompt(EMPTY)
    );
    assert_eq!(classify(&answer, None), completed("Error: you need a return statement.\nAPIError: no"));
    let failed = format!("{}✕ [API Error: quota]\n\n{}", query("fix it"), prompt(EMPTY));
    let error = Some("[API Error: quota]".to_owned());
    assert_eq!(
        classify(&failed, None),
        Reading { status: Status::Error, error, ..Reading::of(Status::Error) }
    );
    let outside = "Error: Failed to connect to Gemini API.\n";
    let error = Some("Error: Failed to connect to Gemini API.".to_owned());
    assert_eq!(
        classify(outside, None),
        Reading { status: Status::Error, error, ..Reading::of(Status::Error) }
    );
}

// D-06, D-09
#[test]
fn the_documents_words_are_an_error_as_the_clis_own_last_word_and_text_in_an_answer() {
    let screen = |body: &str| classify(&format!("{}{body}\n\n{}", query("fix it"), prompt(EMPTY)), None);
    let failed = |error: &str| Reading { error: Some(error.to_owned()), ..Reading::of(Status::Error) };
    for word in ["Error: broken", "APIError: 500", "ConnectionError: refused"] {
        assert_eq!(screen(word), failed(word));
        let after = screen(&format!("✦ Half of it.\n\n{word}"));
        assert_eq!((after.status, after.error.as_deref()), (Status::Error, Some(word)));
        // The model went on after it.
        assert_eq!(screen(&format!("{word}\n\n✦ Done.")), completed("Done."));
        // The model speaks of it.
        assert_eq!(screen(&format!("✦ {word}\n\n  {word}")), completed(&format!("{word}\n\n{word}")));
    }
    let traceback = "Traceback (most recent call last):\n  File \"x.py\", line 1\nValueError: no";
    assert_eq!(screen(traceback), failed("ValueError: no"));
    let quoted = traceback.replace('\n', "\n  ");
    assert_eq!(screen(&format!("✦ It says:\n\n  {quoted}")).status, Status::Completed);
}

// D-12, D-14, D-20
#[test]
fn the_model_line_tools_and_chrome_are_not_part_of_the_answer() {
    let screen = format!(
        "{}  Responding with gemini-3-flash-preview\n✦ Let me read the file.\n╭──────────────────────────────╮\n\
         │ ✓  ReadFile test.txt         │\n╰──────────────────────────────╯\n✦ It contains test data.\n \
         .../dir (main)   no sandbox   Auto (Gemini 3) /model | 100 MB\n {EMPTY}\n",
        query("read the file")
    );
    assert_eq!(classify(&screen, None), completed("Let me read the file.\n\nIt contains test data."));
    let turn = &turns(&screen)[0];
    assert_eq!((turn.tools[0].name.as_str(), turn.tools[0].description.as_str()), ("ReadFile", "test.txt"));
}

// D-17
#[test]
fn colours_do_not_matter() {
    let screen = format!(
        "{TOP}\n \x1b[38;2;203;166;247m> \x1b[38;2;108;112;134mhello\x1b[39m\n{BOTTOM}\n\x1b[38;2;203;166;247m✦ \x1b[39mHi \
         \x1b[1mthere\x1b[0m!\n\n\x1b[30m{TOP}\n\x1b[39m \x1b[38;2;243;139;168m*\x1b[39m   Type your message\n{BOTTOM}\n"
    );
    assert_eq!(classify(&screen, None), completed("Hi there!"));
}

// D-22, D-23
#[test]
fn the_errors_of_extraction_have_the_documents_words() {
    let none = last_answer("Some random text without query box").unwrap_err();
    assert_eq!(
        (none, none.to_string().as_str()),
        (ExtractError::NoQuery, "No Gemini CLI user query found - no > prefix detected")
    );
    let empty = last_answer(&format!("{} {EMPTY}\n", query("test message"))).unwrap_err();
    assert_eq!(
        (empty, empty.to_string().as_str()),
        (ExtractError::Empty, "Empty Gemini CLI response - no content found after query")
    );
}

// D-24
#[test]
fn the_last_turn_counts_and_no_prompt_is_needed_below_it() {
    let screen = format!(
        "{}✦ First answer\n{}✦ Second answer\n✦ It has two lines.\n",
        query("first"),
        query("second")
    );
    assert_eq!(last_answer(&screen), Ok("Second answer\nIt has two lines.".to_owned()));
    let queries: Vec<String> = turns(&screen).into_iter().map(|turn| turn.query).collect();
    assert_eq!(queries, ["first", "second"]);
}

#[test]
fn a_query_of_several_rows_is_not_part_of_the_answer() {
    let long = "Analyze Dataset A: [1, 2, 3, 4, 5]. Calculate mean, median,\n   and standard deviation.";
    let screen = format!("{}✦ - Mean: 3.0\n✦ - Median: 3.0\n {EMPTY}\n", query(long));
    assert_eq!(last_answer(&screen), Ok("- Mean: 3.0\n- Median: 3.0".to_owned()));
}

#[test]
fn text_at_column_0_after_a_star_keeps_its_own_indentation() {
    let screen = format!(
        "{}✦ Here is the implementation:\n\ndef greet(name):\n    return f\"Hello, {{name}}!\"\n\n{}",
        query("code"),
        prompt(EMPTY)
    );
    let code = "Here is the implementation:\n\ndef greet(name):\n    return f\"Hello, {name}!\"";
    assert_eq!(classify(&screen, None), completed(code));
}

#[test]
fn a_spinner_above_the_prompt_is_work_whatever_came_before() {
    let screen = format!(
        "{}✦ Delegating.\n⠴ Refining Delegation Parameters (esc to cancel, 50s)\n\n 1 MCP server{}",
        query("delegate"),
        prompt(EMPTY)
    );
    assert_eq!(status(&screen, None), Status::Processing);
    assert_eq!(last_answer(&screen), Ok("Delegating.".to_owned()));
}

#[test]
fn a_draft_in_the_prompt_changes_nothing() {
    let before = format!("{}✦ Done.\n\n", query("work"));
    for draft in
        ["* reply with exactly: Hello", "> and another thing\n   in two rows", "! ls -la", "> > quoted"]
    {
        assert_eq!(classify(&(before.clone() + &prompt(draft)), None), completed("Done."), "{draft}");
        assert_eq!(status(&prompt(draft), None), Status::Idle, "{draft}");
    }
}

/// The layout of 0.61.0, with anything in the answer.
fn modern(answer: &str) -> String {
    let (top, bottom) = (BOTTOM, TOP);
    let rule = "─".repeat(75);
    format!(
        "{top}\n > question\n{bottom}\n✦ {}\n\n\n{:>74}\n{rule}\n Shift+Tab to accept edits\n{top}\n >   Type your message or \
         @path/to/file\n{bottom}\n workspace (/directory)      sandbox      /model\n ~/project       no sandbox   gemini\n",
        answer.replace('\n', "\n  "),
        "? for shortcuts"
    )
}

#[test]
fn an_answer_can_contain_any_chrome_and_stays_text() {
    let rule = "─".repeat(70);
    let impostors = [
        " >   Type your message or @path/to/file".to_owned(),
        format!("{TOP}\n > not a query\n{BOTTOM}"),
        " ⠋ Thinking... (esc to cancel, 3s)".to_owned(),
        "⠋ Thinking... (esc to cancel, 3s)".to_owned(),
        "✕ [API Error: fake]".to_owned(),
        "ℹ Request cancelled.".to_owned(),
        "✦ a star".to_owned(),
        "> quoted\n> again".to_owned(),
        format!("{rule}\n Shift+Tab to accept edits"),
        " workspace (/directory)      sandbox      /model".to_owned(),
        "╭────────────────────╮\n│ Allow execution?   │\n│ ● 1. Allow once    │\n╰────────────────────╯"
            .to_owned(),
        "│ ? Shell  rm -rf /\n│ ● 1. Allow once".to_owned(),
        "Agent powering down. Goodbye!".to_owned(),
        "user@host:~/project$ exit".to_owned(),
        "Error: no\nTraceback (most recent call last):".to_owned(),
        "? for shortcuts\nYOLO Ctrl+Y".to_owned(),
        "✓  ReadFile  a.txt".to_owned(),
        "User:  hello\nModel:  hello".to_owned(),
        "Press Ctrl+C again to exit.".to_owned(),
        "Gemini CLI is restarting to apply the trust changes...".to_owned(),
        "Tips for getting started:".to_owned(),
        "Queued (press ↑ to edit):".to_owned(),
    ];
    for impostor in impostors {
        for answer in [format!("Before.\n\n{impostor}\n\nAfter."), format!("{impostor}\n\nAfter.")] {
            assert_eq!(classify(&modern(&answer), Some("◇  Ready (x)")), completed(&answer), "{answer}");
            assert_eq!(status(&modern(&answer), None), Status::Completed, "{answer}");
        }
    }
}

#[test]
fn a_title_of_work_wins_over_a_screen_that_looks_done() {
    let done = modern("All done.");
    assert_eq!(status(&done, Some("✦  Working… (x)")), Status::Processing);
    assert_eq!(status(&done, Some("⏲  Working… (x)")), Status::Processing);
    assert_eq!(status(&done, Some("✦  Weighing options (x)")), Status::Processing);
    assert_eq!(status(&done, Some("✋  Action Required (x)")), Status::Waiting);
    for silent in ["Gemini CLI (x)", "", "hostname"] {
        assert_eq!(status(&done, Some(silent)), Status::Completed, "{silent}");
    }
}

#[test]
fn a_dialog_wins_over_any_title() {
    let dialog = format!(
        "{BOTTOM}\n > q\n{TOP}\n✦ I will.\n\n╭─────────────────────────────────╮\n│ ? Shell  rm -f x                │\n│ ╭─────────────────────────────╮ \
         │\n│ │ rm -f x                     │ │\n│ ╰─────────────────────────────╯ │\n│ Allow execution of [Shell]?     │\n│{:33}│\n\
         │   1. Allow once                 │\n│ ● 2. Allow for this session     │\n│   3. No, suggest changes (esc)  │\n\
         ╰─────────────────────────────────╯\n",
        ""
    );
    for title in [None, Some("◇  Ready (x)"), Some("✦  Working… (x)"), Some("✋  Action Required (x)")]
    {
        let reading = classify(&dialog, title);
        let waiting = reading.waiting_for.unwrap();
        let choice = |number, label: &str, selected| Choice {
            number,
            label: label.to_owned(),
            selected,
            checked: None,
        };
        assert_eq!((reading.status, reading.message.as_deref()), (Status::Waiting, Some("I will.")));
        assert_eq!(
            (waiting.kind, waiting.question.as_str()),
            (WaitingFor::ToolApproval, "Allow execution of [Shell]?")
        );
        let options = [
            choice(1, "Allow once", false),
            choice(2, "Allow for this session", true),
            choice(3, "No, suggest changes (esc)", false),
        ];
        assert_eq!(waiting.options, options);
        assert_eq!(waiting.detail.as_deref(), Some("Shell  rm -f x\nrm -f x"));
    }
}

#[test]
fn text_of_the_model_inside_a_dialog_does_not_change_its_kind() {
    let dialog = |middle: &str, first: &str| {
        format!(
            "╭──────────────────────────────────────────────────╮\n│ {middle:48} │\n│ ● 1. {first:43} │\n│   2. Stop                                        │\n╰──────────────────────────────────────────────────╯\n"
        )
    };
    let kind = |screen: String| classify(&screen, None).waiting_for.unwrap().kind;
    assert_eq!(kind(dialog("echo Do you trust this folder?", "Allow once")), WaitingFor::ToolApproval);
    assert_eq!(kind(dialog("A potential loop was detected", "Allow once")), WaitingFor::ToolApproval);
    assert_eq!(kind(dialog("Usage limit reached for x.", "Keep trying")), WaitingFor::Quota);
    assert_eq!(kind(dialog("Model \"x\" was not found or is invalid.", "Keep trying")), WaitingFor::Model);
    assert_eq!(kind(dialog("Something new", "Whatever")), WaitingFor::Other);
}

#[test]
fn nothing_on_the_screen_is_a_start_and_somebody_elses_screen_is_unknown() {
    assert_eq!(status("", None), Status::Starting);
    assert_eq!(status("\n\n\n", Some("")), Status::Starting);
    assert_eq!(status("user@host:~$ gemini\n\n", None), Status::Unknown);
    assert_eq!(status("user@host:~$ gemini\n\n", Some("◇  Ready (x)")), Status::Starting);
    assert_eq!(status("total 12\ndrwx a\ndrwx b\n", Some("vim")), Status::Unknown);
}

#[test]
fn a_frame_of_which_only_the_banner_is_drawn_is_not_the_end() {
    let banner = "$ gemini\n\n ▝▜▄     Gemini CLI v0.61.0\n   ▝▜▄\n  ▗▟▀    Authenticated with gemini-api-key /auth\n ▝▀\n\n\n\
                  Tips for getting started:\n1. Create GEMINI.md files to customize your interactions\n2. /help\n\n\n";
    assert_eq!(status(banner, Some("◇  Ready (x)")), Status::Starting);
    assert_ne!(status(banner, None), Status::Exited);
    assert_eq!(status(&format!("{banner}Error: something broke\n$ "), None), Status::Exited);
}

#[test]
fn a_shell_below_the_prompt_means_that_the_cli_is_gone() {
    let done = modern("Done.");
    assert_eq!(
        classify(&format!("{done}user@host:~/project$ "), Some("◇  Ready (x)")),
        Reading::of(Status::Exited)
    );
    assert_eq!(status(&format!("{done}\nKilled\n$ "), Some("✦  Working… (x)")), Status::Exited);
    let farewell =
        "╭──────────────────────╮\n│  Agent powering down. Goodbye!  │\n╰──────────────────────╯\n";
    assert_eq!(status(farewell, None), Status::Exited);
    assert_eq!(status(&format!("{farewell}$ ls\nx\n$ "), None), Status::Exited);
}

#[test]
fn a_wrapped_paragraph_is_one_line_and_a_short_one_stays_two() {
    let wrapped = "The quick brown fox jumps over the lazy dog and then it walks on and on\nuntil the end.";
    assert_eq!(last_answer(&modern(wrapped)), Ok(wrapped.replace('\n', " ")));
    let short = "The quick brown fox.\nUntil the end.";
    assert_eq!(last_answer(&modern(short)), Ok(short.to_owned()));
}

#[test]
fn the_given_width_wins_over_the_drawn_one() {
    let text = "The quick brown fox jumps over the lazy dog and then it walks on and on\nuntil the end.";
    assert_eq!(Capture::new(&modern(text)).columns(120).last_answer(), Ok(text.to_owned()));
}

#[test]
fn a_query_without_an_answer_is_work_that_begins_unless_it_is_a_command() {
    let sent = |query: &str| modern("X").replace("✦ X\n", "").replace("question", query);
    assert_eq!(status(&sent("hello"), Some("◇  Ready (x)")), Status::Processing);
    assert!(Capture::new(&sent("hello")).is_unanswered());
    assert_eq!(status(&sent("/theme"), Some("◇  Ready (x)")), Status::Idle);
    assert!(!Capture::new(&modern("X")).is_unanswered());
}

#[test]
fn json_has_the_documented_keys_only() {
    let json = serde_json::to_string(&classify(&modern("Done."), None)).unwrap();
    assert_eq!(json, r#"{"status":"completed","message":"Done."}"#);
    let idle = serde_json::to_string(&classify(&prompt(EMPTY), None)).unwrap();
    assert_eq!(idle, r#"{"status":"idle"}"#);
}

#[test]
fn without_borders_queries_stand_at_column_1_after_a_blank_row() {
    let rule = "─".repeat(60);
    let screen = format!(
        "\n > first\n   in two rows\n\n✦ One.\n\n  > quoted\n\n > second\n\n✦ Two.\n\n\n{:>59}\n{rule}\n Shift+Tab to accept edits\n\n >   \
         Type your message or @path/to/file\n\n workspace (/directory)      /model\n",
        "? for shortcuts"
    );
    assert_eq!(classify(&screen, None), completed("Two."));
    let turns: Vec<(String, String)> =
        turns(&screen).into_iter().map(|turn| (turn.query, turn.answer)).collect();
    let expected = [("first\nin two rows", "One.\n\n> quoted"), ("second", "Two.")];
    assert_eq!(turns, expected.map(|(query, answer)| (query.to_owned(), answer.to_owned())));
}

#[test]
fn an_answer_that_is_being_written_is_work_even_if_nothing_else_is_visible() {
    assert_eq!(status("✦ Here is the beginning of", None), Status::Processing);
    assert_eq!(status("  and here is its middle\n", None), Status::Unknown);
}

#[test]
fn a_prompt_that_was_queued_while_servers_start_is_work_until_its_query_is_drawn() {
    let notice = "ℹ Waiting for MCP servers to initialize... Slash commands are still available and prompts\n  \
                  will be queued.\n\n";
    let queued = format!("{notice}{}", prompt(EMPTY));
    assert_eq!(status(&queued, Some("◇  Ready (project)")), Status::Processing);
    let query = format!("{TOP}\n > hello\n{BOTTOM}\n✦ Hi.\n\n");
    let answered = format!("{notice}{query}{}", prompt(EMPTY));
    assert_eq!(status(&answered, Some("◇  Ready (project)")), Status::Completed);
    let before = format!("{query}ℹ Something else.\n\n{}", prompt(EMPTY));
    assert_eq!(status(&before, Some("◇  Ready (project)")), Status::Completed);
}
