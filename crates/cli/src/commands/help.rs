//! `alhena help [TOPIC]`: the tables that the program itself is made from.

use alhena_agent::env::Environment;
use alhena_model::FailureKind;
use clap::CommandFactory;

use super::Cli;
use crate::command_error::{CommandError, Done};
use crate::config::{Owner, keys, user_file};
use crate::output::{print, print_json};
use crate::views::Name;

/// Explain a command or a topic: exit-codes, environment, views, config, hooks, budget, control, schema, batch, job, result.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A command with its subcommands, or exit-codes, environment, views, config, hooks, budget, control, schema, batch, job, result.
    topic: Vec<String>,
}

pub fn execute(args: Args) -> Done {
    let words: Vec<&str> = args.topic.iter().map(String::as_str).collect();
    Ok(match words.as_slice() {
        [] => print(Cli::command().render_help().to_string().trim_end()),
        ["exit-codes"] => print(&exit_codes()),
        ["environment"] => print(&environment()),
        ["views"] => print(&views()),
        ["config"] => print(&config()),
        ["hooks"] => print(HOOKS),
        ["budget"] => print(BUDGET),
        ["control"] => print(CONTROL),
        ["schema"] => print(SCHEMA),
        ["result"] => print(RESULT.trim_end()),
        ["job"] => print_json(&alhena_batch::job::schema()),
        path => {
            let mut command = command(path).ok_or_else(|| {
                CommandError::usage(
                    format!("there is no command or topic {:?}", path.join(" ")),
                    "Topics are exit-codes, environment, views, config, hooks, budget, control, schema, batch, job and result; `alhena --help` lists the commands.",
                )
            })?;
            let help = command.render_long_help().to_string();
            match path {
                ["batch"] => print(&format!("{}\n\n{BATCH}", help.trim_end())),
                ["worker"] => print(&format!("{}\n\n{WORKER}", help.trim_end())),
                ["serve"] => print(&format!("{}\n\n{SERVE}", help.trim_end())),
                _ => print(help.trim_end()),
            }
        }
    })
}

const HOOKS: &str = r#"Hooks are shell commands that decide while Gemini CLI works: --hook EVENT=COMMAND

Events:
  before-tool   a tool is about to run
  after-tool    a tool ran, and the model has not seen its result yet
  before-model  the model is about to be asked

The command gets the question as JSON on stdin: event, session_id, dir, and by event tool, input, result, request.
It prints the decision as JSON on stdout:
  {"decision": "allow"}                          it goes on
  {"decision": "allow", "input": {...}}          with these arguments instead (before-tool)
  {"decision": "allow", "context": "..."}        and the model is told this, too (after-tool; before-model for this call, 0.42)
  {"decision": "deny", "reason": "..."}          it does not happen, and the model is told why
  {"decision": "stop", "reason": "..."}          the run ends here, as cancelled

The command runs in the folder that is worked in. A model call that is denied ends the run, as stop does.
Whatever else a command prints, exits with or leaves undecided after --hook-timeout means deny; a warning then names the
hook and what went wrong. Before a model call that fails the run. If Gemini CLI goes on without a decision, because the hook was
killed, the run is stopped and fails (protocol).

--confirm TOOL asks you instead, on the terminal, before such a tool runs: with its diff or its command, after all hooks. TOOL is a
name, or run_shell_command(PREFIX) for commands that begin so or may run such. Everything but yes is no; a reason goes to the
model. What nobody answers within --permission-timeout (5m) is denied. Without a terminal it is refused before the start.

On warm agents (run --transport acp, chat, acp; Gemini CLI 0.43 and newer) before-tool is asked before rules, approval mode and
people. What is different there:
  - Other arguments cannot be put in: the model is told them and calls again; its own never count.
  - A context after a tool is told with each model call of the turn. Deny after a tool ends the turn.
  - Sub-agents cannot be begun with before-tool, and there is no plan mode.

