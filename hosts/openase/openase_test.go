package openase

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func read(t *testing.T, next func() (Line, error)) []Line {
	t.Helper()
	var lines []Line
	for {
		line, err := next()
		if errors.Is(err, io.EOF) {
			return lines
		}
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
}

func types(lines []Line) []string {
	var types []string
	for _, line := range lines {
		types = append(types, line.Head().Type)
	}
	return types
}

func TestLinesAreDecodedByTheirType(t *testing.T) {
	text := `{"type":"session_anchor","session_id":"s","model":"auto","at":"2026-11-15T17:49:10.599Z"}

{"type":"OutputProduced","stream":"command","text":"a.txt","snapshot":true,"tool_id":"1","command":"ls","exit_code":0,"at":"2026-11-15T17:49:10.599Z","derived":true}
{"type":"TokenUsageUpdated","input_tokens":100,"cached_input_tokens":40,"output_tokens":10,"reasoning_tokens":20,"total_tokens":130,"models":{"m":{"input_tokens":100,"cached_input_tokens":40,"output_tokens":10,"reasoning_tokens":20,"total_tokens":130}},"at":"2026-11-15T17:49:10.599Z"}`
	at := time.Date(2026, 11, 15, 17, 49, 10, 599000000, time.UTC)
	head := func(kind string) LineHead { return LineHead{Type: kind, At: at} }
	id, command, code := "1", "ls", int64(0)
	derived := head("OutputProduced")
	derived.Derived = true
	want := []Line{
		&SessionAnchor{LineHead: head("session_anchor"), SessionID: "s", Model: "auto"},
		&OutputProduced{LineHead: derived, Stream: OutputStreamCommand, Text: "a.txt", Snapshot: true, ToolID: &id, Command: &command, ExitCode: &code},
		&TokenUsageUpdated{LineHead: head("TokenUsageUpdated"), InputTokens: 100, CachedInputTokens: 40, OutputTokens: 10, ReasoningTokens: 20, TotalTokens: 130,
			Models: map[string]TokenCounts{"m": {InputTokens: 100, CachedInputTokens: 40, OutputTokens: 10, ReasoningTokens: 20, TotalTokens: 130}}},
	}
	got := read(t, NewReader(strings.NewReader(text)).Next)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %#v, want %#v", got, want)
	}
}

// On the real Gemini CLI, with a scripted API that `cargo xtask test real_hosts` starts.

