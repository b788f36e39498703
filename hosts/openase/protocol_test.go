package openase

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

const at = "2026-11-15T17:49:10.599Z"

// The exact fields of each kind of line, as the CLI writes them.
func TestEachEventHasItsExactFields(t *testing.T) { // C-02 to C-13, C-14, C-47
	head := func(kind string) GeminiCLIEventHead { return GeminiCLIEventHead{Type: kind, Timestamp: at} }
	yes, output, kind := true, "a.txt", "tool_not_registered"
	count := func(number int64) *GeminiCLICount { count := GeminiCLICount(number); return &count }
	for text, want := range map[string]GeminiCLIEvent{
		`{"type":"init","timestamp":"` + at + `","session_id":"s","model":"auto"}`: &GeminiCLIInitEvent{
			GeminiCLIEventHead: head("init"), SessionID: "s", Model: "auto"},
		`{"type":"message","timestamp":"` + at + `","role":"user","content":"Go"}`: &GeminiCLIMessageEvent{
			GeminiCLIEventHead: head("message"), Role: "user", Content: "Go"},
		`{"type":"message","timestamp":"` + at + `","role":"assistant","content":"Hel","delta":true}`: &GeminiCLIMessageEvent{
			GeminiCLIEventHead: head("message"), Role: "assistant", Content: "Hel", Delta: &yes},
		`{"type":"tool_use","timestamp":"` + at + `","tool_name":"glob","tool_id":"1","parameters":{"pattern":"*"}}`: &GeminiCLIToolUseEvent{
			GeminiCLIEventHead: head("tool_use"), ToolName: "glob", ToolID: "1", Parameters: json.RawMessage(`{"pattern":"*"}`)},
		`{"type":"tool_result","timestamp":"` + at + `","tool_id":"1","status":"success","output":"a.txt"}`: &GeminiCLIToolResultEvent{
			GeminiCLIEventHead: head("tool_result"), ToolID: "1", Status: "success", Output: &output},
		`{"type":"tool_result","timestamp":"` + at + `","tool_id":"1","status":"error","error":{"type":"tool_not_registered","message":"no"}}`: &GeminiCLIToolResultEvent{
			GeminiCLIEventHead: head("tool_result"), ToolID: "1", Status: "error", Error: &GeminiCLIError{Type: &kind, Message: "no"}},
		`{"type":"error","timestamp":"` + at + `","severity":"warning","message":"Loop detected"}`: &GeminiCLIErrorEvent{
			GeminiCLIEventHead: head("error"), Severity: "warning", Message: "Loop detected"},
		`{"type":"result","timestamp":"` + at + `","status":"success","stats":{"total_tokens":130,"input_tokens":100,"output_tokens":10,"cached":40,"input":60,"duration_ms":5,"tool_calls":1,"models":{"m":{"total_tokens":130,"input_tokens":100,"output_tokens":10,"cached":40,"input":60}}}}`: &GeminiCLIResultEvent{
			GeminiCLIEventHead: head("result"), Status: "success", Stats: &GeminiCLIStreamStats{
				TotalTokens: count(130), InputTokens: count(100), OutputTokens: count(10), Cached: count(40), Input: count(60), DurationMS: count(5), ToolCalls: count(1),
				Models: map[string]GeminiCLIModelStats{"m": {TotalTokens: count(130), InputTokens: count(100), OutputTokens: count(10), Cached: count(40), Input: count(60)}}}},
		`{"type":"result","timestamp":"` + at + `","status":"error","error":{"type":"tool_not_registered","message":"no"}}`: &GeminiCLIResultEvent{
			GeminiCLIEventHead: head("result"), Status: "error", Error: &GeminiCLIError{Type: &kind, Message: "no"}},
	} {
		want.keep([]byte(text))
		got := DecodeEvent([]byte(text))
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s\ngot %#v\nwant %#v", text, got, want)
		}
		// Written again it is what it was.
		again, err := json.Marshal(got)
		if err != nil || string(again) != text {
			t.Errorf("got %s, %v\nwant %s", again, err, text)
		}
		if when := got.EventHead(); !when.Time().Equal(time.Date(2026, 11, 15, 17, 49, 10, 599000000, time.UTC)) {
			t.Errorf("%s is at %v", text, when.Time())
		}
	}
}

