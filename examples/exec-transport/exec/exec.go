// Package exec asks hooks that are programs. It starts a program, keeps it running, writes each
// question as one line of JSON to its standard input, and reads one line of JSON from its standard
// output. A hook can so be one file in Python, in shell, or in any language that can read a line.
//
// To use it, put the programs into a folder and give the transport a name:
//
//	config := server.DefaultConfig()
//	config.Transports = hook.Openers{"exec": (&exec.Transport{Folder: "/hooks"}).Open}
//	err := server.Run(ctx, config)
//
// A controller then refers to a file of the folder:
//
//	hooks:
//	  sync:
//	    transport:
//	      name: exec
//	      config: {program: hello.py}
//
// A program runs with the rights of the engine. This is why a controller can only choose among the
// files of [Transport.Folder], and cannot pass arguments.
//
// # The program's side
//
// A question has the fields of [Question], and its request is the JSON of a webhook's version v2.
// The program must print exactly one line for each question, with the same id:
//
//	{"id":1,"response":{"status":{},"children":[]}}
//	{"id":2,"error":{"message":"no such plan","kind":"rejected","reason":"NoSuchPlan"}}
//
// It must flush its output after each line. It should write messages to standard error, which goes
// to the engine's log. It should end when its standard input does.
//
// A program gets one question at a time; the config's field processes runs several of them beside
// each other. When a question exceeds its deadline or is cancelled, the program is killed together
// with its process group, because there is no other way to stop a script, and the next question
// starts it again.
package exec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/transports/webhook"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// MaxAnswerBytes is the largest line that a program may print.
	MaxAnswerBytes = webhook.MaxAnswerBytes
	// MaxProcesses is the largest value of the config's field processes.
	MaxProcesses = 64

	defaultTimeout = 10 * time.Second
	// maxDecodedBytes is the most memory that is counted for a decoded answer.
	maxDecodedBytes = 16 * MaxAnswerBytes
)

// Transport opens hooks that are programs. Its fields must not change after the first call of
// [Transport.Open].
type Transport struct {
	// Folder holds the programs. Each executable file in it may be started by everyone who may
	// create a controller. A relative folder is one below the working directory of the engine.
	Folder string
	// Env is the environment of the programs, as in os/exec: "KEY=value". It is empty by default,
	// so that the engine's own variables, which may hold secrets, do not reach the programs. Set at
	// least PATH for a program that needs an interpreter or calls other programs.
	Env []string
	// Log gets what the programs write to standard error. The zero value is klog's logger.
	Log logr.Logger
}

// Config is the config of a hook in the controller's spec.
type Config struct {
	// Program is the name of a file in [Transport.Folder].
	Program string `json:"program"`
	// Timeout is how long a question may take, as a Go duration. This includes the wait for a free
	// process. It is 10s by default.
	Timeout string `json:"timeout"`
	// Processes is how many copies of the program may run at a time, from 1 to [MaxProcesses]. Each
	// gets one question at a time. It is 1 by default.
	Processes int `json:"processes"`
}

