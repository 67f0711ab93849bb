// Package proc runs child processes for tests, demonstrations and local control planes. Call
// [Start], wait with Await until the process is ready, and call Stop at the end. The package keeps
// the process's output for messages.
//
// On Linux a process ends together with the one that started it, even if that one is killed. A
// process that ends is not restarted. A Process is safe for concurrent use.
package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Spec says how to start a process.
type Spec struct {
	// Name is how messages call the process.
	Name string
	Path string
	Args []string
	// Env lists NAME=value pairs to add to this process's environment.
	Env []string
	// OwnGroup starts the process in a process group of its own, so that Ctrl-C in a terminal does not
	// reach it.
	OwnGroup bool
	// Log gets standard output and standard error at once, in addition to Output. It may be nil.
	Log io.Writer
}

// Process is a child process.
type Process struct {
	spec   Spec
	output *Output

	mu      sync.Mutex // guards the fields below
	command *exec.Cmd
	done    chan struct{}
	err     error
}

// Start starts a process.
func Start(spec Spec) (*Process, error) {
	p := &Process{spec: spec, output: &Output{}}
	return p, p.start()
}

// start runs the command from a separate thread that stays alive, because the kernel's parent-death
// signal follows the thread and not the process.
func (p *Process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	//nolint:gosec // running the given program is this package's purpose
	command := exec.Command(p.spec.Path, p.spec.Args...)
	command.Env = append(os.Environ(), p.spec.Env...)
	command.Stdout = io.Writer(p.output)
	if p.spec.Log != nil {
		command.Stdout = io.MultiWriter(p.output, p.spec.Log)
	}
	command.Stderr = command.Stdout
	command.SysProcAttr = dieWithParent()
	command.SysProcAttr.Setpgid = p.spec.OwnGroup
	started := make(chan error)
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := command.Start()
		started <- err
		if err != nil {
			return
		}
		err = command.Wait()
		p.mu.Lock()
		p.err = err
		p.mu.Unlock()
		close(done)
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("%s: %w", p.spec.Name, err)
	}
	p.command = command
	p.done = done
	p.err = nil
	return nil
}

// Done returns a channel that is closed when the process has ended.
func (p *Process) Done() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done
}

// Err returns how the process ended. It returns nil while the process runs and after exit status 0.
func (p *Process) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// Name returns the process's name in messages.
func (p *Process) Name() string { return p.spec.Name }

// PID returns the process's id.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.command.Process.Pid
}

// Output returns the end of the process's output, at least 1 MiB if there is so much.
func (p *Process) Output() string { return p.output.String() }

// Signal sends a signal. It returns no error if the process has ended.
func (p *Process) Signal(s syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.command.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("%s: %w", p.spec.Name, err)
	}
	return nil
}

// Pause stops the process with SIGSTOP; [Process.Resume] continues it. On Linux it returns when all
// threads have stopped or the process has ended, because until then the process may still answer a
// request.
func (p *Process) Pause() error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	if err := awaitStop(p.PID()); err != nil {
		return fmt.Errorf("%s: wait until it is paused: %w", p.spec.Name, err)
	}
	return nil
}

// Resume continues the process after Pause.
func (p *Process) Resume() error { return p.Signal(syscall.SIGCONT) }

// Kill kills the process (SIGKILL) and waits until it is gone.
func (p *Process) Kill() error {
	if err := p.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.Done()
	return nil
}

// Stop sends SIGTERM and waits for the process to end. After the grace period it kills the process.
func (p *Process) Stop(grace time.Duration) error {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.Done():
		return nil
	case <-timer.C:
		return p.Kill()
	}
}

// Restart kills the process and starts it again with the same arguments.
func (p *Process) Restart() error {
	if err := p.Kill(); err != nil {
		return err
	}
	return p.start()
}

// Await polls until ready returns nil. If the process ends or ctx ends first, it returns an error
// with the last error of ready and the end of the process's output.
func (p *Process) Await(ctx context.Context, ready func(context.Context) error) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w; its output ends: %s", p.spec.Name, err, p.output.Tail(2000))
		case <-p.Done():
			return fmt.Errorf("%s has ended: %w; its output ends: %s", p.spec.Name, errors.Join(p.Err(), err),
				p.output.Tail(2000))
		}
	}
}

// Output is a writer that keeps the last MiB. The zero value is ready to use.
type Output struct {
	mu   sync.Mutex // guards data
	data bytes.Buffer
}

const keep = 1 << 20

// Write appends.
func (o *Output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.data.Len() > 2*keep {
		o.data.Next(o.data.Len() - keep)
	}
	return o.data.Write(b)
}

// String returns the text that is kept.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.data.String()
}

// Tail returns the last n bytes, or fewer.
func (o *Output) Tail(n int) string {
	text := o.String()
	return text[max(0, len(text)-n):]
}