func TestOddNumbersDoNotCostTheEvent(t *testing.T) {
	for text, want := range map[string]int64{
		"12": 12, "12.0": 12, "1.5e3": 1500, "0.6": 1, "-3": 0, "1e300": 1 << 62, "9007199254740993": 9007199254740993, `"7"`: 0, "null": 0, "[1]": 0,
	} {
		event := DecodeEvent([]byte(`{"type":"result","status":"success","stats":{"total_tokens":` + text + `}}`))
		result, ok := event.(*GeminiCLIResultEvent)
		if !ok {
			t.Errorf("%s gave %#v", text, event)
			continue
		}
		got := int64(0)
		if result.Stats.TotalTokens != nil {
			got = int64(*result.Stats.TotalTokens)
		}
		if got != want {
			t.Errorf("%s gave %d, want %d", text, got, want)
		}
	}
}

// What is not known is a value with all of the line in it.
var unknown = []string{
	`{"type":"TaskStatus","phase":1}`, `{"type":"init","session_id":1}`, `{"type":"trace","severity":1}`, `{"type":"trace","at":"next Tuesday"}`,
	`{"at":"2026-11-15T17:49:10.599Z"}`, `{"type":7}`, `not JSON`, `{"type":"result"`, `[]`, `null`, `"init"`, `{}`, "\xff\xfe", "{\"type\":\"\xff\"}", strings.Repeat("[", 20000),
}

func TestUnknownLinesAreValues(t *testing.T) { // C-18
	lines := read(t, NewReader(strings.NewReader(strings.Join(unknown, "\r\n\n"))).Next)
	if len(lines) != len(unknown) {
		t.Fatalf("%d lines, want %d", len(lines), len(unknown))
	}
	for index, line := range lines {
		got, ok := line.(*UnknownLine)
		// An init is no line of alhena's, whatever it holds.
		wrong := index > 0 && !strings.Contains(unknown[index], `"type":"init"`) && index != 4 && index != 9 && index != 11 && index != 13
		if !ok || string(got.Raw) != unknown[index] || (got.Err != nil) != wrong {
			t.Errorf("%.60s gave %#v", unknown[index], line)
		}
	}
	for _, text := range unknown {
		event := DecodeEvent([]byte(text))
		if got, ok := event.(*UnknownEvent); !ok || string(got.Raw) != text {
			t.Errorf("%.60s gave %#v", text, event)
		}
	}
}

func TestFieldsOfTomorrowAreKept(t *testing.T) {
	text := `{"type":"init","session_id":"s","model":"m","mood":"good"}`
	if event, ok := DecodeEvent([]byte(text)).(*GeminiCLIInitEvent); !ok || string(event.Raw) != text || event.SessionID != "s" {
		t.Errorf("%#v", event)
	}
}

func TestALineMayBeOfAnyLengthAndComeInPieces(t *testing.T) {
	long := `{"type":"init","session_id":"` + strings.Repeat("x", 1<<20) + `","model":"m"}`
	source := iotest.OneByteReader(strings.NewReader(long + "\n{\"type\":\"error\",\"severity\":\"warning\",\"message\":\"w\"}"))
	reader := NewEventReader(source)
	first, err := reader.Next()
	if init, ok := first.(*GeminiCLIInitEvent); !ok || err != nil || len(init.SessionID) != 1<<20 {
		t.Errorf("%.80v, %v", first, err)
	}
	second, err := reader.Next()
	if _, ok := second.(*GeminiCLIErrorEvent); !ok || err != nil {
		t.Errorf("%#v, %v", second, err)
	}
	if _, err := reader.Next(); err != io.EOF {
		t.Errorf("%v", err)
	}
}

// zeros never end.
type zeros struct{ left int }

func (zeros *zeros) Read(buffer []byte) (int, error) {
	if zeros.left <= 0 {
		return 0, io.EOF
	}
	zeros.left -= len(buffer)
	return len(buffer), nil
}