Example:
  alhena run --trust --approval yolo \
    --hook 'before-tool=jq -c "if .tool == \"run_shell_command\" then {decision: \"deny\", reason: \"no shell\"} else {decision: \"allow\"} end"' \
    "Tidy up""#;

const SERVE: &str = "The API, for programs (Authorization: Bearer TOKEN; `alhena serve token` prints it):
  POST /v1/runs                     the options of `run` by name: {\"prompt\": \"...\", \"dir\": \"...\", \"approval\": \"...\"}
  GET  /v1/runs, /v1/runs/{id}      what there is, with the outcome once it is over
  GET  /v1/runs/{id}/events         server-sent events; Last-Event-ID goes on, Accept: application/jsonl gives lines
  POST /v1/runs/{id}/cancel         stops it; again, at once
  GET  /v1/runs/{id}/outcome        how it ended
  GET  /v1/runs/{id}/recording      everything that the CLI wrote, as a tar file
  POST /v1/conversations            a warm agent; then .../prompt {\"text\"}, .../cancel, .../events
  PATCH, DELETE /v1/conversations/{id}          another mode or model; the end
  POST /v1/conversations/{id}/permissions/{id}  {\"decision\": \"allow\" | \"always\" | \"reject\", \"reason\"}
  GET  /v1/now, /v1/sessions, /v1/usage, /v1/terminals, /v1/batches, /v1/doctor, /v1/capabilities, /v1/version, /v1/me
  GET  /openapi.json                all of it

An Idempotency-Key with a start makes the same request again the same run. Errors are application/problem+json with kind and hint.

Requests may name folders and files below --root, modes up to --max-approval, variables of --allow-env, and programs only with
--allow-programs. Host and Origin have to be the server's own, a --host, or an --allow-origin.

Runs and conversations that are over are kept with their events in Alhena's state directory, --keep of each for --keep-for.

Exit codes: 0 ended by a signal, 1 it could not listen or its state cannot be used, 2 wrong usage: options, a --root that is not there, files for TLS.";

const BUDGET: &str = "What a run may spend:
  --max-tokens N   tokens of prompts (cached or not), answers and thoughts, sub-agents included
  --max-cost USD   dollars, by a dated table of prices that --prices FILE or ALHENA_PRICES replace
  --max-calls N    model calls, failed attempts included

Before each model call, and before google_web_search and web_fetch, Gemini CLI asks Alhena. When a limit is reached the call is
not made: the one that passes it is the last. A warning comes at 80 %. The failure is budget (exit code 9), with what was done until
then in the outcome. A run that spent more than a limit is always a failure.
A model without a price and --max-cost do not go together: that is refused before the start, or at its first call.

Calls of the model router (name a model by -m), of loop checks and of summaries count, but cannot be refused.

When the API limits requests (429):
  --on-rate-limit fail         the run fails (exit code 6) when Gemini CLI has given up (the default)
  --on-rate-limit wait[=TIME]  it waits as long as the API says, in a row no longer than TIME (5m); a daily quota is not
                               waited for
  --on-rate-limit model=NAME   it goes on with that model in the same session, also after a daily quota

Each decision is a warning, in the events and in the outcome. What was done is not done again, and what all attempts took
is summed and counts for the limits above.

Examples:
  alhena run --max-cost 0.50 --max-calls 30 \"Fix the failing test\"
  alhena run -m gemini-2.5-pro --on-rate-limit model=gemini-2.5-flash \"Fix the failing test\"";

const CONTROL: &str = r#"`alhena chat --control` lets a program hold a conversation: one JSON object a line, both ways. The Python and Node packages
are made of it, and what is said to it is the control protocol of the Claude Agent SDK.

The program writes to stdin:
  {"type": "user", "message": {"role": "user", "content": "..."}}                        a prompt; those that come early wait
  {"type": "control_request", "request_id": "1", "request": {"subtype": "interrupt"}}    end the turn, not the conversation
  ... {"subtype": "set_model", "model": "..."}                                           from the next prompt on
  ... {"subtype": "set_permission_mode", "mode": "auto-edit"}                            from now on
  ... {"subtype": "initialize"}                                                          an answer says that it has begun
  {"type": "control_response", "response": {"subtype": "success", "request_id": "alhena-1", "response": ANSWER}}
      ANSWER is {"behavior": "allow"}, with "remember": true for the same again in this conversation,
      or {"behavior": "deny", "message": "...", "interrupt": false}. Everything else means deny.

It reads from stdout:
  what `alhena run --as message-lines` prints: for each prompt {"type": "event"} and {"type": "message"}, then one {"type": "result"}
  {"type": "control_response", "response": {"subtype": "success" | "error", "request_id": "1", ...}}
  {"type": "control_request", "request_id": "alhena-1", "request": {"subtype": "can_use_tool", "tool_name", "input", "tool_use_id", "title", ...}}
  {"type": "control_cancel_request", "request_id": "alhena-1"}                           nobody answered in time, or the turn is over

A line that is not understood is passed over, and said on stderr; a request is answered with an error.
The conversation ends when stdin ends and the last turn is over, by a signal, or when nobody reads stdout. A signal cancels the
turn, which still gets its result; a second one does not wait for it."#;

const SCHEMA: &str = r#"An answer to compute with: --schema FILE|JSON

The answer of the model has to fit a JSON schema, of any draft. The outcome then has it as `data`; --as data prints only
that, and is what is printed anyway where stdout is no terminal.

The model gets a tool, submit_result, for its answer, from Alhena and for this run only. A valid answer ends the run: the
model is not asked again. JSON that it says instead counts, too, the last in its text. What does not fit is told to the model
in the same session, with the path of each error, --schema-attempts more times (2). Then the run has failed with `schema`
(exit code 8); `failure.errors` and `failure.answer` in the outcome say what was wrong with what.

Whatever a schema refers to has to be in it: nothing is fetched. Formats are checked. --approval plan lets no such tool run;
there the model is told to answer in text. Works headless and over ACP (0.45.2 and newer), not with --sandbox.

Example:
  alhena run --schema '{"type": "object", "properties": {"files": {"type": "integer"}}, "required": ["files"]}' \
    "How many files are here?""#;

/// Made from the type, which a test sees to.
const RESULT: &str = include_str!("result.schema.json");

const BATCH: &str = r#"JOBS has one job a line, as a JSON object:
  {"id": "a", "prompt": "Explain src/a.rs", "dir": "app", "timeout": "5m", "allow_tool": ["read_file"]}
  id                     what it is called in the results; its line's number by default
  prompt, prompt_file    what to do
  any option of `run`    by its name, with underscores: true or false, a text, a number, a list; `args` stands for what follows --;
                         none of as, output, quiet, verbose, no_stdin and confirm, which are for people at a terminal
  shared: true           do not wait for others that may change the same directory
  copy: true             work in a private copy of `dir`
  git: {"url", "ref"}    work in a private checkout of a repository, in `dir` of it; `ref` is a branch, a tag or a commit
  outputs: ["report.md"] with copy or git: files to give back whole, by paths or patterns (dist/**/*.json), ignored ones too
`alhena help job` prints the JSON schema of it. A file that ends in .csv or .tsv has the names in its first row; --template 'Review
{file}' makes prompts of other columns. --set NAME=VALUE is for all jobs that do not say it. `-` reads stdin, while it is written.
Whatever is wrong with a file is told with its line before anything runs. On stdin a line that is no job fails by itself.

RESULTS has one result a line, in the order in which jobs end (--ordered: in that of the jobs, when it is over). `alhena help result`
prints the JSON schema of it: {"id", "attempt", "outcome", "patch"?, "outputs"?, "commit"?, "worker"?, "earlier"?, "job", "at"}
  outcome   as `run --as outcome` prints it
  patch     what a job with `copy` or `git` changed, for `git apply`; empty when it changed nothing
  outputs   the files that the job names so: {"path", "text"}, or "base64" for what is no text; 16 MB at most
  commit    what a job with `git` worked on
  worker    the name of the worker that did it, with --nats
  earlier   attempts before the last
  job       a mark of all that the job said
A result is on the disk before its job counts as done, and the file is the journal: the same command again goes on where it
stopped, after whatever. --again failed does again what failed. Jobs that are others now are refused, unless --again changed.
--summary FILE.html writes the figures as a page with plots, also of a batch that was stopped.

Jobs that may change something in the same directory run one after another. Those with a place of their own run side by side: a copy
has all that is in `dir`, links as links, by reference where the file system can; a checkout has its commit, and no submodules. Both
are gone when the job is over. Nothing of a repository runs: no hooks, no filters, no helpers. What .gitignore names is no change,
unless git knew it before. A patch of more than 16 MB is not given, which the outcome's warnings say. The program git is needed.
When the API says to wait, all jobs wait so long. What may pass is repeated, --retries times, unless it changed something already.
^C once: no more jobs begin, and those that run finish. Twice: they are stopped, and are not done.

Exit codes: 0 all jobs succeeded, 1 some did not, 2 nothing was run, 6 the quota of the day is used up, 9 --max-cost is reached, 130 stopped."#;

const WORKER: &str = r#"Many machines do one batch over NATS JetStream (`nats-server -js`, 2.10 or newer):
  alhena worker --nats nats://queue:4222 --root /srv/work          on each machine that is to work
  alhena batch jobs.jsonl --into results.jsonl --nats nats://queue:4222
The jobs file, the results file and all options of `batch` are the same as on one machine. The submitter may be killed and started
again with the same command, also when everything was done meanwhile; so may workers and servers. A job has one result, and it counts once.
The batch's name is said at the start and is the same for the same results file on the same machine; --name gives another.
  alhena batch status [NAME]     how far it is, from anywhere
  alhena batch cancel NAME       what nobody began leaves the queue, what runs is stopped; the same command opens it again
  alhena batch results NAME      the results that are there
  alhena batch forget NAME       takes all of it from the server, where it is kept for 14 days otherwise

What travels: prompts, instructions and schemas, also from files; the folder `dir` with "copy": true, without its .git; `git` by its address. A `dir` without
them is a path below the worker's --root. What changed in a private place comes back as the result's patch, and files that the job names in outputs as they are. Options that would choose a
program, a file, a variable or a session of the worker do not travel: gemini, agent_command, mcp_server, hook, args, env, sandbox, policy,
rules, prices, cassette, record, resume, session_id. Files with defaults (`alhena help config`) do not count; --set does.

What a worker allows: jobs may have files edited below its root, if they ask for auto-edit; --max-approval default lets models read only. yolo,
and `allow` and `allow_tool`, which need yolo, are refused unless --max-approval yolo says so. It uses its own key. Settings, hooks and MCP servers of folders never count on it. Whoever may put jobs into the queue
may spend its quota, and with --max-approval yolo run any command as its user: give the server users, and each worker a user of its own.

When the API tells one worker to wait, all with the same --quota wait. A job whose workers die five times is buried: it fails, and is kept in the
stream alhena-dead. A machine without Gemini CLI or without space gives its job back and ends.
^C once: no more jobs are taken, and those that run finish. Twice: they are stopped and given to others at once. ^C at the submitter takes back
what nobody works on; a worker that is not heard for two leases counts as gone.

TLS by tls://HOST or --nats-ca; credentials by --nats-creds, --nats-nkey, --nats-user or a user in the address, else by variables as the
`nats` command has them: NATS_URL, NATS_CREDS, NATS_NKEY, NATS_USER, NATS_PASSWORD, NATS_TOKEN, NATS_CA, NATS_CERT, NATS_KEY.

Exit codes: 0 ended as it was told, 2 wrong usage or no server that can be used, 3 no Gemini CLI, 130 stopped by a second ^C; what keeps this machine
from working ends it with the code of that failure. Of `batch status`, `cancel`, `results` and `forget`: 0, 1 some results cannot be had, 2 no such batch or no server."#;

/// The command at the end of a path such as `sessions list`.
fn command(path: &[&str]) -> Option<clap::Command> {
    let command =
        path.iter().try_fold(Cli::command(), |command, name| command.find_subcommand(name).cloned())?;
    Some(command.bin_name(format!("alhena {}", path.join(" "))))
}

/// Made from the table of failure kinds, so that it cannot disagree with what the program does.
fn exit_codes() -> String {
    let meanings = [
        (0, "success"),
        (1, "the run failed"),
        (2, "wrong usage"),
        (3, "Gemini CLI not found"),
        (4, "authentication"),
        (5, "untrusted folder"),
        (6, "rate limited"),
        (7, "turn limit"),
        (8, "no answer that fits the schema"),
        (9, "budget used up"),
        (alhena_terminal::WAITING, "an agent in a terminal waits for somebody to answer"),
        (124, "timeout or stall"),
        (130, "cancelled"),
    ];
    let mut text = String::from("Exit codes of alhena:\n");
    for (code, meaning) in meanings {
        let kinds: Vec<String> = FailureKind::all()
            .filter(|kind| kind.exit_status() == code)
            .filter_map(|kind| serde_json::to_value(kind).ok()?.as_str().map(str::to_owned))
            .collect();
        text.push_str(&format!("  {code:>3}  {meaning}"));
        if !kinds.is_empty() {
            text.push_str(&format!(" ({})", kinds.join(", ")));
        }
        text.push('\n');
    }
    text.trim_end().to_owned()
}

fn environment() -> String {
    let mut text = String::from("Environment variables:\n");
    for variable in alhena_agent::env::TABLE {
        text.push_str(&format!("  {}\n      {}\n", variable.name, variable.meaning));
    }
    text.trim_end().to_owned()
}

fn config() -> String {
    let environment = Environment::of_process();
    let file = user_file(&environment)
        .map_or("none: ALHENA_CONFIG is empty".to_owned(), |file| file.display().to_string());
    let mut text = format!(
        "Defaults of `alhena run` can stand in two files, as KEY = VALUE (TOML):\n  \
         your own      {file}\n  \
         a folder's    .alhena/config.toml in the working directory, if Gemini CLI trusts the folder\n\n\
         The command line wins over the folder's file, and that over your own. --no-config, or an empty\n\
         ALHENA_CONFIG, leaves both alone. `alhena doctor` shows what is in force.\n\n\
         Keys are the options of `alhena run`, with - or _. Relative paths start in the working directory.\n\
         deny, deny-tool and ask are added to those of the other file and of the command line.\n"
    );
    let lists = [
        (
            Owner::Project,
            "Keys for both files. A folder cannot set approval to yolo, turn the sandbox off, or raise\n\
             max-turns, max-tokens, max-cost and max-calls. Batches and the server take these keys, and trust:",
        ),
        (Owner::User, "Keys for your own file:"),
    ];
    let both = lists.map(|(owner, title)| (keys(owner), title));
    let width = both.iter().flat_map(|(keys, _)| keys).map(|(name, _)| name.len()).max().unwrap_or(0);
    for (keys, title) in both {
        text.push_str(&format!("\n{title}\n"));
        for (name, meaning) in keys {
            text.push_str(&format!("  {name:<width$}  {meaning}\n"));
        }
    }
    text.push_str(
        "\nExample:\n  model = \"gemini-2.5-flash\"\n  approval = \"auto-edit\"\n  timeout = \"1h30m\"\n  deny = [\"edit(.env)\"]",
    );
    text
}

fn views() -> String {
    let mut text = String::from("Views, for --as:\n");
    let width = Name::table().iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, meaning) in Name::table() {
        text.push_str(&format!("  {name:<width$}  {meaning}\n"));
    }
    text.trim_end().to_owned()
}