func realCLI(t *testing.T, scenario string) Options {
	t.Helper()
	var scenarios map[string]string
	if err := json.Unmarshal([]byte(os.Getenv("ALHENA_TEST_SCENARIOS")), &scenarios); err != nil {
		t.Skip("needs ALHENA_TEST_SCENARIOS")
	}
	dir, err := os.MkdirTemp(os.Getenv("ALHENA_TEST_WORK"), "openase-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	env := append(os.Environ(), "GOOGLE_GEMINI_BASE_URL="+scenarios[scenario])
	return Options{Dir: dir, Model: "gemini-2.5-flash", Approval: "yolo", Env: env}
}

func run(t *testing.T, options Options) []Line {
	t.Helper()
	turn, err := Start(context.Background(), options)
	if err != nil {
		t.Fatal(err)
	}
	defer turn.Close()
	return read(t, turn.Next)
}

func TestRealCLIChat(t *testing.T) { // C-33 to C-39
	options := realCLI(t, "work")
	options.Prompt = "- do\n- it"
	lines := run(t, options)
	if anchor, ok := lines[0].(*SessionAnchor); !ok || anchor.SessionID == "" {
		t.Errorf("the first line is %#v", lines[0])
	}
	if prompt, ok := lines[1].(*UserMessage); !ok || prompt.Text != "- do\n- it" {
		t.Errorf("the second line is %#v", lines[1])
	}
	var mutation *FileMutation
	var command *OutputProduced
	var results []string
	for _, line := range lines {
		switch line := line.(type) {
		case *FileMutation:
			mutation = line
		case *OutputProduced:
			if line.Stream == OutputStreamCommand {
				command = line
			}
		case *ToolResult:
			results = append(results, line.ToolName+" "+string(line.Status))
		}
	}
	if mutation == nil || !mutation.Derived || mutation.Path != "made.txt" || mutation.Change != ChangeCreated || !mutation.Verified {
		t.Errorf("the mutation is %#v", mutation)
	}
	if command == nil || !command.Derived || command.Text != "hello" || *command.Command != "echo hello" {
		t.Errorf("the command is %#v", command)
	}
	if want := []string{"write_file success", "run_shell_command success"}; !reflect.DeepEqual(results, want) {
		t.Errorf("got %v, want %v", results, want)
	}
	if text, err := os.ReadFile(filepath.Join(options.Dir, "made.txt")); err != nil || string(text) != "made\n" {
		t.Errorf("the file holds %q, %v", text, err)
	}
	done, ok := lines[len(lines)-1].(*TurnCompleted)
	if !ok || done.FinalText != "All done." || done.ToolCalls != 2 || done.Derived || *done.CLIStatus != ReportedSuccess {
		t.Errorf("the last line is %#v", lines[len(lines)-1])
	}
}

func TestRealCLITicket(t *testing.T) { // C-40, C-41
	options := realCLI(t, "work")
	options.Prompt = "Go"
	var ticket []Line
	for _, line := range run(t, options) {
		if IsTicket(line) {
			ticket = append(ticket, line)
		}
	}
	got := types(ticket)
	allowed := map[string]bool{"OutputProduced": true, "ToolCallRequested": true, "TurnDiffUpdated": true, "TokenUsageUpdated": true, "TurnCompleted": true}
	for _, kind := range got {
		if !allowed[kind] {
			t.Errorf("%s is no line of a ticket", kind)
		}
	}
	if tail := got[len(got)-2:]; !reflect.DeepEqual(tail, []string{"TokenUsageUpdated", "TurnCompleted"}) {
		t.Errorf("it ends with %v", tail)
	}
	usage := ticket[len(ticket)-2].(*TokenUsageUpdated)
	if usage.InputTokens == 0 || usage.TotalTokens < usage.InputTokens || usage.Models["gemini-2.5-flash"].InputTokens != usage.InputTokens {
		t.Errorf("the usage is %#v", usage)
	}
}

func TestRealCLIResume(t *testing.T) {
	options := realCLI(t, "talk")
	options.Prompt = "My name is Tony"
	first := run(t, options)
	session := *first[len(first)-1].(*TurnCompleted).SessionID
	options.Prompt, options.Resume = "What is my name?", session
	second := run(t, options)
	done, ok := second[len(second)-1].(*TurnCompleted)
	if !ok || done.Text != "Tony." || *done.SessionID != session {
		t.Errorf("the last line is %#v", second[len(second)-1])
	}
}

func TestRealCLIFailure(t *testing.T) { // C-39
	options := realCLI(t, "quota")
	options.Prompt = "Go"
	lines := run(t, options)
	failed, ok := lines[len(lines)-1].(*TurnFailed)
	if !ok || failed.Kind != FailureKindRateLimited || *failed.HTTPStatus != 429 || failed.Derived || *failed.CLIStatus != ReportedError {
		t.Errorf("the last line is %#v", lines[len(lines)-1])
	}
}

func TestRealCLICancel(t *testing.T) {
	options := realCLI(t, "hang")
	options.Prompt = "Go"
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	turn, err := Start(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	lines := read(t, func() (Line, error) {
		line, err := turn.Next()
		if output, ok := line.(*OutputProduced); ok && output.Text == "Thinking" {
			cancel()
		}
		return line, err
	})
	failed, ok := lines[len(lines)-1].(*TurnFailed)
	if !ok || failed.Kind != FailureKindCancelled || failed.Text != "Thinking" {
		t.Errorf("the last line is %#v", lines[len(lines)-1])
	}
}

// The answer is a value, or the turn has failed.
func TestRealCLISchema(t *testing.T) {
	options := realCLI(t, "value")
	options.Prompt, options.Schema = "How many?", `{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}`
	lines := run(t, options)
	if done, ok := lines[len(lines)-1].(*TurnCompleted); !ok || string(done.Data) != `{"n":7}` {
		t.Errorf("the last line is %#v", lines[len(lines)-1])
	}
	options.Schema = `{"type": "string"}`
	lines = run(t, options)
	if failed, ok := lines[len(lines)-1].(*TurnFailed); !ok || failed.Kind != FailureKindSchema {
		t.Errorf("the last line is %#v", lines[len(lines)-1])
	}
}

// A host that starts its processes itself needs the arguments and a reader, and nothing else.
func TestRealCLIOwnProcess(t *testing.T) { // C-14, C-34 to C-39
	options := realCLI(t, "work")
	options.Prompt, options.Timeout = "Go", 5*time.Minute
	program, err := Program()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, options.Arguments()...)
	command.Env, command.Stdin = options.Env, strings.NewReader(options.Prompt)
	said, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := read(t, NewReader(bytes.NewReader(said)).Next)
	if done, ok := lines[len(lines)-1].(*TurnCompleted); !ok || done.FinalText != "All done." {
		t.Errorf("the last line is %#v", lines[len(lines)-1])
	}
	// The same turn as the CLI itself tells it, in its own types.
	arguments := append([]string(nil), options.Arguments()...)
	arguments[1] = "--as=stream-json"
	command = exec.Command(program, arguments...)
	command.Env, command.Stdin = options.Env, strings.NewReader(options.Prompt)
	if said, err = command.Output(); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	reader := NewEventReader(bytes.NewReader(said))
	for {
		event, err := reader.Next()
		if err == io.EOF {
			break
		}
		if _, unknown := event.(*UnknownEvent); unknown || err != nil {
			t.Fatalf("%#v, %v", event, err)
		}
		if kind := event.EventHead().Type; len(kinds) == 0 || kinds[len(kinds)-1] != kind {
			kinds = append(kinds, kind)
		}
	}
	if got := strings.Join(kinds, " "); got != "init message tool_use tool_result message result" {
		t.Errorf("got %s", got)
	}
}

// The newest release without a stream.
func TestRealCLIWithoutAStream(t *testing.T) { // C-42
	options := realCLI(t, "report")
	options.Prompt, options.Gemini = "Go", os.Getenv("ALHENA_TEST_OLD_GEMINI")
	lines := run(t, options)
	if note, ok := lines[0].(*Trace); !ok || !note.Derived || !strings.Contains(note.Message, "has no stream-json") {
		t.Errorf("the first line is %#v", lines[0])
	}
	done, ok := lines[len(lines)-1].(*TurnCompleted)
	if !ok || done.Text != "An old answer." || *done.ExitCode != 0 {
		t.Errorf("the last line is %#v", lines[len(lines)-1])
	}
	if usage, ok := lines[len(lines)-2].(*TokenUsageUpdated); !ok || usage.Models["gemini-2.5-flash"].InputTokens == 0 {
		t.Errorf("the line before is %#v", lines[len(lines)-2])
	}
	// A host that starts its processes itself runs it once more, and reads the report with the same reader.
	program, err := Program()
	if err != nil {
		t.Fatal(err)
	}
	own := func(arguments []string) []Line {
		command := exec.Command(program, arguments...)
		command.Env, command.Stdin = options.Env, strings.NewReader(options.Prompt)
		// The exit code of the first one says that it failed.
		said, _ := command.Output()
		return read(t, NewReader(bytes.NewReader(said)).Next)
	}
	if lines := own(options.Arguments()); len(lines) != 1 || !NeedsReport(lines[0]) {
		t.Errorf("got %#v", lines)
	}
	arguments, err := options.ReportArguments()
	if err != nil {
		t.Fatal(err)
	}
	lines = own(arguments)
	if done, ok := lines[len(lines)-1].(*TurnCompleted); !ok || done.Text != "An old answer." || !done.Derived {
		t.Errorf("got %#v", lines)
	}
	if usage, ok := lines[len(lines)-2].(*TokenUsageUpdated); !ok || usage.Models["gemini-2.5-flash"].InputTokens == 0 {
		t.Errorf("the line before is %#v", lines[len(lines)-2])
	}
	// What it does not have is not left out in silence.
	options.SystemPrompt = "Be brief."
	lines = run(t, options)
	if failed, ok := lines[0].(*TurnFailed); !ok || len(lines) != 1 || failed.Kind != FailureKindInput {
		t.Errorf("got %#v", lines)
	}
}

func TestRealCLIWithoutAStreamIsStopped(t *testing.T) {
	options := realCLI(t, "stuck")
	options.Prompt, options.Gemini = "Go", os.Getenv("ALHENA_TEST_OLD_GEMINI")
	options.Timeout = 8 * time.Second
	lines := run(t, options)
	failed, ok := lines[len(lines)-1].(*TurnFailed)
	if !ok || failed.Kind != FailureKindTimeout || !strings.Contains(failed.Message, "timed out") {
		t.Errorf("the last line is %#v", lines[len(lines)-1])
	}
}

func TestRealCLIClose(t *testing.T) {
	options := realCLI(t, "stuck")
	options.Prompt = "Go"
	turn, err := Start(context.Background(), options)
	if err != nil {
		t.Fatal(err)
	}
	for {
		line, err := turn.Next()
		if err != nil {
			t.Fatal(err)
		}
		if output, ok := line.(*OutputProduced); ok && output.Text == "Thinking" {
			break
		}
	}
	turn.Close()
	if _, err := turn.Next(); err != ErrClosed {
		t.Errorf("after Close: %v", err)
	}
}

// alhena is killed: the keeper ends the agent, and Next says so.
func TestRealCLIAlhenaIsKilled(t *testing.T) {
	options := realCLI(t, "stuck")
	options.Prompt = "Go"
	turn, err := Start(context.Background(), options)
	if err != nil {
		t.Fatal(err)
	}
	for {
		line, err := turn.Next()
		var broken *AlhenaError
		if errors.As(err, &broken) {
			if !strings.Contains(err.Error(), "killed") {
				t.Error(err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := line.(*OutputProduced); ok {
			if err := turn.process.command.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