func TestAnEndlessLineNeedsNoMemory(t *testing.T) {
	source := io.MultiReader(&zeros{left: 300 << 20}, strings.NewReader("\n{\"type\":\"trace\",\"severity\":\"warning\",\"message\":\"after\",\"at\":\""+at+"\"}\n"))
	reader := NewReader(source)
	reader.source.limit = 1 << 20
	first, err := reader.Next()
	if long, ok := first.(*UnknownLine); !ok || err != nil || long.Err != ErrLineTooLong || len(long.Raw) != keptOfLong {
		t.Fatalf("%.80v, %v", first, err)
	}
	second, err := reader.Next()
	if trace, ok := second.(*Trace); !ok || err != nil || trace.Message != "after" {
		t.Errorf("%#v, %v", second, err)
	}
}

func TestAnErrorOfTheSourceIsOne(t *testing.T) {
	broken := errors.New("the disk is gone")
	reader := NewReader(io.MultiReader(bytes.NewReader([]byte("{\"type\":\"x\"}\nhalf")), iotest.ErrReader(broken)))
	lines := 0
	for {
		_, err := reader.Next()
		if err == nil {
			lines++
			continue
		}
		if err != broken || lines != 2 {
			t.Errorf("%d lines and %v", lines, err)
		}
		return
	}
}

