package openase

import (
	"encoding/json"
	"errors"
	"time"
)

// cliReport is the object that `gemini --output-format json` prints: all that releases before 0.11 have (C-42).
type cliReport struct {
	SessionID *string `json:"session_id"`
	Response  *string `json:"response"`
	Stats     *struct {
		Models map[string]struct {
			Tokens struct {
				Prompt     GeminiCLICount `json:"prompt"`
				Candidates GeminiCLICount `json:"candidates"`
				Total      GeminiCLICount `json:"total"`
				Cached     GeminiCLICount `json:"cached"`
				Thoughts   GeminiCLICount `json:"thoughts"`
			} `json:"tokens"`
		} `json:"models"`
		Tools struct {
			TotalCalls GeminiCLICount `json:"totalCalls"`
		} `json:"tools"`
	} `json:"stats"`
	Error *struct {
		Type    *string        `json:"type"`
		Message string         `json:"message"`
		Code    GeminiCLICount `json:"code"`
	} `json:"error"`
}

// reportLines are the lines of a report, or nil when the text is none: the answer, the usage, and the end. The end is derived,
// because a report does not say how the run ended and the exit code is not in it. DerivedFields are the ones that alhena names in
// such lines, so that a host need not know where a line comes from.
func reportLines(text []byte) []Line {
	var head struct {
		Type *string `json:"type"`
	}
	var report cliReport
	if json.Unmarshal(text, &head) != nil || head.Type != nil || json.Unmarshal(text, &report) != nil {
		return nil
	}
	if report.Response == nil && report.Error == nil {
		return nil
	}
	now := time.Now().UTC()
	line := func(kind string, derived bool, fields ...string) LineHead {
		return LineHead{Type: kind, At: now, Derived: derived, DerivedFields: fields}
	}
	var lines []Line
	answer, calls := "", int64(0)
	if report.Response != nil && *report.Response != "" {
		answer = *report.Response
		lines = append(lines, &OutputProduced{
			LineHead: line("OutputProduced", false), Stream: OutputStreamAssistant, Text: answer, Snapshot: true,
		})
	}
	if report.Stats != nil {
		calls = int64(report.Stats.Tools.TotalCalls)
		if len(report.Stats.Models) > 0 {
			usage := report.usage()
			usage.LineHead = line("TokenUsageUpdated", false, "reasoning_tokens")
			lines = append(lines, usage)
		}
	}
	if report.Error == nil && answer != "" {
		return append(lines, &TurnCompleted{
			LineHead:  line("TurnCompleted", true, "text", "final_text", "duration_ms", "tool_calls"),
			SessionID: report.SessionID, Text: answer, FinalText: answer, ToolCalls: calls,
		})
	}
	failed := &TurnFailed{
		LineHead:  failedHead(),
		SessionID: report.SessionID, Text: answer,
		Kind: FailureKindInvalidResponse, Message: "The model gave no answer", Hint: "Run again.",
	}
	if report.Error != nil {
		kind := ""
		if report.Error.Type != nil {
			kind = *report.Error.Type
		}
		status := ReportedError
		failed.CLIStatus, failed.CLIError = &status, &ToolError{Type: kind, Message: report.Error.Message}
		failed.Message, failed.Hint = report.Error.Message, "`alhena doctor` checks the CLI, the login and the folder."
		failed.Kind = failureKind(int64(report.Error.Code))
	}
	return append(lines, failed)
}

// failedHead is the head of a TurnFailed that is made here. DerivedFields are the ones that alhena names in such a line.
func failedHead() LineHead {
	fields := []string{"kind", "message", "hint", "text", "duration_ms"}
	return LineHead{Type: "TurnFailed", At: time.Now().UTC(), Derived: true, DerivedFields: fields}
}

func (report *cliReport) usage() *TokenUsageUpdated {
	usage := &TokenUsageUpdated{Models: map[string]TokenCounts{}}
	for name, model := range report.Stats.Models {
		counts := TokenCounts{
			InputTokens:       int64(model.Tokens.Prompt),
			CachedInputTokens: int64(model.Tokens.Cached),
			OutputTokens:      int64(model.Tokens.Candidates),
			ReasoningTokens:   int64(model.Tokens.Thoughts),
			TotalTokens:       int64(model.Tokens.Total),
		}
		usage.Models[name] = counts
		usage.InputTokens += counts.InputTokens
		usage.CachedInputTokens += counts.CachedInputTokens
		usage.OutputTokens += counts.OutputTokens
		usage.ReasoningTokens += counts.ReasoningTokens
		usage.TotalTokens += counts.TotalTokens
	}
	return usage
}

// failureKind is the kind of an error by its code: an exit code of the CLI, or a status of the API.
func failureKind(code int64) FailureKind {
	switch code {
	case 41, 401, 403:
		return FailureKindAuth
	case 42, 400:
		return FailureKindInput
	case 44:
		return FailureKindSandbox
	case 52:
		return FailureKindConfig
	case 53:
		return FailureKindTurnLimit
	case 54:
		return FailureKindDiskFull
	case 55:
		return FailureKindUntrusted
	case 130:
		return FailureKindCancelled
	case 429:
		return FailureKindRateLimited
	}
	return FailureKindAPI
}

// nextReport reads a report that begins with this text, which is a complete one or only its first line. A report is the first
// thing that a source has. Lines that turn out to be none are kept for later.
func (reader *Reader) nextReport(text []byte) []Line {
	if lines := reportLines(text); lines != nil {
		return lines
	}
	if string(text) != "{" {
		return nil
	}
	// What it is otherwise.
	lines := []Line{DecodeLine(text)}
	all := append([]byte(nil), text...)
	for len(all) < maxReport {
		text, err := reader.source.next()
		if err == ErrLineTooLong {
			return append(lines, &UnknownLine{Raw: text, Err: err})
		}
		if err != nil {
			reader.failed = err
			return lines
		}
		line := DecodeLine(text)
		lines = append(lines, line)
		if _, unknown := line.(*UnknownLine); !unknown {
			return lines
		}
		all = append(append(all, '\n'), text...)
		if string(text) == "}" {
			if report := reportLines(all); report != nil {
				return report
			}
		}
	}
	return lines
}

// ReportArguments are those of alhena for a turn on a release of Gemini CLI before 0.11, which has no stream: for a host that
// starts its processes itself and got a TurnFailed that NeedsReport. As with Arguments the prompt goes to the standard input and
// standard output is for NewReader. It is an error when the turn needs an option that those releases do not have.
//
// The arguments have no time limit, because `alhena host report` takes none: Options.Timeout does not apply, and the host has to
// stop the process itself (SIGTERM) when its own limit is reached.
func (options Options) ReportArguments() ([]string, error) {
	arguments, ok := options.cliArguments()
	if !ok {
		return nil, errors.New("releases of Gemini CLI before 0.11 have no system prompt, resume, tool lists, schema or plan mode")
	}
	report := []string{"host", "report"}
	if options.Gemini != "" {
		report = append(report, "--gemini="+options.Gemini)
	}
	if options.Dir != "" {
		report = append(report, "--dir="+options.Dir)
	}
	return append(append(report, "--"), arguments...), nil
}
