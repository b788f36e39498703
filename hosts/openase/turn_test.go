//go:build unix

package openase

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	completed = `{"type":"TurnCompleted","session_id":"s","text":"Hi","final_text":"Hi","duration_ms":1,"tool_calls":0,"at":"` + at + `"}`
	produced  = `{"type":"OutputProduced","stream":"assistant","text":"Hi","snapshot":false,"at":"` + at + `"}`
	actor     = "OPENASE_TEST_ACTS_AS"
)

// This program also plays alhena, badly.
func TestMain(m *testing.M) {
	if play, ok := acts[os.Getenv(actor)]; ok {
		play()
		os.Exit(0)
	}
	if os.Getenv("ALHENA_TEST_SCENARIOS") == "" {
		stopTime = time.Second
	}
	os.Exit(m.Run())
}

// holder leaves a process behind that holds the output open.
func holder(script string) {
	child := exec.Command("sh", "-c", script)
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	child.Env = []string{"PATH=" + os.Getenv("PATH")}
	if err := child.Start(); err != nil {
		panic(err)
	}
	fmt.Println(`{"type":"holder","pid":` + strconv.Itoa(child.Process.Pid) + `}`)
}

var acts = map[string]func(){
	"holds the pipe":     func() { holder("exec sleep 60"); fmt.Println(completed) },
	"holds and says no":  func() { holder("exec sleep 60"); fmt.Println(produced) },
	"junk for ever":      func() { holder("exec yes junk"); time.Sleep(100 * time.Millisecond) },
	"does not exit":      func() { fmt.Println(completed); time.Sleep(time.Minute) },
	"deaf":               func() { signal.Ignore(syscall.SIGTERM); fmt.Println(produced); time.Sleep(time.Minute) },
	"does not read":      func() { fmt.Println(produced); fmt.Println(completed) },
	"silent":             func() { time.Sleep(time.Minute) },
	"is killed":          func() { fmt.Println(produced); _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) },
	"wrong usage":        func() { fmt.Fprintln(os.Stderr, "YOLO mode is on\nerror: no such session\nhint: look"); os.Exit(2) },
	"says nothing":       func() {},
	"half a line":        func() { fmt.Print(produced[:30]) },
	"floods with errors": func() { fmt.Fprintln(os.Stderr, strings.Repeat("x", 100<<20)); fmt.Println(completed) },
	"garbage":            func() { fmt.Print("\x00\xff\n{}\n[]\n" + completed + "\n" + produced + "\n") },
	"floods": func() {
		for {
			fmt.Println(produced)
		}
	},
	"fills the pipe": func() {
		for index := 0; index < 400; index++ {
			fmt.Println(produced)
		}
		fmt.Println(completed)
	},
}

// begun starts a turn with a bad alhena. Everything has to be over in a time that is far from what it would sleep.
func begun(t *testing.T, ctx context.Context, act, prompt string) *Turn {
	t.Helper()
	return begunWith(t, ctx, act, Options{Prompt: prompt})
}

func begunWith(t *testing.T, ctx context.Context, act string, options Options) *Turn {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("ALHENA_BIN", program)
	t.Setenv(actor, act)
	turn, err := Start(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	t.Cleanup(func() {
		turn.Close()
		if took := time.Since(start); took > 30*time.Second {
			t.Errorf("it took %v", took)
		}
		if err := syscall.Kill(turn.process.command.Process.Pid, 0); err == nil {
			t.Error("the program still runs")
		}
	})
	return turn
}

// drained reads to the end, and ends what was left behind on purpose.
func drained(t *testing.T, turn *Turn) ([]Line, error) {
	t.Helper()
	var lines []Line
	for {
		line, err := turn.Next()
		if err != nil {
			again, same := turn.Next()
			if again != nil || !errors.Is(same, err) {
				t.Errorf("after %v came %v, %v", err, again, same)
			}
			return lines, err
		}
		if left, ok := line.(*UnknownLine); ok && left.Type == "holder" {
			var pid int
			if _, err := fmt.Sscanf(string(left.Raw), `{"type":"holder","pid":%d}`, &pid); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
		}
		lines = append(lines, line)
	}
}

func TestNothingThatAlhenaDoesMakesATurnHang(t *testing.T) {
	for act, want := range map[string]string{
		"holds the pipe":     "EOF",
		"holds and says no":  "alhena ended without an outcome",
		"junk for ever":      "alhena ended without an outcome",
		"does not exit":      "EOF",
		"does not read":      "EOF",
		"is killed":          "alhena ended without an outcome: signal: killed",
		"wrong usage":        "no such session\nhint: look (alhena ended without an outcome: exit status 2)",
		"says nothing":       "alhena ended without an outcome",
		"half a line":        "alhena ended without an outcome",
		"floods with errors": "EOF",
		"garbage":            "EOF",
		"fills the pipe":     "EOF",
	} {
		t.Run(act, func(t *testing.T) {
			turn := begun(t, context.Background(), act, strings.Repeat("prompt ", 1<<20))
			lines, err := drained(t, turn)
			if !strings.HasPrefix(err.Error(), want) {
				t.Errorf("got %.300v, want %s", err, want)
			}
			if want == "EOF" && (len(lines) == 0 || !IsLast(lines[len(lines)-1])) {
				t.Errorf("got %#v", lines)
			}
			if act == "fills the pipe" && len(lines) != 401 {
				t.Errorf("%d lines", len(lines))
			}
		})
	}
}

func TestTheEndOfTheContextEndsADeafProgram(t *testing.T) {
	for _, act := range []string{"deaf", "silent", "floods"} {
		t.Run(act, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
			defer cancel()
			turn := begun(t, ctx, act, "x")
			lines, err := drained(t, turn)
			if err != io.EOF || len(lines) == 0 {
				t.Fatalf("got %d lines, %v", len(lines), err)
			}
			if failed, ok := lines[len(lines)-1].(*TurnFailed); !ok || failed.Kind != FailureKindCancelled {
				t.Errorf("got %#v", lines[len(lines)-1])
			}
		})
	}
}

