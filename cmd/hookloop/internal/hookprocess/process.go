package hookprocess

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// startTimeout is used if Spec.Timeout is 0.
	startTimeout = 30 * time.Second
	// stopTimeout is how long to wait after SIGTERM before sending SIGKILL.
	stopTimeout = 5 * time.Second
	// pollInterval is how often to check whether the hook listens.
	pollInterval = 20 * time.Millisecond
	dialTimeout  = 200 * time.Millisecond
)

// Spec says how to start a hook.
type Spec struct {
	// Command is the program with its arguments.
	Command []string
	// Dir is the working directory; if it is empty, this process's is used.
	Dir string
	// Env is added to the environment of this process, as NAME=value.
	Env []string
	// Output receives standard output and standard error; it may be nil.
	Output io.Writer
	// Declared lists the loopback addresses (host:port) of the controllers' hooks. A hook that ignores
	// its environment is looked for there, except where another program already listens.
	Declared []string
	// DialsIn says that the hook dials in at a gateway, so Start does not wait until it listens.
	DialsIn bool
	// Timeout is how long the hook may take until it listens; 0 means 30 seconds.
	Timeout time.Duration
}

// Process is a running hook.
type Process struct {
	spec    Spec
	group   *group
	command *exec.Cmd
	output  *output
	address string

	done chan struct{}
	err  error // set before done is closed
	stop sync.Once
}

// Start starts a hook and returns when it listens, or immediately if it dials in.
//
// If the hook ends or never listens, Start stops it and returns an error with the command and the
// end of its output. The output is left out if Spec.Output has received it.
func Start(ctx context.Context, spec Spec) (*Process, error) {
	if len(spec.Command) == 0 {
		return nil, errors.New("the hook's command is empty, expected a program after --")
	}
	if spec.Timeout <= 0 {
		spec.Timeout = startTimeout
	}
	own, err := freeAddress()
	if err != nil {
		return nil, err
	}
	var declared, taken []string
	for _, address := range spec.Declared {
		switch {
		case slices.Contains(taken, address) || slices.Contains(declared, address):
		case listens(ctx, address):
			taken = append(taken, address)
		default:
			declared = append(declared, address)
		}
	}
	spec.Declared = declared
	p := &Process{spec: spec, output: &output{next: spec.Output}, done: make(chan struct{})}
	if err := p.start(own); err != nil {
		return nil, err
	}
	if spec.DialsIn {
		return p, nil
	}
	if err := p.await(ctx, own, taken); err != nil {
		p.Stop()
		return nil, err
	}
	return p, nil
}

// Address returns the loopback address (host:port) at which the hook listens, or "" if it dials in.
func (p *Process) Address() string { return p.address }

// Done returns a channel that is closed when the program has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns how the program ended. It returns nil while the program runs and after exit status 0.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// Output returns the end of the hook's output.
func (p *Process) Output() string { return p.output.tail() }

// Printed returns Output without the line that announces the address.
func (p *Process) Printed() string {
	var out strings.Builder
	for line := range strings.Lines(p.output.tail()) {
		if !announcement.MatchString(line) {
			out.WriteString(line)
		}
	}
	return strings.TrimSpace(out.String())
}

// String returns the command line.
func (p *Process) String() string { return strings.Join(p.spec.Command, " ") }

// Stop sends SIGTERM to the hook and its descendants. It kills those that are left when the program
// has ended, or after 5 seconds, and returns when they are gone.
func (p *Process) Stop() {
	p.stop.Do(func() {
		p.group.signal(syscall.SIGTERM)
		timer := time.NewTimer(stopTimeout)
		defer timer.Stop()
		select {
		case <-p.done:
		case <-timer.C:
		}
		p.group.end()
		<-p.done
	})
}

// start starts the program in a new process group.
func (p *Process) start(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	path, err := exec.LookPath(p.spec.Command[0])
	if err != nil {
		return fmt.Errorf("hook %q: %w", p.spec.Command[0], err)
	}
	p.group, err = newGroup()
	if err != nil {
		return err
	}
	p.command = exec.Command(path, p.spec.Command[1:]...) //nolint:gosec // the user's own command
	p.command.Dir = p.spec.Dir
	p.command.Env = append(os.Environ(), "HOOKLOOP_HOOK_LISTEN="+address, "PORT="+port)
	p.command.Env = append(p.command.Env, p.spec.Env...)
	p.command.Stdout = p.output
	p.command.Stderr = p.output
	p.command.SysProcAttr = p.group.member()
	p.command.WaitDelay = stopTimeout // a descendant in another group keeps the output open
	if err := p.command.Start(); err != nil {
		p.group.end()
		return fmt.Errorf("hook %q: %w", p, err)
	}
	go func() {
		p.err = p.command.Wait()
		close(p.done)
	}()
	return nil
}

// await waits until the hook listens, and sets its address.
func (p *Process) await(ctx context.Context, own string, taken []string) error {
	ctx, cancel := context.WithTimeout(ctx, p.spec.Timeout)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		p.address = p.found(ctx, own)
		if p.address != "" {
			return nil
		}
		select {
		case <-tick.C:
		case <-p.done:
			return fmt.Errorf("hook %q ended before it listened: %s%s%s", p, exit(p.err), busy(taken), p.ending())
		case <-ctx.Done():
			if cause := context.Cause(ctx); !errors.Is(cause, context.DeadlineExceeded) {
				return cause
			}
			return fmt.Errorf("hook %q does not listen after %s: expected it at the address of HOOKLOOP_HOOK_LISTEN "+
				"(or the port of PORT), or the line \"listening on HOST:PORT\" in its output%s%s",
				p, p.spec.Timeout, busy(taken), p.ending())
		}
	}
}

// busy names the declared addresses that another program uses, for messages.
func busy(taken []string) string {
	if len(taken) == 0 {
		return ""
	}
	return "; another program listens at " + strings.Join(taken, ", ") +
		": end it, or let the hook listen at HOOKLOOP_HOOK_LISTEN"
}

// exit describes how a program ended.
func exit(err error) string {
	if err == nil {
		return "exit status 0, expected a server that keeps running"
	}
	return err.Error()
}

// ending returns the end of the output for an error, or "" if the output was passed on.
func (p *Process) ending() string {
	if p.spec.Output != nil {
		return ""
	}
	text := strings.TrimSpace(p.output.tail())
	if text == "" {
		return "; it printed nothing"
	}
	return "; its output ends: " + text
}

// found returns the address at which the hook listens, or "".
func (p *Process) found(ctx context.Context, own string) string {
	if printed := p.output.address(); printed != "" && listens(ctx, printed) {
		return printed
	}
	for _, address := range append([]string{own}, p.spec.Declared...) {
		if listens(ctx, address) {
			return address
		}
	}
	return ""
}

// listens returns true if a program accepts connections at an address.
func listens(ctx context.Context, address string) bool {
	connection, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	_ = connection.Close() // nothing was sent
	return true
}

// freeAddress returns a loopback address with a free port.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("a port for the hook: %w", err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), listener.Close()
}
