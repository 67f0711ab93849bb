package exec

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	osexec "os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
)

var (
	// errEnded means that the program ended before it printed anything of an answer.
	errEnded = errors.New("the program ended without an answer")
	// errPartial means that the program ended within the line of its answer.
	errPartial = errors.New("the program ended in the middle of its answer")
)

// process is a program that runs. It leads a process group of its own, so that the programs that it
// starts are killed with it.
type process struct {
	command *osexec.Cmd
	stdin   *os.File
	stdout  *os.File
	stderr  *os.File
	answers *bufio.Reader
	logged  *stderrLog
	// logging is closed when standard error has been read to its end.
	logging chan struct{}
	kill    func()
}

// startProcess starts a program in the folder that it is in.
func startProcess(path string, env []string, log logr.Logger) (*process, error) {
	// #nosec G204 -- the operator of the engine has put the program there, and it gets no arguments
	command := osexec.Command(path) //nolint:noctx // it outlives the question that starts it
	command.Dir = filepath.Dir(path)
	command.Env = env
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var theirs, ours []*os.File
	for range 3 {
		reader, writer, err := os.Pipe()
		if err != nil {
			closeAll(append(theirs, ours...))
			return nil, err
		}
		theirs = append(theirs, reader)
		ours = append(ours, writer)
	}
	// The program writes to its standard output and error, and reads its standard input.
	theirs[1], ours[1] = ours[1], theirs[1]
	theirs[2], ours[2] = ours[2], theirs[2]
	command.Stdin = theirs[0]
	command.Stdout = theirs[1]
	command.Stderr = theirs[2]
	err := command.Start()
	closeAll(theirs)
	if err != nil {
		closeAll(ours)
		return nil, fmt.Errorf("the program cannot be started: %w", err)
	}
	p := &process{
		command: command,
		stdin:   ours[0],
		stdout:  ours[1],
		stderr:  ours[2],
		answers: bufio.NewReaderSize(ours[1], firstBytes),
		logged:  newStderrLog(log.WithValues("pid", command.Process.Pid)),
		logging: make(chan struct{}),
	}
	// A process group keeps its number until its leader has been waited for, which end does later.
	p.kill = sync.OnceFunc(func() {
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL) // it may have ended already
		closeAll([]*os.File{p.stdin, p.stdout})                 // ends reads and writes that wait
	})
	go func() {
		defer close(p.logging)
		p.logged.copy(p.stderr)
	}()
	return p, nil
}

// exchange writes a question and reads one line. When ctx ends, it kills the program and returns
// the error of ctx. After any error the program is of no more use.
func (p *process) exchange(
	ctx context.Context,
	question []byte,
	reserve func(bytes int64) error,
) ([]byte, error) {
	stop := context.AfterFunc(ctx, p.kill)
	// Another goroutine writes, because a program may print while it still reads.
	written := make(chan error, 1)
	go func() {
		_, err := p.stdin.Write(question)
		written <- err
	}()
	line, err := p.readLine(ctx, reserve)
	if err != nil {
		p.kill() // ends the write
	}
	writeErr := <-written
	switch {
	case !stop():
		return nil, ctx.Err()
	case err != nil:
		return nil, err
	case writeErr != nil:
		return nil, &invalidError{fmt.Errorf("the program printed a line, but did not read the question: %w", writeErr)}
	}
	return line, nil
}

// grace is how long end waits for the standard error of a program that has ended. It only passes if
// another program outside of the process group keeps it open.
const grace = 100 * time.Millisecond

// end kills the process group, waits for the program and returns how it ended, with the last line
// that it wrote to standard error.
func (p *process) end() string {
	p.kill()
	_ = p.stderr.SetReadDeadline(time.Now().Add(grace)) // pipes have deadlines
	state := "exit status 0"
	if err := p.command.Wait(); err != nil {
		state = err.Error()
	}
	<-p.logging
	closeAll([]*os.File{p.stderr})
	if p.logged.last != "" {
		state = fmt.Sprintf("%s, and its last message was %.100q", state, p.logged.last)
	}
	return state
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // nothing that was written is lost: pipes have no buffer of their own
	}
}

// invalidError means that the program printed something that cannot be an answer.
type invalidError struct{ error }

func (e *invalidError) Unwrap() error { return e.error }

// firstBytes is the size of the first buffer for an answer.
const firstBytes = 16 << 10

// readLine reads one line without its end. It reserves the memory of each buffer.
func (p *process) readLine(ctx context.Context, reserve func(bytes int64) error) ([]byte, error) {
	var line []byte
	for {
		part, err := p.answers.ReadSlice('\n')
		if len(line)+len(part) > MaxAnswerBytes {
			return nil, &invalidError{fmt.Errorf("the answer is larger than %d bytes", MaxAnswerBytes)}
		}
		if need := len(line) + len(part); need > cap(line) {
			size := min(max(2*cap(line), need, firstBytes), MaxAnswerBytes)
			if err := reserve(int64(size)); err != nil {
				return nil, err
			}
			line = append(make([]byte, 0, size), line...)
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line[:len(line)-1], nil
		case errors.Is(err, bufio.ErrBufferFull):
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, io.EOF) && len(line) == 0:
			return nil, errEnded
		case errors.Is(err, io.EOF):
			return nil, errPartial
		default:
			return nil, err
		}
	}
}
