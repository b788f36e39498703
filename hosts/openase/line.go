// Code generated from the Rust types. DO NOT EDIT.
// To renew: UPDATE_SCHEMAS=1 cargo test -p alhena-hosts --test it schemas

package openase

import (
	"encoding/json"
	"time"
)

// Line: One line.
//
// It is a pointer to one of the types below, by the value of "type", or to UnknownLine.
type Line interface {
	// Head is what every Line has.
	Head() LineHead
}

// LineHead is what every Line has.
type LineHead struct {
	// Which of the types it is.
	Type string `json:"type"`

	// Upstream: when; the time of arrival where the CLI does not say it.
	At time.Time `json:"at"`

	// Form: whether Alhena worked out that it happened; absent when the CLI said it.
	Derived bool `json:"derived,omitempty"`

	// Form: the fields that Alhena worked out; absent when it is none, or all of them because the whole line is derived.
	DerivedFields []string `json:"derived_fields,omitempty"`
}

// Head is what every Line has.
func (head LineHead) Head() LineHead { return head }

// SessionAnchor: The session's id, to anchor a conversation to and to resume it by.
type SessionAnchor struct {
	LineHead

	// Upstream: the session.
	SessionID string `json:"session_id"`

	// Upstream: the model that was asked for.
	Model string `json:"model"`
}

// UserMessage: The prompt as the CLI sent it; a trace, not part of the transcript.
type UserMessage struct {
	LineHead

	// Upstream: all of it.
	Text string `json:"text"`
}

// OutputProduced: Text for the transcript: the model's, or what a command printed.
type OutputProduced struct {
	LineHead

	// Form: whose.
	Stream OutputStream `json:"stream"`

	// Upstream: the text.
	Text string `json:"text"`

	// Form: whether the text is all of it (a command's output) or a piece that follows the one before (the model's).
	Snapshot bool `json:"snapshot"`

	// Upstream: the call, for a command.
	ToolID *string `json:"tool_id,omitempty"`

	// Upstream: the command line, for a command.
	Command *string `json:"command,omitempty"`

	// Upstream: the command's exit code, where known.
	ExitCode *int64 `json:"exit_code,omitempty"`
}

// Thinking: A thought of the model; the stream drops them, the session file has them.
type Thinking struct {
	LineHead

	// Upstream: its heading.
	Subject string `json:"subject"`

	// Upstream: its text.
	Text string `json:"text"`
}

// ToolCallRequested: The model asked for a tool.
type ToolCallRequested struct {
	LineHead

	// Upstream: ties the result to the call.
	ToolID string `json:"tool_id"`

	// Upstream: the tool.
	ToolName string `json:"tool_name"`

	// Derived: the kind of tool, by an exact list of names.
	Class Class `json:"class"`

	// Derived: the command line, when it is a shell command.
	Command *string `json:"command,omitempty"`

	// Upstream: its arguments.
	Arguments json.RawMessage `json:"arguments"`
}

// ToolResult: A tool ended.
type ToolResult struct {
	LineHead

	// Upstream: the call.
	ToolID string `json:"tool_id"`

	// Derived: the tool, by the id of its call; empty when the call was never seen.
	ToolName string `json:"tool_name"`

	// Derived: the kind of tool, by an exact list of names.
	Class Class `json:"class"`

	// Upstream: how it ended. Derived, and then among `derived_fields`, where the stream calls it a success although the session
	// file has a failed command or a cancelled call.
	Status ToolStatus `json:"status"`

	// Upstream: its output.
	Output *string `json:"output,omitempty"`

	// Upstream: why it failed.
	Error *ToolError `json:"error,omitempty"`

	// Derived: the exit code of a shell command, where its output tells it.
	ExitCode *int64 `json:"exit_code,omitempty"`
}

// FileMutation: A file changed.
type FileMutation struct {
	LineHead

	// Derived: the file.
	Path string `json:"path"`

	// Derived: the change.
	Change Change `json:"change"`

	// Derived: the call that did it; absent when only the disk says so.
	ToolID *string `json:"tool_id,omitempty"`

	// Derived: its tool.
	ToolName *string `json:"tool_name,omitempty"`

	// Derived: whether the disk agrees.
	Verified bool `json:"verified"`
}

// TurnDiffUpdated: A unified diff: the change of a file by a tool, or printed by any tool. Always derived.
type TurnDiffUpdated struct {
	LineHead

	// Derived: the file, as the diff or the tool names it.
	Path string `json:"path"`

	// Derived: the diff of this file.
	Diff string `json:"diff"`

	// Derived: the call that made or printed it.
	ToolID *string `json:"tool_id,omitempty"`
}