// Open prepares a hook; it is a [hook.Opener]. The first question starts the program. An error names
// the field of the config that is wrong; a program that does not exist or cannot run is an error of
// the question.
func (t *Transport) Open(s hook.Config) (*hook.Opened, error) {
	config := Config{Processes: 1}
	decoder := json.NewDecoder(strings.NewReader(string(s.Field)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&config); err != nil {
		return nil, err
	}
	timeout, err := config.check()
	if err != nil {
		return nil, err
	}
	folder, err := filepath.Abs(t.Folder)
	if err != nil {
		return nil, err
	}
	log := t.Log
	if log.IsZero() {
		log = klog.Background()
	}
	now := s.Clock
	if now == nil {
		now = clock.RealClock{}
	}
	address := "exec:" + config.Program
	c := &client{
		name:    string(s.Op) + " " + address,
		opened:  s,
		timeout: timeout,
		runners: make(chan *runner, config.Processes),
	}
	c.life, c.end = context.WithCancelCause(context.Background())
	for range config.Processes {
		c.runners <- &runner{
			path:  filepath.Join(folder, config.Program),
			env:   append([]string{}, t.Env...), // a nil list would be the environment of the engine
			log:   log.WithValues("hook", c.name),
			clock: now,
		}
	}
	return &hook.Opened{Hook: c, Address: address, Timeout: timeout, Close: sync.OnceValue(c.close)}, nil
}

// check returns the timeout, or an error that names the wrong field.
func (c *Config) check() (time.Duration, error) {
	if c.Program == "" || c.Program == "." || c.Program == ".." || strings.ContainsAny(c.Program, "/\\\x00") {
		return 0, fmt.Errorf("program: %q; expected the name of a file in the folder of programs", c.Program)
	}
	if c.Processes < 1 || c.Processes > MaxProcesses {
		return 0, fmt.Errorf("processes: %d; expected a number from 1 to %d", c.Processes, MaxProcesses)
	}
	if c.Timeout == "" {
		return defaultTimeout, nil
	}
	timeout, err := time.ParseDuration(c.Timeout)
	if err != nil || timeout <= 0 {
		return 0, fmt.Errorf("timeout: %q; expected a duration such as 10s", c.Timeout)
	}
	return timeout, nil
}

// client asks the programs of one hook.
type client struct {
	name string // of the hook, in messages
	// opened is the config with which the hook was opened.
	opened  hook.Config
	timeout time.Duration
	// runners holds the runners that have no question at present.
	runners chan *runner
	// life ends when the hook is closed.
	life context.Context
	end  context.CancelCauseFunc
	// lastID is the id of the last question.
	lastID atomic.Uint64
}

// errClosed is the cause of a question's end when the hook is closed.
var errClosed = errors.New("the hook was closed while it was asked")

// Ask writes the question to a program and waits for its answer. If a program has ended since its
// last answer, Ask starts it again and repeats the question once.
func (c *client) Ask(ctx context.Context, q *hook.Question) (*hook.Answer, error) {
	if err := c.checkRelated(q); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	asked, end := context.WithCancelCause(limited)
	defer end(nil)
	stop := context.AfterFunc(c.life, func() { end(errClosed) })
	defer stop()

	answer, err := c.ask(asked, q)
	if err == nil {
		return answer, nil
	}
	var (
		failure *hook.Error
		bad     *invalidError
	)
	switch cause := context.Cause(asked); {
	case errors.Is(ctx.Err(), context.Canceled):
		return nil, ctx.Err()
	case errors.Is(cause, context.DeadlineExceeded):
		return nil, &hook.Error{Kind: hook.TimedOut, Hook: c.name, Err: fmt.Errorf("no answer within %s", c.timeout)}
	case errors.Is(cause, errClosed):
		return nil, &hook.Error{Kind: hook.Unreachable, Hook: c.name, Err: errClosed}
	case errors.As(err, &failure):
		return nil, failure
	case errors.As(err, &bad):
		return nil, &hook.Error{Kind: hook.Invalid, Hook: c.name, Err: bad.error}
	default:
		return nil, &hook.Error{Kind: hook.Unreachable, Hook: c.name, Err: err}
	}
}

// ask waits for a free runner and uses it.
func (c *client) ask(ctx context.Context, q *hook.Question) (*hook.Answer, error) {
	var r *runner
	select {
	case r = <-c.runners:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { c.runners <- r }()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var releases []func()
	reserve := func(bytes int64) error {
		release, err := c.opened.Reserve(ctx, bytes)
		if err == nil {
			releases = append(releases, release)
		}
		return err
	}
	answer, err := c.askRunner(ctx, r, q, reserve)
	if err != nil {
		for _, release := range releases {
			release()
		}
	}
	return answer, err
}

// askRunner asks a runner. It counts the memory of the answer by reserve before it uses it.
func (c *client) askRunner(
	ctx context.Context,
	r *runner,
	q *hook.Question,
	reserve func(bytes int64) error,
) (*hook.Answer, error) {
	id := c.lastID.Add(1)
	line, err := encode(ctx, id, c.opened.Engine, q)
	if err != nil {
		return nil, err
	}
	text, err := r.ask(ctx, line, reserve)
	if err != nil {
		return nil, err
	}
	if err := reserve(object.Memory(text, maxDecodedBytes)); err != nil {
		return nil, err
	}
	answer, err := c.decode(q, id, text)
	var failure *hook.Error
	if err != nil && !errors.As(err, &failure) {
		r.stop() // what it prints next may belong to this question
		return nil, &invalidError{err}
	}
	return answer, err
}

// checkRelated refuses to ask while related objects cannot be read: in JSON, they would look as if
// they did not exist.
func (c *client) checkRelated(q *hook.Question) error {
	for _, g := range q.Related {
		switch {
		case g.NotFound:
			err := fmt.Errorf("related %s: not asked, because the API server does not serve it", g.Resource)
			return &hook.Error{Kind: hook.Failed, Hook: c.name, Reason: "RelatedNotFound", Err: err}
		case g.Err != nil:
			err := fmt.Errorf("related %s: not asked, because its objects cannot be read: %w", g.Resource, g.Err)
			return &hook.Error{Kind: hook.Failed, Hook: c.name, Err: err}
		}
	}
	return nil
}

// close kills all programs, and returns when none is left.
func (c *client) close() error {
	c.end(errClosed)
	for range cap(c.runners) {
		r := <-c.runners // waits for the question that uses it
		r.stop()
	}
	return nil
}
