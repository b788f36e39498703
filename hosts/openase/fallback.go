package openase

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// maxReport is how large a report may be.
const maxReport = 64 << 20

// withoutStream runs a turn on a release of Gemini CLI that has no stream (before 0.11): it is asked for a report, which
// alhena turns into the same lines. It does nothing when the failure is another one, and nothing when the turn needs what
// these releases do not have: then the failure stands.
func withoutStream(ctx context.Context, program string, options Options, failed *TurnFailed) ([]Line, bool) {
	if !NeedsReport(failed) {
		return nil, false
	}
	arguments, err := options.ReportArguments()
	if err != nil {
		return nil, false
	}
	lines, err := report(ctx, program, options, arguments)
	if err != nil {
		kind, hint := FailureKindCrashed, failed.Hint
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			kind, hint = FailureKindTimeout, "Give it more time."
		case errors.Is(err, context.Canceled):
			kind, hint = FailureKindCancelled, "Run it again when you want to."
		}
		lines = append(lines, &TurnFailed{LineHead: failedHead(), Kind: kind, Message: err.Error(), Hint: hint})
	}
	note := &Trace{
		LineHead: LineHead{Type: "trace", At: time.Now().UTC(), Derived: true},
		Severity: SeverityWarning,
		Message:  failed.Message + "; its report is used instead, and comes at the end",
	}
	return append([]Line{note}, lines...), true
}

// NeedsReport says whether the line is the end of a turn that failed because the release of Gemini CLI has no stream (before 0.11).
func NeedsReport(line Line) bool {
	failed, ok := line.(*TurnFailed)
	return ok && failed.Kind == FailureKindInput && strings.Contains(failed.Message, "has no stream-json")
}

// cliArguments are those of Gemini CLI, and whether releases without a stream have all that is asked for.
func (options Options) cliArguments() ([]string, bool) {
	if options.SystemPrompt != "" || options.Resume != "" || options.Schema != "" || len(options.AllowTools)+len(options.DenyTools) > 0 {
		return nil, false
	}
	arguments := []string{"--output-format=json"}
	switch options.Approval {
	case "", "default":
	case "auto-edit", "auto_edit":
		arguments = append(arguments, "--approval-mode=auto_edit")
	case "yolo":
		arguments = append(arguments, "--approval-mode=yolo")
	default:
		return nil, false
	}
	if options.Model != "" {
		arguments = append(arguments, "--model="+options.Model)
	}
	for _, dir := range options.IncludeDirs {
		arguments = append(arguments, "--include-directories="+dir)
	}
	return arguments, true
}

// report runs Gemini CLI under alhena, and has alhena read what it said.
func report(ctx context.Context, program string, options Options, arguments []string) ([]Line, error) {
	if options.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, options.Timeout)
		defer cancel()
	}
	command := exec.Command(program, arguments...)
	command.Env = options.Env
	running, err := begin(ctx, command, options.Prompt, terminate)
	if err != nil {
		return nil, fmt.Errorf("start alhena: %w", err)
	}
	stdout, err := io.ReadAll(io.LimitReader(running, maxReport))
	if err == nil && len(stdout) < maxReport {
		<-running.ended
	}
	running.stop()
	ended := running.wait()
	running.stdout.Close()
	if ctx.Err() != nil {
		return nil, stopReason(ctx, options)
	}
	code := 0
	var exit *exec.ExitError
	if errors.As(ended, &exit) {
		code = exit.ExitCode()
	}
	if code < 0 {
		return nil, &AlhenaError{Stderr: running.stderr.String(), Err: ended}
	}
	return readReport(ctx, program, string(stdout), running.stderr.String(), code)
}

func stopReason(ctx context.Context, options Options) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && options.Timeout > 0 {
		return fmt.Errorf("the run timed out after %s: %w", options.Timeout, ctx.Err())
	}
	return fmt.Errorf("the run was cancelled: %w", context.Canceled)
}

// readReport turns a report into lines.
func readReport(ctx context.Context, program, stdout, stderr string, code int) ([]Line, error) {
	file, err := os.CreateTemp("", "openase-stderr-")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	_, err = file.WriteString(stderr)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, err
	}
	arguments := []string{"parse", "--from=json", "--as=openase", "--stderr=" + file.Name(), "--exit-code=" + strconv.Itoa(code)}
	said, complaint, err := output(ctx, program, append(arguments, "-"), nil, stdout)
	var lines []Line
	reader := NewReader(strings.NewReader(string(said)))
	for {
		line, next := reader.Next()
		if next != nil {
			break
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 || !IsLast(lines[len(lines)-1]) {
		return nil, &AlhenaError{Stderr: complaint, Err: err}
	}
	return lines, nil
}

// output runs alhena to its end.
func output(ctx context.Context, program string, arguments, env []string, stdin string) ([]byte, string, error) {
	command := exec.Command(program, arguments...)
	command.Env = env
	running, err := begin(ctx, command, stdin, kill)
	if err != nil {
		return nil, "", err
	}
	said, read := io.ReadAll(running)
	err = running.wait()
	running.stdout.Close()
	if read != nil {
		err = read
	}
	return said, running.stderr.String(), err
}
