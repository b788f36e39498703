package openase

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
)

// ErrClosed is the error of Next after Close.
var ErrClosed = errors.New("the turn is closed")

// AlhenaError says that alhena itself went wrong: it was killed, or it did not understand its arguments. Whatever happens to
// the agent is a TurnFailed instead.
type AlhenaError struct {
	// What alhena said last.
	Stderr string

	// How it ended; nil when it ended well and still gave no outcome.
	Err error
}

func (err *AlhenaError) Error() string {
	how := "alhena ended without an outcome"
	if err.Err != nil {
		how += ": " + err.Err.Error()
	}
	if err.Stderr == "" {
		return how
	}
	// The reason first; what was said before it is not why.
	reason, mark := err.Stderr, "error: "
	if at := strings.LastIndex("\n"+reason, "\n"+mark); at >= 0 {
		reason = reason[at+len(mark):]
	}
	return fmt.Sprintf("%s (%s)", reason, how)
}

// Unwrap gives how it ended.
func (err *AlhenaError) Unwrap() error { return err.Err }

// Turn is a turn that runs. Next and Close may be called from different goroutines.
type Turn struct {
	// The host's, which may have ended before alhena could say so.
	host    context.Context
	process *process
	reader  *Reader
	// A release without a stream is asked in another way.
	fallback func(*TurnFailed) ([]Line, bool)

	waiting []Line
	begun   bool
	over    error

	reading sync.Mutex
	closing sync.Once
	closed  chan struct{}
	cancel  context.CancelFunc
}

// Start begins a turn. When the context ends, the agent and every process that it started are stopped; the last line then is
// a TurnFailed. Read the lines with Next to the end, or give up with Close: one of both has to happen.
//
// Releases of Gemini CLI before 0.11 have no stream; they are run with `--output-format json`, and all lines come at the end.
func Start(ctx context.Context, options Options) (*Turn, error) {
	program, err := Program()
	if err != nil {
		return nil, err
	}
	instructions, err := systemPromptFile(options.SystemPrompt)
	if err != nil {
		return nil, fmt.Errorf("start alhena: %w", err)
	}
	host := ctx
	ctx, cancel := context.WithCancel(ctx)
	command := exec.Command(program, options.arguments(instructions)...)
	command.Env = options.Env
	running, err := begin(ctx, command, options.Prompt, terminate)
	if err != nil {
		cancel()
		remove(instructions)
		return nil, fmt.Errorf("start alhena: %w", err)
	}
	go func() {
		<-running.ended
		remove(instructions)
	}()
	return &Turn{
		host:     host,
		process:  running,
		reader:   NewReader(running),
		fallback: func(failed *TurnFailed) ([]Line, bool) { return withoutStream(ctx, program, options, failed) },
		closed:   make(chan struct{}),
		cancel:   cancel,
	}, nil
}

// Next gives the next line, and io.EOF after the last one. The last line is a *TurnCompleted or a *TurnFailed; an *UnknownLine
// can come before it. Any error but io.EOF and ErrClosed is an *AlhenaError.
func (turn *Turn) Next() (Line, error) {
	turn.reading.Lock()
	defer turn.reading.Unlock()
	if turn.isClosed() {
		return nil, ErrClosed
	}
	if len(turn.waiting) > 0 {
		line := turn.waiting[0]
		turn.waiting = turn.waiting[1:]
		return line, nil
	}
	if turn.over != nil {
		return nil, turn.over
	}
	line, err := turn.reader.Next()
	if err == nil {
		if failed, ok := line.(*TurnFailed); ok && !turn.begun {
			if lines, ok := turn.fallback(failed); ok && len(lines) > 0 {
				line, turn.waiting = lines[0], lines[1:]
				turn.end(io.EOF)
				return line, nil
			}
		}
		turn.begun = true
		if IsLast(line) {
			turn.end(io.EOF)
		}
		return line, nil
	}
	ended := turn.process.wait()
	if turn.isClosed() {
		err = ErrClosed
	} else if turn.host.Err() != nil {
		turn.end(io.EOF)
		return cancelled(), nil
	} else {
		err = &AlhenaError{Stderr: turn.process.stderr.String(), Err: ended}
	}
	turn.end(err)
	return nil, err
}

// cancelled is the last line of a turn that was stopped before alhena could say anything.
func cancelled() *TurnFailed {
	return &TurnFailed{
		LineHead: failedHead(),
		Kind:     FailureKindCancelled,
		Message:  "The run was cancelled",
		Hint:     "It was stopped on purpose.",
	}
}

// systemPromptFile is a file that only this user can read; none where there is nothing to write.
func systemPromptFile(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	file, err := os.CreateTemp("", "openase-system-prompt-")
	if err != nil {
		return "", err
	}
	_, err = file.WriteString(text)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		remove(file.Name())
		return "", err
	}
	return file.Name(), nil
}

func remove(file string) {
	if file != "" {
		_ = os.Remove(file)
	}
}

// end waits until nothing runs any more.
func (turn *Turn) end(over error) {
	turn.over = over
	_ = turn.process.wait()
	turn.process.stdout.Close()
	turn.cancel()
}

// Close stops the turn if it still runs, and waits until the agent and everything that it started are gone. It may be called
// more than once, at any time; after Next gave an error it is not needed.
func (turn *Turn) Close() error {
	turn.closing.Do(func() { close(turn.closed) })
	turn.cancel()
	turn.process.stop()
	<-turn.process.ended
	turn.reading.Lock()
	defer turn.reading.Unlock()
	turn.process.stdout.Close()
	return nil
}

func (turn *Turn) isClosed() bool {
	select {
	case <-turn.closed:
		return true
	default:
		return false
	}
}
