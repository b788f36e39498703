package openase

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"
)

// maxLine is how long a line may be; of a longer one only the beginning is kept.
const maxLine = 64 << 20

// keptOfLong is how much is kept of a line that is longer than maxLine.
const keptOfLong = 4 << 10

// ErrLineTooLong is the Err of an UnknownLine or UnknownEvent that was longer than 64 MiB; its Raw is only the beginning.
var ErrLineTooLong = errors.New("the line is longer than 64 MiB")

// UnknownLine is a line that is none of the known ones: of a newer alhena, or not alhena's at all. It ends nothing.
type UnknownLine struct {
	LineHead

	// The line as it came, without its line break.
	Raw []byte `json:"-"`

	// What is wrong with it; nil when only its type is not known.
	Err error `json:"-"`
}

// DecodeLine reads one line. What cannot be read is an *UnknownLine.
func DecodeLine(data []byte) Line {
	head := LineHead{}
	err := json.Unmarshal(data, &head)
	if err == nil {
		line := emptyLine(head.Type)
		if line == nil {
			return &UnknownLine{LineHead: head, Raw: data}
		}
		if err = json.Unmarshal(data, line); err == nil {
			return line
		}
		err = fmt.Errorf("%s: %w", head.Type, err)
	}
	return &UnknownLine{Raw: data, Err: err}
}

// Reader reads lines from any source: the output of an `alhena run --as openase` that the host itself started with
// Options.Arguments, or a file that `alhena parse --as openase` wrote. A report (`gemini --output-format json`), which is all that
// releases before 0.11 have, is read as the lines of its turn: the answer, the usage, and the end.
type Reader struct {
	source *lineSource
	// Lines that were read ahead, and the error after them.
	waiting []Line
	failed  error
	begun   bool
}

// NewReader reads lines from a source.
func NewReader(source io.Reader) *Reader {
	return &Reader{source: newLineSource(source)}
}

// Next gives the next line, and io.EOF when there is none. Any other error is one of the source.
func (reader *Reader) Next() (Line, error) {
	if len(reader.waiting) > 0 {
		line := reader.waiting[0]
		reader.waiting = reader.waiting[1:]
		return line, nil
	}
	if reader.failed != nil {
		return nil, reader.failed
	}
	text, err := reader.source.next()
	if err == ErrLineTooLong {
		return &UnknownLine{Raw: text, Err: err}, nil
	}
	if err != nil {
		return nil, err
	}
	line := DecodeLine(text)
	if _, unknown := line.(*UnknownLine); !unknown {
		reader.begun = true
	} else if !reader.begun {
		if lines := reader.nextReport(text); len(lines) > 0 {
			reader.begun = true
			line, reader.waiting = lines[0], lines[1:]
		}
	}
	return line, nil
}

// GeminiCLIEvent is a line of Gemini CLI's own stream (`--output-format stream-json`), as it is on the wire: a pointer to one
// of the six GeminiCLI...Event types, or to UnknownEvent. Nothing in it was derived.
type GeminiCLIEvent interface {
	// EventHead is what every event has.
	EventHead() GeminiCLIEventHead

	keep(raw []byte)
}

// GeminiCLIEventHead is what every event has.
type GeminiCLIEventHead struct {
	// Upstream: which of the six types it is.
	Type string `json:"type"`

	// Upstream: when the line was written, ISO-8601 in UTC with milliseconds; empty when it does not say.
	Timestamp string `json:"timestamp,omitempty"`

	// The line as it came, with the fields that are not known here.
	Raw []byte `json:"-"`
}

// EventHead is what every event has.
func (head *GeminiCLIEventHead) EventHead() GeminiCLIEventHead { return *head }

func (head *GeminiCLIEventHead) keep(raw []byte) { head.Raw = raw }

// Time is the timestamp as a time; zero when there is none.
func (head *GeminiCLIEventHead) Time() time.Time {
	at, err := time.Parse(time.RFC3339Nano, head.Timestamp)
	if err != nil {
		return time.Time{}
	}
	return at
}

// UnknownEvent is a line that is none of the six events: of a newer release, or not an event at all (C-18). It ends nothing.
type UnknownEvent struct {
	GeminiCLIEventHead

	// What is wrong with it; nil when only its type is not known.
	Err error `json:"-"`
}

// GeminiCLICount is a number that counts something. JavaScript promises no whole numbers, and an odd one must not cost the
// event: a fraction is rounded, what is no number at all is 0.
type GeminiCLICount int64

// UnmarshalJSON reads any JSON number.
func (count *GeminiCLICount) UnmarshalJSON(data []byte) error {
	*count = 0
	if whole, err := strconv.ParseInt(string(data), 10, 64); err == nil && whole > 0 {
		*count = GeminiCLICount(whole)
	} else if other, err := strconv.ParseFloat(string(data), 64); err == nil && other > 0 {
		*count = GeminiCLICount(math.Round(math.Min(other, 1<<62)))
	}
	return nil
}

// DecodeEvent reads one line of stream-json. What cannot be read is an *UnknownEvent.
func DecodeEvent(data []byte) GeminiCLIEvent {
	head := GeminiCLIEventHead{}
	err := json.Unmarshal(data, &head)
	if err == nil {
		event := emptyEvent(head.Type)
		if event == nil {
			head.keep(data)
			return &UnknownEvent{GeminiCLIEventHead: head}
		}
		if err = json.Unmarshal(data, event); err == nil {
			event.keep(data)
			return event
		}
		err = fmt.Errorf("%s: %w", head.Type, err)
	}
	return &UnknownEvent{GeminiCLIEventHead: GeminiCLIEventHead{Raw: data}, Err: err}
}

// EventReader reads Gemini CLI's own stream from any source: the output of a `gemini --output-format stream-json` that the
// host itself started, or of `alhena run --as stream-json`, which ends with a truthful result.
type EventReader struct {
	source *lineSource
}

// NewEventReader reads events from a source.
func NewEventReader(source io.Reader) *EventReader {
	return &EventReader{source: newLineSource(source)}
}

// Next gives the next event, and io.EOF when there is none. Any other error is one of the source.
func (reader *EventReader) Next() (GeminiCLIEvent, error) {
	text, err := reader.source.next()
	if err == ErrLineTooLong {
		return &UnknownEvent{GeminiCLIEventHead: GeminiCLIEventHead{Raw: text}, Err: err}, nil
	}
	if err != nil {
		return nil, err
	}
	return DecodeEvent(text), nil
}

// lineSource cuts a source into lines of a bounded length. Empty ones are left out.
type lineSource struct {
	source *bufio.Reader
	limit  int
}

func newLineSource(source io.Reader) *lineSource {
	return &lineSource{source: bufio.NewReaderSize(source, 64<<10), limit: maxLine}
}

func (lines *lineSource) next() ([]byte, error) {
	for {
		text, err := lines.one()
		if err == ErrLineTooLong {
			return text, err
		}
		if text = bytes.TrimSpace(text); len(text) > 0 {
			return text, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// one gives a line as it is, with the error that ended it. A line without a line break at the end of the source is a line.
func (lines *lineSource) one() ([]byte, error) {
	var line []byte
	tooLong := false
	for {
		piece, err := lines.source.ReadSlice('\n')
		if !tooLong && len(line)+len(piece) > lines.limit {
			tooLong = true
			line = append(line, piece...)
			if len(line) > keptOfLong {
				line = append([]byte(nil), line[:keptOfLong]...)
			}
		} else if !tooLong {
			line = append(line, piece...)
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		if tooLong && (err == nil || err == io.EOF) {
			return line, ErrLineTooLong
		}
		return line, err
	}
}
