//! What exit codes mean.

use alhena_wire::exit::{ExitMeaning, TABLE, http_status, meaning, text};

#[test]
fn codes_of_the_cli_have_their_meaning() {
    let expected = [
        (0, ExitMeaning::Done),
        (1, ExitMeaning::General),
        (41, ExitMeaning::Authentication),
        (42, ExitMeaning::Input),
        (44, ExitMeaning::Sandbox),
        (52, ExitMeaning::Config),
        (53, ExitMeaning::TurnLimit),
        (54, ExitMeaning::ToolExecution),
        (55, ExitMeaning::UntrustedWorkspace),
        (130, ExitMeaning::Cancelled),
        (199, ExitMeaning::Relaunch),
    ];
    let table: Vec<_> = TABLE.iter().map(|row| (i32::from(row.code), row.meaning)).collect();
    assert_eq!(table, expected);
    for (code, expected) in expected {
        assert_eq!(meaning(code), expected);
        assert_eq!(http_status(code), None);
        assert!(!text(code).is_empty());
    }
}

#[test]
fn http_statuses_show_modulo_256() {
    // Recorded: 400, 401, 403, 429, 499, 500, 503.
    for (code, status) in [(144, 400), (145, 401), (147, 403), (173, 429), (243, 499), (244, 500), (247, 503)]
    {
        assert_eq!(http_status(code), Some(status));
        assert_eq!(meaning(code), ExitMeaning::Http(status));
        assert_eq!(text(code), "the API answered with an HTTP error; its status modulo 256 is the code");
    }
}

#[test]
fn other_codes_are_unknown() {
    for code in
        [-15, -1, 2, 3, 127, 128, 137, 143, 174, 198, 200, 206, 242, 256, 400, 429, i32::MAX, i32::MIN]
    {
        assert_eq!(
            (meaning(code), http_status(code), text(code)),
            (ExitMeaning::Unknown, None, ""),
            "{code}"
        );
    }
}

#[test]
fn every_code_that_can_be_a_status_is_a_plausible_one() {
    let statuses: Vec<u16> = (0..=255).filter_map(http_status).collect();
    assert_eq!(statuses.len(), 41);
    assert!(statuses.iter().all(|status| (400..512).contains(status)));
}
