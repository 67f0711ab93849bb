package docs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// deadline is how long a command may take, and how long its output may differ from the page's.
const deadline = 90 * time.Second

// session is a shell that runs the commands of successive pages. Its methods are not safe for
// concurrent use.
type session struct {
	command *exec.Cmd
	input   io.WriteCloser
	writer  io.Closer   // of the output
	output  chan string // closed when the shell has ended
	marks   int
}

// newSession starts a shell in a folder. Its processes form a group, which close ends.
func newSession(ctx context.Context, dir string, env []string) (*session, error) {
	command := exec.CommandContext(ctx, "bash")
	command.Dir = dir
	command.Env = env
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.WaitDelay = 10 * time.Second
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	input, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	pipe, writer := io.Pipe()
	command.Stdout = writer
	command.Stderr = writer
	if err := command.Start(); err != nil {
		return nil, err
	}
	s := &session{command: command, input: input, writer: writer, output: make(chan string, 1000)}
	go func() { // the shell's output → the command that waits for it
		defer close(s.output)
		scanner := bufio.NewScanner(pipe)
		for scanner.Scan() {
			s.output <- scanner.Text()
		}
	}()
	return s, nil
}

// run runs a command, and returns its output and its exit status.
func (s *session) run(text string) ([]string, string, error) {
	s.marks++
	mark := fmt.Sprintf("__done_%d__", s.marks)
	if _, err := fmt.Fprintf(s.input, "{\n%s\n}\necho \"%s $?\"\n", text, mark); err != nil {
		return nil, "", err
	}
	var lines []string
	timer := time.NewTimer(deadline)
	defer timer.Stop()
	for {
		select {
		case line, open := <-s.output:
			if !open {
				return lines, "", errors.New("the shell has ended")
			}
			before, status, done := strings.Cut(line, mark+" ")
			if !done {
				lines = append(lines, line)
				continue
			}
			if before != "" {
				lines = append(lines, before)
			}
			return lines, status, nil
		case <-timer.C:
			return lines, "", fmt.Errorf("no end after %s", deadline)
		}
	}
}

// reads are the commands that only read. They run until their output is the documented one.
var reads = []string{"kubectl get ", "kubectl events", "kubectl describe ", "curl ", "grep ", "hookloop graph "}

// isRead reports whether a command may run more than once.
func isRead(text string) bool {
	for _, prefix := range reads {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	return false
}

// close ends the shell and everything that it has started.
func (s *session) close() error {
	killed := syscall.Kill(-s.command.Process.Pid, syscall.SIGTERM)
	closed := s.input.Close()
	ended := make(chan struct{})
	go func() { // its error is that of the signal
		defer close(ended)
		_ = s.command.Wait()
	}()
	select {
	case <-ended:
	case <-time.After(deadline):
		killed = syscall.Kill(-s.command.Process.Pid, syscall.SIGKILL)
		<-ended
	}
	return errors.Join(killed, closed, s.writer.Close())
}
