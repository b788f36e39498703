//! `alhena terminal`: what can be said without a terminal.

use crate::common::Desk;

#[test]
fn a_profile_that_cannot_be_used_is_said_with_its_line() {
    // D-30
    let desk = Desk::new();
    desk.write("bad.md", "---\nname: bad\nmcpServers: 5\n---\nYou are.\n");
    desk.transcript(
        r"
        $ terminal here --profile ./bad.md
        error: Failed to load agent profile './bad.md': ./bad.md:3: mcpServers is not a map of servers
        $ terminal here --profile nobody
        error: Failed to load agent profile 'nobody': there is none; looked for [DESK]/home/alhena/data/profiles/nobody.md, [DESK]/home/.aws/cli-agent-orchestrator/agent-store/nobody.md, [DESK]/home/.aws/cli-agent-orchestrator/agent-context/nobody.md, [DESK]/home/.aws/cli-agent-orchestrator/agent-context/nobody/agent.md, ./.alhena/profiles/nobody.md
        hint: There are no profiles: put NAME.md into [DESK]/home/alhena/data/profiles, or give the path of one.
        ",
    );
}
