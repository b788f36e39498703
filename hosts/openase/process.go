package openase

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// stopTime is how long a program gets to stop what it started before it is killed. Tests have less of it.
var stopTime = 20 * time.Second

// lateOutput is how long output is waited for when the program has ended: what it wrote is there, and only a process that
// it left behind can hold the pipe open.
const lateOutput = time.Second

// maxLate is how much output is read when the program has ended; a pipe holds no more.
const maxLate = 1 << 20

// keptStderr is how much of the end of standard error is kept.
const keptStderr = 64 << 10

// process is a program with its three streams, none of which can be held open by somebody else for longer than lateOutput.
//
// os/exec would wait for the copying of the streams: a process that the program left behind, or a reader that does not read,
// could hold it up. So the program gets plain pipes, and everything that can block ends with it.
type process struct {
	command *exec.Cmd
	ask     func(*exec.Cmd)
	stdout  *os.File
	late    int64
	stderr  *tail

	// Closed when the program has ended; err is set then.
	ended chan struct{}
	err   error

	asked sync.Once
	// Closed when it was asked to end.
	ending chan struct{}
}

// begin starts the program. It ends when it wants to, or when the context does: then it is asked to, in the given way.
func begin(ctx context.Context, command *exec.Cmd, stdin string, ask func(*exec.Cmd)) (*process, error) {
	var files []*os.File
	pipe := func() (*os.File, *os.File, error) {
		read, write, err := os.Pipe()
		if err == nil {
			files = append(files, read, write)
		}
		return read, write, err
	}
	closeAll := func() {
		for _, file := range files {
			file.Close()
		}
	}
	inRead, inWrite, err := pipe()
	if err != nil {
		return nil, err
	}
	outRead, outWrite, err := pipe()
	if err != nil {
		closeAll()
		return nil, err
	}
	errRead, errWrite, err := pipe()
	if err != nil {
		closeAll()
		return nil, err
	}
	command.Stdin, command.Stdout, command.Stderr = inRead, outWrite, errWrite
	if err := command.Start(); err != nil {
		closeAll()
		return nil, err
	}
	inRead.Close()
	outWrite.Close()
	errWrite.Close()
	running := &process{
		command: command,
		ask:     ask,
		stdout:  outRead,
		stderr:  &tail{done: make(chan struct{})},
		ended:   make(chan struct{}),
		ending:  make(chan struct{}),
	}
	go func() {
		// It need not want to read it all.
		_, _ = io.WriteString(inWrite, stdin)
		inWrite.Close()
	}()
	go running.stderr.read(errRead)
	go func() {
		running.err = command.Wait()
		close(running.ended)
		// Whoever reads now has to look again at how it stands.
		_ = outRead.SetReadDeadline(time.Now())
		_ = inWrite.SetWriteDeadline(time.Now())
		_ = errRead.SetReadDeadline(time.Now().Add(lateOutput))
	}()
	go running.supervise(ctx)
	return running, nil
}

// supervise asks the program to end when the context does or somebody wants it, and kills it when it does not.
func (running *process) supervise(ctx context.Context) {
	select {
	case <-running.ended:
		return
	case <-ctx.Done():
		running.stop()
	case <-running.ending:
	}
	running.ask(running.command)
	select {
	case <-running.ended:
	case <-time.After(stopTime):
		kill(running.command)
	}
}

// stop asks the program to end; it may be called more than once.
func (running *process) stop() {
	running.asked.Do(func() { close(running.ending) })
}

// wait waits until the program has ended, and stops it after some time.
func (running *process) wait() error {
	select {
	case <-running.ended:
		return running.err
	case <-time.After(stopTime):
	}
	running.stop()
	<-running.ended
	return running.err
}

// Read reads standard output. When the program has ended it gives what is still there, and no more.
func (running *process) Read(buffer []byte) (int, error) {
	for {
		var until time.Time
		select {
		case <-running.ended:
			if running.late >= maxLate {
				return 0, io.EOF
			}
			until = time.Now().Add(lateOutput)
			// Where a pipe has no deadlines its end has to do.
			_ = running.stdout.SetReadDeadline(until)
		default:
		}
		count, err := running.stdout.Read(buffer)
		if !until.IsZero() {
			running.late += int64(count)
		}
		if count > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return count, err
		}
		// The deadline was that of the program's end, which came while this waited, or it is up.
		if !until.IsZero() && !time.Now().Before(until) {
			return 0, io.EOF
		}
	}
}

// tail keeps the end of what is written.
type tail struct {
	lock sync.Mutex
	text []byte
	done chan struct{}
}

func (tail *tail) read(source *os.File) {
	defer close(tail.done)
	defer source.Close()
	buffer := make([]byte, 8<<10)
	for {
		count, err := source.Read(buffer)
		tail.lock.Lock()
		tail.text = append(tail.text, buffer[:count]...)
		if extra := len(tail.text) - keptStderr; extra > 0 {
			tail.text = append([]byte(nil), tail.text[extra:]...)
		}
		tail.lock.Unlock()
		if err != nil {
			return
		}
	}
}

// String is what there is; it waits a moment for the rest of a program that has ended.
func (tail *tail) String() string {
	select {
	case <-tail.done:
	case <-time.After(2 * lateOutput):
	}
	tail.lock.Lock()
	defer tail.lock.Unlock()
	return strings.TrimSpace(string(tail.text))
}