func TestATurnThatNobodyReadsIsEndedByItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	turn := begun(t, ctx, "floods", "x")
	cancel()
	select {
	case <-turn.process.ended:
	case <-time.After(20 * time.Second):
		t.Error("it still runs")
	}
}

func TestCloseEndsATurnAtAnyTime(t *testing.T) {
	for _, act := range []string{"deaf", "silent", "floods", "holds the pipe", "does not exit"} {
		t.Run(act, func(t *testing.T) {
			turn := begun(t, context.Background(), act, strings.Repeat("x", 1<<20))
			reading := make(chan error)
			go func() {
				for {
					if _, err := turn.Next(); err != nil {
						reading <- err
						return
					}
				}
			}()
			time.Sleep(50 * time.Millisecond)
			closing := make(chan error, 2)
			for range [2]int{} {
				go func() { closing <- turn.Close() }()
			}
			for range [2]int{} {
				if err := <-closing; err != nil {
					t.Error(err)
				}
			}
			if err := <-reading; err != ErrClosed && err != io.EOF {
				t.Errorf("Next gave %v", err)
			}
			if _, err := turn.Next(); err != ErrClosed {
				t.Errorf("after Close: %v", err)
			}
		})
	}
}

func TestNoGoroutineAndNoFileIsLeft(t *testing.T) {
	files := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip(err)
		}
		return len(entries)
	}
	goroutines, open := runtime.NumGoroutine(), files()
	for range [5]int{} {
		for _, act := range []string{"fills the pipe", "says nothing", "garbage"} {
			if _, err := drained(t, begun(t, context.Background(), act, "x")); err == nil {
				t.Error("no end")
			}
		}
	}
	deadline := time.Now().Add(20 * time.Second)
	for runtime.NumGoroutine() > goroutines+1 || files() > open+1 {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines and %d files, before %d and %d", runtime.NumGoroutine(), files(), goroutines, open)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestWithoutAlhenaTheErrorSaysSo(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/alhena", []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	before, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chdir(before) })
	if err := os.Chdir(dir); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", ".", ":"} {
		t.Setenv("ALHENA_BIN", "")
		t.Setenv("PATH", path)
		_, err := Start(context.Background(), Options{Prompt: "x"})
		if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "ALHENA_BIN") {
			t.Errorf("%q: got %v", path, err)
		}
	}
	// One that is there, but only from here; none; a directory.
	for _, program := range []string{"alhena", dir + "/nowhere", dir} {
		t.Setenv("ALHENA_BIN", program)
		if _, err := Start(context.Background(), Options{Prompt: "x"}); !errors.Is(err, ErrNotFound) {
			t.Errorf("%q: got %v", program, err)
		}
	}
}

func TestAContextThatIsOverBeforeAlhenaSpeaksIsATurnThatFailed(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	lines, err := drained(t, begun(t, ctx, "says nothing", "x"))
	if err != io.EOF || len(lines) != 1 {
		t.Fatalf("got %#v, %v", lines, err)
	}
	if failed, ok := lines[0].(*TurnFailed); !ok || failed.Kind != FailureKindCancelled || !failed.Derived {
		t.Errorf("got %#v", lines[0])
	}
	wantDerived(t, lines[0], "kind message hint text duration_ms")
}

func TestAReportThatNeverComesIsATurnThatFailed(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(actor, "says nothing")
	old := &TurnFailed{Kind: FailureKindInput, Message: "Gemini CLI 0.10.0 cannot be driven: it has no stream-json output"}
	lines, ok := withoutStream(context.Background(), program, Options{Prompt: "x"}, old)
	if !ok || strings.Join(types(lines), " ") != "trace TurnFailed" {
		t.Fatalf("got %#v, %v", lines, ok)
	}
	if failed := lines[1].(*TurnFailed); failed.Kind != FailureKindCrashed || !failed.Derived {
		t.Errorf("got %#v", failed)
	}
	// A line that is derived as a whole names no fields.
	wantDerived(t, lines[0], "")
	wantDerived(t, lines[1], "kind message hint text duration_ms")
}

func TestASystemPromptOfAnySizeGoesByAFileThatIsGoneAfterwards(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	file, err := systemPromptFile(strings.Repeat("long ", 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 || info.Size() != 5<<20 {
		t.Errorf("got %v, %v", info, err)
	}
	arguments := strings.Join(Options{SystemPrompt: "x"}.arguments(file), " ")
	if !strings.Contains(arguments, "--system-prompt-file="+file) || strings.Contains(arguments, "--system-prompt=") {
		t.Error(arguments)
	}
	remove(file)
	turn := begunWith(t, context.Background(), "says nothing", Options{Prompt: "x", SystemPrompt: "Be brief."})
	turn.Close()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		left, err := os.ReadDir(os.Getenv("TMPDIR"))
		if err != nil {
			t.Fatal(err)
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("left: %v", left)
		}
	}
}