func TestArgumentsAreValuesAndNeverOptions(t *testing.T) {
	options := Options{Prompt: "--yolo", Dir: "-x", Model: "--approval=yolo", Resume: "-r", AllowTools: []string{"", "--"}, Timeout: 1500 * time.Microsecond}
	want := []string{"run", "--as=openase", "--trust", "--dir=-x", "--model=--approval=yolo", "--resume=-r", "--allow-tool=--",
		"--timeout=2ms", "--first-event-timeout=2ms", "--stall-timeout=2ms", "-"}
	if got := options.Arguments(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestWithoutATimeoutThereIsNoClock(t *testing.T) {
	want := []string{"run", "--as=openase", "--trust", "--timeout=none", "--first-event-timeout=none", "--stall-timeout=none", "-"}
	if got := (Options{}).Arguments(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q", got)
	}
}

// C-42: what `gemini --output-format json` prints
const aReport = `{
  "session_id": "s",
  "response": "An old\nanswer. }",
  "stats": {
    "models": {
      "m": {
        "tokens": {
          "prompt": 100,
          "candidates": 10,
          "total": 130,
          "cached": 40,
          "thoughts": 20
        }
      }
    },
    "tools": {
      "totalCalls": 2
    }
  }
}`

func TestAReportIsReadAsTheLinesOfItsTurn(t *testing.T) {
	compact := new(bytes.Buffer)
	if err := json.Compact(compact, []byte(aReport)); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{aReport, compact.String(), "Loaded cached credentials.\n" + aReport + "\nlater\n"} {
		lines := read(t, NewReader(strings.NewReader(text)).Next)
		known := lines[:0:0]
		for _, line := range lines {
			if _, unknown := line.(*UnknownLine); !unknown {
				known = append(known, line)
			}
		}
		if got := strings.Join(types(known), " "); got != "OutputProduced TokenUsageUpdated TurnCompleted" {
			t.Fatalf("%s: got %s", text, got)
		}
		if said := known[0].(*OutputProduced); said.Text != "An old\nanswer. }" || !said.Snapshot || said.Derived {
			t.Errorf("got %#v", said)
		}
		usage := known[1].(*TokenUsageUpdated)
		counts := TokenCounts{InputTokens: 100, CachedInputTokens: 40, OutputTokens: 10, ReasoningTokens: 20, TotalTokens: 130}
		if usage.Models["m"] != counts || usage.TotalTokens != 130 || usage.InputTokens != 100 {
			t.Errorf("got %#v", usage)
		}
		// A report does not say how the run ended.
		done := known[2].(*TurnCompleted)
		if !done.Derived || done.CLIStatus != nil || *done.SessionID != "s" || done.FinalText != done.Text || done.ToolCalls != 2 {
			t.Errorf("got %#v", done)
		}
		wantDerived(t, known[0], "")
		wantDerived(t, known[1], "reasoning_tokens")
		wantDerived(t, known[2], "text final_text duration_ms tool_calls")
	}
}

// wantDerived compares the derived fields of a line with those that `alhena` itself names in such a line: see derived_fields in
// crates/hosts/src/openase/line.rs.
func wantDerived(t *testing.T, line Line, want string) {
	t.Helper()
	if got := strings.Join(line.Head().DerivedFields, " "); got != want {
		t.Errorf("derived fields of %s: got %q, want %q", line.Head().Type, got, want)
	}
}

func TestAReportOfAnErrorIsATurnThatFailed(t *testing.T) {
	for text, kind := range map[string]FailureKind{
		`{"error": {"type": "Error", "message": "no key", "code": 41}}`:   FailureKindAuth,
		`{"response": "half", "error": {"message": "slow", "code": 429}}`: FailureKindRateLimited,
		`{"error": {"message": "no space left", "code": 54}}`:             FailureKindDiskFull,
		`{"error": {"message": "broken", "code": "odd"}}`:                 FailureKindAPI,
		`{"response": "", "stats": {}}`:                                   FailureKindInvalidResponse,
	} {
		lines := read(t, NewReader(strings.NewReader(text)).Next)
		failed, ok := lines[len(lines)-1].(*TurnFailed)
		if !ok || failed.Kind != kind || !failed.Derived || (kind != FailureKindInvalidResponse) != (failed.CLIError != nil) {
			t.Errorf("%s: got %#v", text, lines)
		}
		wantDerived(t, lines[len(lines)-1], "kind message hint text duration_ms")
	}
}

func TestWhatOnlyBeginsLikeAReportIsReadLineByLine(t *testing.T) {
	line := `{"type":"trace","severity":"warning","message":"x","at":"` + at + `"}`
	for text, want := range map[string]string{
		"{\n" + line + "\n}\n" + line: "? trace ? trace",
		"{\n\"response\": 1\n}\n":     "? ? ?",
		"{\n":                         "?",
		line + "\n" + aReport:         "trace",
	} {
		var kinds []string
		for _, line := range read(t, NewReader(strings.NewReader(text)).Next) {
			kind := line.Head().Type
			if kind == "" {
				kind = "?"
			}
			kinds = append(kinds, kind)
		}
		if got := strings.Join(kinds, " "); got != want && !(want == "trace" && strings.HasPrefix(got, "trace ? ?")) {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
	broken := errors.New("broken")
	reader := NewReader(io.MultiReader(strings.NewReader("{\nx\n"), iotest.ErrReader(broken)))
	for range [2]int{} {
		if _, err := reader.Next(); err != nil {
			t.Error(err)
		}
	}
	for range [2]int{} {
		if _, err := reader.Next(); err != broken {
			t.Errorf("got %v", err)
		}
	}
}

func TestOnlyAReleaseWithoutAStreamNeedsAReport(t *testing.T) {
	old := &TurnFailed{Kind: FailureKindInput, Message: "Gemini CLI 0.10.0 cannot be driven: it has no stream-json output"}
	if !NeedsReport(old) || NeedsReport(&TurnFailed{Kind: FailureKindInput}) || NeedsReport(&TurnCompleted{}) {
		t.Error("not so")
	}
	options := Options{Dir: "-x", Gemini: "g", Model: "m", Approval: "yolo"}
	want := "host report --gemini=g --dir=-x -- --output-format=json --approval-mode=yolo --model=m"
	if got, err := options.ReportArguments(); err != nil || strings.Join(got, " ") != want {
		t.Errorf("got %q, %v", got, err)
	}
	for _, options := range []Options{{Schema: "{}"}, {SystemPrompt: "x"}, {Resume: "x"}, {AllowTools: []string{"x"}}, {Approval: "plan"}} {
		if got, err := options.ReportArguments(); err == nil {
			t.Errorf("got %q", got)
		}
	}
}

func FuzzLinesAndEventsAreNeverLost(f *testing.F) {
	for _, text := range unknown {
		f.Add([]byte(text))
	}
	f.Add([]byte(`{"type":"result","status":"success","stats":{"models":{"m":{"input":1}}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if bytes.Contains(data, []byte(`"response"`)) || bytes.Contains(data, []byte(`"error"`)) {
			t.Skip("a report is fewer lines, or more")
		}
		if DecodeLine(data) == nil || DecodeEvent(data) == nil {
			t.Error("nothing")
		}
		count := 0
		reader := NewReader(bytes.NewReader(data))
		for {
			if _, err := reader.Next(); err != nil {
				break
			}
			count++
		}
		want := 0
		for _, line := range bytes.Split(data, []byte("\n")) {
			if len(bytes.TrimSpace(line)) > 0 {
				want++
			}
		}
		if count != want {
			t.Errorf("%d lines, want %d", count, want)
		}
	})
}
