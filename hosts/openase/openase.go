// Package openase runs Gemini CLI for OpenASE, through alhena.
//
// Start begins a turn; its lines are what `alhena run --as openase` prints, one Go value each. A chat reads all of them. A
// ticket's run takes those that IsTicket names: OutputProduced, ToolCallRequested, TurnDiffUpdated, TokenUsageUpdated and, as
// the last one, TurnCompleted or TurnFailed. A line whose head says Derived was worked out by alhena; any other repeats what
// Gemini CLI said.
package openase

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Options say what a turn is to do.
type Options struct {
	// The prompt, of any size and with any characters.
	Prompt string

	// Where to work; the current directory when empty.
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

	// How long the turn may take; no limit when zero.
	Timeout time.Duration

	// The environment, as in os.Environ, which is used when nil.
	Env []string
}

// Turn is a turn that runs.
type Turn struct {
	command *exec.Cmd
	reader  *Reader
	stderr  bytes.Buffer
	last    Line
}

// stopTime is how long alhena gets to stop the agent and everything that it started.
const stopTime = 20 * time.Second

// Start begins a turn. When the context ends, the agent and every process that it started are stopped; the last line then is
// a TurnFailed. Read the lines with Next, to the end.
func Start(ctx context.Context, options Options) (*Turn, error) {
	program, err := alhena()
	if err != nil {
		return nil, err
	}
	turn := &Turn{command: exec.CommandContext(ctx, program, options.arguments()...)}
	turn.command.Env = options.Env
	turn.command.Stdin = strings.NewReader(options.Prompt)
	turn.command.Stderr = &turn.stderr
	turn.command.Cancel = func() error { return turn.command.Process.Signal(syscall.SIGTERM) }
	turn.command.WaitDelay = stopTime
	stdout, err := turn.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := turn.command.Start(); err != nil {
		return nil, fmt.Errorf("start alhena: %w", err)
	}
	turn.reader = NewReader(stdout)
	return turn, nil
}

func (options Options) arguments() []string {
	arguments := []string{"run", "--as", "openase", "--trust"}
	add := func(flag string, values ...string) {
		for _, value := range values {
			if value != "" {
				arguments = append(arguments, flag+"="+value)
			}
		}
	}
	add("--dir", options.Dir)
	add("--model", options.Model)
	add("--approval", options.Approval)
	add("--system-prompt", options.SystemPrompt)
	add("--resume", options.Resume)
	add("--include-dir", options.IncludeDirs...)
	add("--allow-tool", options.AllowTools...)
	add("--deny-tool", options.DenyTools...)
	if options.Timeout > 0 {
		add("--timeout", fmt.Sprintf("%dms", options.Timeout.Milliseconds()))
	}
	return append(arguments, "-")
}

// alhena finds the program by ALHENA_BIN, or on PATH.
func alhena() (string, error) {
	if program := os.Getenv("ALHENA_BIN"); program != "" {
		return program, nil
	}
	program, err := exec.LookPath("alhena")
	if err != nil {
		return "", fmt.Errorf("alhena is not on PATH, and ALHENA_BIN does not say where it is: %w", err)
	}
	return program, nil
}

// Next gives the next line, and io.EOF after the last one. The last line is a *TurnCompleted or a *TurnFailed: whatever
// happens to the agent is a line, and any other error is one of alhena itself.
func (turn *Turn) Next() (Line, error) {
	line, err := turn.reader.Next()
	if err == nil {
		turn.last = line
		return line, nil
	}
	waited := turn.command.Wait()
	if !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch turn.last.(type) {
	case *TurnCompleted, *TurnFailed:
		return nil, io.EOF
	}
	return nil, fmt.Errorf("alhena ended without an outcome (%v): %s", waited, strings.TrimSpace(turn.stderr.String()))
}

// Reader reads lines from any source, for example a file that `alhena parse --as openase` wrote.
type Reader struct {
	source *bufio.Reader
}

// NewReader reads lines from a source. A line may be of any length.
func NewReader(source io.Reader) *Reader {
	return &Reader{source: bufio.NewReader(source)}
}

// Next gives the next line, and io.EOF when there is none.
func (reader *Reader) Next() (Line, error) {
	for {
		text, err := reader.source.ReadBytes('\n')
		if text = bytes.TrimSpace(text); len(text) > 0 {
			return DecodeLine(text)
		}
		if err != nil {
			return nil, err
		}
	}
}

// IsTicket says whether a ticket's run takes the line. The CLI carries no task status, so there is no such line.
func IsTicket(line Line) bool {
	switch line.(type) {
	case *OutputProduced, *ToolCallRequested, *TurnDiffUpdated, *TokenUsageUpdated, *TurnCompleted, *TurnFailed:
		return true
	}
	return false
}