// Trace: Something to know that ends nothing.
type Trace struct {
	LineHead

	// Upstream: how bad it is.
	Severity Severity `json:"severity"`

	// Upstream: a text for people.
	Message string `json:"message"`
}

// TokenUsageUpdated: What the turn used, once, before it ends.
type TokenUsageUpdated struct {
	LineHead

	// Upstream: tokens sent, cached ones included.
	InputTokens int64 `json:"input_tokens"`

	// Upstream: those that came from the cache.
	CachedInputTokens int64 `json:"cached_input_tokens"`

	// Upstream: tokens of the answer.
	OutputTokens int64 `json:"output_tokens"`

	// Derived: tokens of thoughts, which is the part of the total that is neither sent nor answer.
	ReasoningTokens int64 `json:"reasoning_tokens"`

	// Upstream: all together.
	TotalTokens int64 `json:"total_tokens"`

	// Upstream: by model.
	Models map[string]TokenCounts `json:"models"`
}

// TurnCompleted: The turn succeeded; the last line. Derived when the CLI itself did not say so, or did not exit with 0. An `error` event
// alone does not end a turn: `failure` says where Alhena counts such a run as failed.
type TurnCompleted struct {
	LineHead

	// Upstream: the session, to resume by.
	SessionID *string `json:"session_id"`

	// Derived: all text of the model, joined.
	Text string `json:"text"`

	// Derived: its text after the last tool result.
	FinalText string `json:"final_text"`

	// Derived: the answer, where it had to fit a schema.
	Data json.RawMessage `json:"data,omitempty"`

	// Derived: how long it took.
	DurationMS int64 `json:"duration_ms"`

	// Derived: how many tools were called.
	ToolCalls int64 `json:"tool_calls"`

	// Upstream: the CLI's own verdict; absent when it gave none.
	CLIStatus *Reported `json:"cli_status,omitempty"`

	// Upstream: the CLI's exit code; absent when it was stopped after its verdict, or when it is not known.
	ExitCode *int64 `json:"exit_code,omitempty"`

	// Derived: why Alhena counts the run as failed, although the CLI reported success after an `error` event; absent
	// when both agree.
	Failure *Verdict `json:"failure,omitempty"`
}

// TurnFailed: The turn did not succeed; the last line. Derived when the CLI itself said something else or nothing.
type TurnFailed struct {
	LineHead

	// Upstream: the session, to resume by.
	SessionID *string `json:"session_id"`

	// Derived: the kind of failure.
	Kind FailureKind `json:"kind"`

	// Derived: what happened.
	Message string `json:"message"`

	// Derived: what to do.
	Hint string `json:"hint"`

	// Upstream: the CLI's own verdict; absent when it gave none.
	CLIStatus *Reported `json:"cli_status,omitempty"`

	// Upstream: the error that the CLI itself named, word for word.
	CLIError *ToolError `json:"cli_error,omitempty"`

	// Upstream: the CLI's exit code.
	ExitCode *int64 `json:"exit_code,omitempty"`

	// Derived: the status of the API's answer.
	HTTPStatus *int64 `json:"http_status,omitempty"`

	// Derived: how long the API asked to wait.
	RetryAfterMS *int64 `json:"retry_after_ms,omitempty"`

	// Derived: the text of the model until then, joined.
	Text string `json:"text"`

	// Derived: how long it took.
	DurationMS int64 `json:"duration_ms"`
}

// emptyLine is a Line of this type, or nil when there is no such type.
func emptyLine(kind string) Line {
	switch kind {
	case "session_anchor":
		return &SessionAnchor{}
	case "user_message":
		return &UserMessage{}
	case "OutputProduced":
		return &OutputProduced{}
	case "thinking":
		return &Thinking{}
	case "ToolCallRequested":
		return &ToolCallRequested{}
	case "tool_result":
		return &ToolResult{}
	case "file_mutation":
		return &FileMutation{}
	case "TurnDiffUpdated":
		return &TurnDiffUpdated{}
	case "trace":
		return &Trace{}
	case "TokenUsageUpdated":
		return &TokenUsageUpdated{}
	case "TurnCompleted":
		return &TurnCompleted{}
	case "TurnFailed":
		return &TurnFailed{}
	}
	return nil
}

// OutputStream: Whose output it is.
type OutputStream string

// What a OutputStream can be.
const (
	// The model's text.
	OutputStreamAssistant OutputStream = "assistant"

	// What a shell command printed.
	OutputStreamCommand OutputStream = "command"
)

// Class: What kind of thing a tool does.
type Class string

