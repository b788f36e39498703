// Code generated from the Rust types. DO NOT EDIT.
// To renew: UPDATE_SCHEMAS=1 cargo test -p alhena-hosts --test it schemas

package openase

import "encoding/json"

// GeminiCLIInitEvent is `init`: once, before anything else.
type GeminiCLIInitEvent struct {
	GeminiCLIEventHead

	// Upstream: the session's id; on `--resume` that of the resumed session.
	SessionID string `json:"session_id"`

	// Upstream: the model that was asked for, which may be an alias such as `auto`; those really used are the keys of
	// `result.stats.models`.
	Model string `json:"model"`
}

// GeminiCLIMessageEvent is `message`: the prompt once, then one for each chunk of the model's text.
type GeminiCLIMessageEvent struct {
	GeminiCLIEventHead

	// Upstream: who speaks.
	Role string `json:"role"`

	// Upstream: the whole prompt (with stdin and hook context), or one chunk of the answer.
	Content string `json:"content"`

	// Upstream: `true` on every chunk of the answer, absent on the prompt.
	Delta *bool `json:"delta,omitempty"`
}

// GeminiCLIToolUseEvent is `tool_use`: while the model streams, before the tool runs.
type GeminiCLIToolUseEvent struct {
	GeminiCLIEventHead

	// Upstream: the tool's name as the model wrote it; it need not exist.
	ToolName string `json:"tool_name"`

	// Upstream: ties the call to its result. Its form changed with 0.29 and 0.43: opaque.
	ToolID string `json:"tool_id"`

	// Upstream: the model's arguments, an object; not decoded until asked.
	Parameters json.RawMessage `json:"parameters"`
}

// GeminiCLIToolResultEvent is `tool_result`: after all tools of the turn have run, not in the order of the calls.
type GeminiCLIToolResultEvent struct {
	GeminiCLIEventHead

	// Upstream: the id of the `tool_use` that this answers.
	ToolID string `json:"tool_id"`

	// Upstream: `success` also for a cancelled tool and for a shell command that failed.
	Status string `json:"status"`

	// Upstream: what the terminal would show, only if that is a text.
	Output *string `json:"output,omitempty"`

	// Upstream: why the tool failed.
	Error *GeminiCLIError `json:"error,omitempty"`
}

// GeminiCLIErrorEvent is `error`: a warning or an error; it ends nothing.
type GeminiCLIErrorEvent struct {
	GeminiCLIEventHead

	// Upstream: how bad it is.
	Severity string `json:"severity"`

	// Upstream: a text for people.
	Message string `json:"message"`
}

// GeminiCLIResultEvent is `result`: the last event, at most once; absent when the CLI was stopped or failed before it began.
type GeminiCLIResultEvent struct {
	GeminiCLIEventHead

	// Upstream: how the run ended, in the CLI's opinion.
	Status string `json:"status"`

	// Upstream: absent after an invalid model stream although `status` is `error` (0.42 on).
	Error *GeminiCLIError `json:"error,omitempty"`

	// Upstream: sums over this process, not over the session.
	Stats *GeminiCLIStreamStats `json:"stats,omitempty"`
}

// GeminiCLIError is the error of a tool_result or a result.
type GeminiCLIError struct {
	// Upstream: a tool error type such as `file_not_found`, a class name such as `FatalTurnLimitedError`, or `unknown`
	// for every error of the API.
	Type *string `json:"type,omitempty"`

	// Upstream: a text for people, often with raw JSON of the API inside.
	Message string `json:"message"`
}

// GeminiCLIStreamStats is the stats of a result.
type GeminiCLIStreamStats struct {
	// Upstream: all tokens, thoughts included.
	TotalTokens *GeminiCLICount `json:"total_tokens,omitempty"`

	// Upstream: tokens of the prompts, cached ones included.
	InputTokens *GeminiCLICount `json:"input_tokens,omitempty"`

	// Upstream: tokens of the answers, without thoughts.
	OutputTokens *GeminiCLICount `json:"output_tokens,omitempty"`

	// Upstream: tokens of the prompts that came from the cache (since 0.22).
	Cached *GeminiCLICount `json:"cached,omitempty"`

	// Upstream: `input_tokens` minus `cached` (since 0.22).
	Input *GeminiCLICount `json:"input,omitempty"`

	// Upstream: wall time of the run; 0 on most failures.
	DurationMS *GeminiCLICount `json:"duration_ms,omitempty"`

	// Upstream: how many tools were called, failed ones included.
	ToolCalls *GeminiCLICount `json:"tool_calls,omitempty"`

	// Upstream: the same per model that was really used (since 0.34).
	Models map[string]GeminiCLIModelStats `json:"models,omitempty"`
}

// GeminiCLIModelStats is the stats of one model.
type GeminiCLIModelStats struct {
	// Upstream: all tokens, thoughts included.
	TotalTokens *GeminiCLICount `json:"total_tokens,omitempty"`

	// Upstream: tokens of the prompts, cached ones included.
	InputTokens *GeminiCLICount `json:"input_tokens,omitempty"`

	// Upstream: tokens of the answers, without thoughts.
	OutputTokens *GeminiCLICount `json:"output_tokens,omitempty"`

	// Upstream: tokens of the prompts that came from the cache.
	Cached *GeminiCLICount `json:"cached,omitempty"`

	// Upstream: `input_tokens` minus `cached`.
	Input *GeminiCLICount `json:"input,omitempty"`
}

// emptyEvent is an event of this type, or nil when there is no such type.
func emptyEvent(kind string) GeminiCLIEvent {
	switch kind {
	case "init":
		return &GeminiCLIInitEvent{}
	case "message":
		return &GeminiCLIMessageEvent{}
	case "tool_use":
		return &GeminiCLIToolUseEvent{}
	case "tool_result":
		return &GeminiCLIToolResultEvent{}
	case "error":
		return &GeminiCLIErrorEvent{}
	case "result":
		return &GeminiCLIResultEvent{}
	}
	return nil
}
