//! `alhena terminal`: what can be said without a terminal.

use insta::assert_snapshot;

use crate::common::Desk;

#[test]
fn a_profile_that_cannot_be_used_is_said_with_its_line() {
    // D-30
    let desk = Desk::new();
    desk.write("bad.md", "---\nname: bad\nmcpServers: 5\n---\nYou are.\n");
    assert_snapshot!(desk.alhena(&["terminal", "here", "--profile", "./bad.md"]), @r"
    ---- stderr ----
    error: Failed to load agent profile './bad.md': ./bad.md:3: mcpServers is not a map of servers
    [exit 2]
    ");
    assert_snapshot!(desk.alhena(&["terminal", "here", "--profile", "nobody"]), @r"
    ---- stderr ----
    error: Failed to load agent profile 'nobody': there is none; looked for [DESK]/home/alhena/data/profiles/nobody.md, [DESK]/home/.aws/cli-agent-orchestrator/agent-store/nobody.md, [DESK]/home/.aws/cli-agent-orchestrator/agent-context/nobody.md, [DESK]/home/.aws/cli-agent-orchestrator/agent-context/nobody/agent.md, ./.alhena/profiles/nobody.md
    hint: There are no profiles: put NAME.md into [DESK]/home/alhena/data/profiles, or give the path of one.
    [exit 2]
    ");
}

#[test]
fn an_mcp_server_that_nobody_speaks_to_ends_and_says_why() {
    let desk = Desk::new();
    desk.program("tmux", "#!/bin/sh\necho tmux 3.4\n");
    assert_snapshot!(desk.alhena(&["terminal", "serve-mcp"]), @r"
    ---- stderr ----
    error: nobody spoke MCP: the input ended before an initialize request
    hint: An MCP client has to start it and speak first.
    [exit 2]
    ");
}