// What a Class can be.
const (
	// Runs a shell command, or looks after one.
	ClassCommand Class = "command"

	// Reads files or looks for them.
	ClassFileRead Class = "file_read"

	// Writes files.
	ClassFileWrite Class = "file_write"

	// Asks the user.
	ClassAskUser Class = "ask_user"

	// Searches or fetches from the web.
	ClassSearchFetch Class = "search_fetch"

	// Plans, notes and other bookkeeping of the agent.
	ClassPlanning Class = "planning"

	// Hands work to another agent.
	ClassAgent Class = "agent"

	// A tool of an MCP server.
	ClassMCP Class = "mcp"

	// Anything else.
	ClassUnknown Class = "unknown"
)

// ToolStatus: How a tool ended.
type ToolStatus string

// What a ToolStatus can be.
const (
	// It worked. The stream says so of cancelled tools too, and only the session file knows better.
	ToolStatusSuccess ToolStatus = "success"

	// It failed.
	ToolStatusError ToolStatus = "error"

	// It was cancelled.
	ToolStatusCancelled ToolStatus = "cancelled"
)

// ToolError: Why a tool failed, in the CLI's own words.
type ToolError struct {
	// The CLI's name of the failure, such as `tool_not_registered`.
	Type string `json:"type"`

	// For people.
	Message string `json:"message"`
}

// Change: What became of a file.
type Change string

// What a Change can be.
const (
	// It was not there before.
	ChangeCreated Change = "created"

	// It was there before.
	ChangeModified Change = "modified"

	// It is gone.
	ChangeDeleted Change = "deleted"
)

// Severity: How bad a trace is.
type Severity string

// What a Severity can be.
const (
	// The run goes on.
	SeverityWarning Severity = "warning"

	// Something went wrong; the run may go on.
	SeverityError Severity = "error"
)

// TokenCounts: The figures of one model or of all.
type TokenCounts struct {
	// Upstream: tokens sent, cached ones included.
	InputTokens int64 `json:"input_tokens"`

	// Upstream: those that came from the cache.
	CachedInputTokens int64 `json:"cached_input_tokens"`

	// Upstream: tokens of the answer.
	OutputTokens int64 `json:"output_tokens"`

	// Derived: tokens of thoughts, which is the part of the total that is neither sent nor answer.
	ReasoningTokens int64 `json:"reasoning_tokens"`

	// Upstream: all together.
	TotalTokens int64 `json:"total_tokens"`
}

// Reported: The status in the CLI's own `result` or report.
type Reported string

// What a Reported can be.
const (
	// It worked.
	ReportedSuccess Reported = "success"

	// It failed.
	ReportedError Reported = "error"
)

// Verdict: Alhena's own verdict on a turn that the CLI calls a success.
type Verdict struct {
	// Derived: the kind of failure.
	Kind FailureKind `json:"kind"`

	// Derived: what happened.
	Message string `json:"message"`

	// Derived: what to do.
	Hint string `json:"hint"`
}

// FailureKind: The kinds of failure.
type FailureKind string

// What a FailureKind can be.
const (
	// There is no Gemini CLI, or none that can be started.
	FailureKindNotInstalled FailureKind = "not_installed"

	// Exit code 41, or the API said 401 or 403, or the key is bad.
	FailureKindAuth FailureKind = "auth"

	// Exit code 55: the folder is not trusted.
	FailureKindUntrusted FailureKind = "untrusted"

	// Exit code 42, wrong arguments, or the API said 400.
	FailureKindInput FailureKind = "input"

	// Exit code 52: the settings cannot be used.
	FailureKindConfig FailureKind = "config"

	// Exit code 44.
	FailureKindSandbox FailureKind = "sandbox"

	// Exit code 53: the limit of turns is reached.
	FailureKindTurnLimit FailureKind = "turn_limit"

	// Exit code 54: no space left.
	FailureKindDiskFull FailureKind = "disk_full"

	// The API said 429.
	FailureKindRateLimited FailureKind = "rate_limited"

	// The tokens, the money or the model calls that it may take are used up.
	FailureKindBudget FailureKind = "budget"

	// Any other status of the API, or no connection to it.
	FailureKindAPI FailureKind = "api"

	// The model's answer could not be used: empty, blocked, cut off.
	FailureKindInvalidResponse FailureKind = "invalid_response"

	// The time was up.
	FailureKindTimeout FailureKind = "timeout"

	// It fell silent.
	FailureKindStalled FailureKind = "stalled"

	// Somebody stopped it.
	FailureKindCancelled FailureKind = "cancelled"

	// The CLI died, or ended without a result.
	FailureKindCrashed FailureKind = "crashed"

	// What the CLI wrote makes no sense.
	FailureKindProtocol FailureKind = "protocol"

	// There is no answer that fits the schema.
	FailureKindSchema FailureKind = "schema"
)
