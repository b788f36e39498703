// Package openase runs Gemini CLI for OpenASE, through alhena.
//
// Start begins a turn; its lines are what `alhena run --as openase` prints, one Go value each. A chat reads all of them. A
// ticket's run takes those that IsTicket names: OutputProduced, ToolCallRequested, TurnDiffUpdated, TokenUsageUpdated and, as
// the last one, TurnCompleted or TurnFailed. A line whose head says Derived was worked out by alhena; any other repeats what
// Gemini CLI said, except for the fields that DerivedFields names. Of the last line Derived concerns the verdict only, and
// DerivedFields is set in either case.
//
// A host that owns its processes starts alhena itself with Options.Arguments and reads its output with NewReader. One that
// wants Gemini CLI's own events, exactly as they are on the wire, reads them with NewEventReader.
package openase

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Options say what a turn is to do.
type Options struct {
	// The prompt, of any size and with any characters.
	Prompt string

	// Where to work, relative to the working directory of this process; that directory itself when empty.
	Dir string

	// The model; the CLI's choice when empty.
	Model string

	// What the model may do: default, auto-edit, yolo or plan. Default when empty.
	Approval string

	// Instructions beside the prompt.
	SystemPrompt string

	// The session to go on with: the SessionID of a SessionAnchor, TurnCompleted or TurnFailed.
	Resume string

	// More directories that the model may use.
	IncludeDirs []string

	// Tools to allow and to deny, by the CLI's names.
	AllowTools, DenyTools []string

	// The answer has to fit this JSON schema, or the one in this file; Data of TurnCompleted has it. No schema when empty.
	Schema string

	// The Gemini CLI to run: a path, a command on PATH, or a version. Found by alhena when empty.
	Gemini string

	// How long the turn may take; no limit when zero. It also is the limit for the first sign of life and for silence, which have
	// none without it.
	Timeout time.Duration

	// The environment, as in os.Environ, which is used when nil.
	Env []string
}

// Arguments are those of alhena for this turn, for a host that starts its processes itself: the prompt goes to the standard
// input, which has to be closed after it, and standard output is for NewReader. SIGTERM stops the agent and every process
// that it started; a TurnFailed is the last line then, too.
func (options Options) Arguments() []string {
	return options.arguments("")
}

// arguments are the same with the system prompt in a file, where there is one: a command line holds no long one, and
// everybody on the machine can read it.
func (options Options) arguments(systemPromptFile string) []string {
	arguments := []string{"run", "--as=openase", "--trust"}
	add := func(flag string, values ...string) {
		for _, value := range values {
			if value != "" {
				arguments = append(arguments, flag+"="+value)
			}
		}
	}
	add("--dir", options.Dir)
	add("--gemini", options.Gemini)
	add("--model", options.Model)
	add("--approval", options.Approval)
	if systemPromptFile != "" {
		add("--system-prompt-file", systemPromptFile)
	} else {
		add("--system-prompt", options.SystemPrompt)
	}
	add("--resume", options.Resume)
	add("--include-dir", options.IncludeDirs...)
	add("--allow-tool", options.AllowTools...)
	add("--deny-tool", options.DenyTools...)
	add("--schema", options.Schema)
	limit := "none"
	if options.Timeout > 0 {
		// Rounded up: a limit that is zero would be none, or at once.
		limit = fmt.Sprintf("%dms", (options.Timeout+time.Millisecond-1)/time.Millisecond)
	}
	add("--timeout", limit)
	add("--first-event-timeout", limit)
	add("--stall-timeout", limit)
	return append(arguments, "-")
}

// ErrNotFound is wrapped by the error of Start and Program when there is no alhena.
var ErrNotFound = errors.New("alhena was not found")

// Program finds alhena: by ALHENA_BIN, or on PATH; never in the working directory.
func Program() (string, error) {
	if program := os.Getenv("ALHENA_BIN"); program != "" {
		if !filepath.IsAbs(program) {
			return "", fmt.Errorf("%w: ALHENA_BIN is no absolute path: %s", ErrNotFound, program)
		}
		info, err := os.Stat(program)
		if err == nil && !info.Mode().IsRegular() {
			err = fmt.Errorf("%s is no program", program)
		}
		if err != nil {
			return "", fmt.Errorf("%w: ALHENA_BIN: %v", ErrNotFound, err)
		}
		return program, nil
	}
	program, err := exec.LookPath("alhena")
	if err != nil {
		return "", fmt.Errorf("%w on PATH, and ALHENA_BIN does not say where it is: %v", ErrNotFound, err)
	}
	return program, nil
}

// IsTicket says whether a ticket's run takes the line. The CLI carries no task status, so there is no such line.
func IsTicket(line Line) bool {
	switch line.(type) {
	case *OutputProduced, *ToolCallRequested, *TurnDiffUpdated, *TokenUsageUpdated, *TurnCompleted, *TurnFailed:
		return true
	}
	return false
}

// IsLast says whether the line is the last one of its turn.
func IsLast(line Line) bool {
	switch line.(type) {
	case *TurnCompleted, *TurnFailed:
		return true
	}
	return false
}
