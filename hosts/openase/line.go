// Code generated from the Rust types. DO NOT EDIT.
// To renew: UPDATE_SCHEMAS=1 cargo test -p alhena-hosts --test schemas

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

	// When.
	At time.Time `json:"at"`

	// Whether Alhena worked it out; absent when the CLI said it.
	Derived bool `json:"derived,omitempty"`
}

// Head is what every Line has.
func (head LineHead) Head() LineHead { return head }

// SessionAnchor: The session's id, to anchor a conversation to and to resume it by.
type SessionAnchor struct {
	LineHead

	// The session.
	SessionID string `json:"session_id"`

	// The model that was asked for.
	Model string `json:"model"`
}

// UserMessage: The prompt as the CLI sent it; a trace, not part of the transcript.
type UserMessage struct {
	LineHead

	// All of it.
	Text string `json:"text"`
}

// OutputProduced: Text for the transcript: the model's, or what a command printed.
type OutputProduced struct {
	LineHead

	// Whose.
	Stream OutputStream `json:"stream"`

	// The text.
	Text string `json:"text"`

	// Whether the text is all of it (a command's output) or a piece that follows the one before (the model's).
	Snapshot bool `json:"snapshot"`

	// The call, for a command.
	ToolID *string `json:"tool_id,omitempty"`

	// The command line, for a command.
	Command *string `json:"command,omitempty"`

	// The command's exit code, where known.
	ExitCode *int64 `json:"exit_code,omitempty"`
}

// Thinking: A thought of the model; the stream drops them, the session file has them.
type Thinking struct {
	LineHead

	// Its heading.
	Subject string `json:"subject"`

	// What it says.
	Text string `json:"text"`
}

// ToolCallRequested: The model asked for a tool.
type ToolCallRequested struct {
	LineHead

	// Ties the result to the call.
	ToolID string `json:"tool_id"`

	// The tool.
	ToolName string `json:"tool_name"`

	// What kind of tool it is.
	Class Class `json:"class"`

	// The command line, when it is a shell command.
	Command *string `json:"command,omitempty"`

	// Its arguments.
	Arguments json.RawMessage `json:"arguments"`
}

// ToolResult: A tool ended.
type ToolResult struct {
	LineHead

	// The call.
	ToolID string `json:"tool_id"`

	// The tool; empty when the call was never seen.
	ToolName string `json:"tool_name"`

	// What kind of tool it is.
	Class Class `json:"class"`

	// How it ended.
	Status ToolStatus `json:"status"`

	// What it printed.
	Output *string `json:"output,omitempty"`

	// Why it failed.
	Error *ToolError `json:"error,omitempty"`

	// The exit code of a shell command, where known.
	ExitCode *int64 `json:"exit_code,omitempty"`
}

// FileMutation: A file changed.
type FileMutation struct {
	LineHead

	// The file.
	Path string `json:"path"`

	// What became of it.
	Change Change `json:"change"`

	// The call that did it; absent when only the disk says so.
	ToolID *string `json:"tool_id,omitempty"`

	// Its tool.
	ToolName *string `json:"tool_name,omitempty"`

	// Whether the disk agrees.
	Verified bool `json:"verified"`
}

// TurnDiffUpdated: A unified diff.
type TurnDiffUpdated struct {
	LineHead

	// The file.
	Path string `json:"path"`

	// The diff.
	Diff string `json:"diff"`

	// The call that did it.
	ToolID *string `json:"tool_id,omitempty"`
}

// Trace: Something to know that ends nothing.
type Trace struct {
	LineHead

	// How bad it is.
	Severity Severity `json:"severity"`

	// For people.
	Message string `json:"message"`
}

// TokenUsageUpdated: What the turn used, once, before it ends.
type TokenUsageUpdated struct {
	LineHead

	// Tokens sent, cached ones included.
	InputTokens int64 `json:"input_tokens"`

	// Those that came from the cache.
	CachedInputTokens int64 `json:"cached_input_tokens"`

	// Tokens of the answer.
	OutputTokens int64 `json:"output_tokens"`

	// Tokens of thoughts.
	ReasoningTokens int64 `json:"reasoning_tokens"`

	// All together.
	TotalTokens int64 `json:"total_tokens"`

	// By model.
	Models map[string]TokenCounts `json:"models"`
}

// TurnCompleted: The turn succeeded; the last line. Derived when the CLI itself did not say so, or did not exit with 0.
type TurnCompleted struct {
	LineHead

	// The session, to resume by.
	SessionID *string `json:"session_id"`

	// All text of the model.
	Text string `json:"text"`

	// What it said after its last tool result.
	FinalText string `json:"final_text"`

	// The answer, where it had to fit a schema.
	Data json.RawMessage `json:"data,omitempty"`

	// How long it took.
	DurationMS int64 `json:"duration_ms"`

	// How many tools were called.
	ToolCalls int64 `json:"tool_calls"`

	// The CLI's own word; absent when it said none.
	CLIStatus *Reported `json:"cli_status,omitempty"`

	// The CLI's exit code; absent when it was stopped after its word, or when it is not known.
	ExitCode *int64 `json:"exit_code,omitempty"`
}

// TurnFailed: The turn did not succeed; the last line. Derived when the CLI itself said something else or nothing.
type TurnFailed struct {
	LineHead

	// The session, to resume by.
	SessionID *string `json:"session_id"`

	// What kind of failure it is.
	Kind FailureKind `json:"kind"`

	// What happened.
	Message string `json:"message"`

	// What to do.
	Hint string `json:"hint"`

	// The CLI's own word; absent when it said none.
	CLIStatus *Reported `json:"cli_status,omitempty"`

	// The error that the CLI itself named, word for word.
	CLIError *ToolError `json:"cli_error,omitempty"`

	// The CLI's exit code.
	ExitCode *int64 `json:"exit_code,omitempty"`

	// The status of the API's answer.
	HTTPStatus *int64 `json:"http_status,omitempty"`

	// How long the API asked to wait.
	RetryAfterMS *int64 `json:"retry_after_ms,omitempty"`

	// What the model had said until then.
	Text string `json:"text"`

	// How long it took.
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

	// The run cannot succeed any more.
	SeverityError Severity = "error"
)

// TokenCounts: The figures of one model or of all.
type TokenCounts struct {
	// Tokens sent, cached ones included.
	InputTokens int64 `json:"input_tokens"`

	// Those that came from the cache.
	CachedInputTokens int64 `json:"cached_input_tokens"`

	// Tokens of the answer.
	OutputTokens int64 `json:"output_tokens"`

	// Tokens of thoughts.
	ReasoningTokens int64 `json:"reasoning_tokens"`

	// All together.
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
