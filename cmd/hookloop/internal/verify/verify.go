// Package verify asks a hook a fixed set of questions and reports what is wrong with its answers:
// JSON in another encoding, children that the engine rejects, integers and texts that have changed
// on the way, errors without a code, and deadlines and cancellations that the hook ignores. Call
// [Verify] with the hook's address or command; [Replay] asks recorded questions again.
//
// It needs no cluster. You may pass the controller, its CRDs and a parent; otherwise built-in ones
// are used. It cannot tell whether the children are the right ones.
//
// The package asks with clients of its own, which show what the engine's clients would hide. Then
// the engine's planner and transports judge the same answers as in production. The functions are
// safe for concurrent use.
package verify

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
)

// DefaultTimeout limits a call if neither the options nor the controller set a timeout.
const DefaultTimeout = 10 * time.Second

// Options says which hook to ask, and how.
type Options struct {
	// Addresses lists the hook's addresses as [OPERATION=]ADDRESS, each a gRPC target or the URL of a
	// webhook.
	Addresses []string
	// Command starts the hook on loopback, instead of Addresses. The hook is stopped when Verify
	// returns.
	Command []string
	// Kind is the kind of controller. If it is empty, the kind of the controller in Files is used, or
	// composite.
	Kind string
	// Files hold the controller and the CustomResourceDefinitions of its resources, as YAML.
	Files []string
	// Parent is a file with the parent, as YAML; empty means a built-in one.
	Parent string
	// Input is a file with an input of a map hook, as YAML; empty means a built-in one.
	Input string
	// Recordings lists recorded questions, or folders of them, to ask as well. Without Files, the
	// controller and the parent come from the first one.
	Recordings []string
	// Version is the version of a webhook's JSON. If it is empty, the controller's is used, or v1.
	Version string
	// Timeout limits a call. If it is 0, the controller's is used, or [DefaultTimeout].
	Timeout time.Duration
	Security

	// answerTime lets tests replace the measured time of a slow hook; 0 means to measure it.
	answerTime time.Duration
}

// UsageError says what is wrong with an option or a file.
type UsageError struct{ Problem string }

func (e *UsageError) Error() string { return e.Problem }

func usagef(format string, args ...any) error {
	return &UsageError{fmt.Sprintf(format, args...)}
}

// Verify asks the hook all questions and returns the findings. A hook that cannot be reached is a
// finding. Verify returns an error for a wrong option (a *[UsageError]), if ctx ends, or if Command
// does not start a hook.
func Verify(ctx context.Context, o Options) (*Report, error) {
	if o.Timeout < 0 {
		return nil, usagef("--timeout: got %s, expected a positive duration", o.Timeout)
	}
	if !slices.Contains([]string{"", "v1", "v2"}, o.Version) {
		return nil, usagef("--hook-version: got %q, expected v1 or v2", o.Version)
	}
	s, err := load(o)
	if err != nil {
		return nil, err
	}
	if len(o.Command) > 0 {
		process, err := o.start(ctx)
		if err != nil {
			return nil, err
		}
		defer process.Stop()
	}
	targets, err := resolve(s, o)
	if err != nil {
		return nil, err
	}
	e := &examiner{subject: s, targets: targets, report: newReport(s, targets), answerTime: o.answerTime}
	e.examine(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return e.report, nil
}

// examiner asks one hook.
type examiner struct {
	subject *subject
	targets map[hook.Op]*target
	report  *Report
	// answered is true once the hook has ended a call with an answer or a status.
	answered bool
	// answerTime is that of the options.
	answerTime time.Duration
	// engine holds the engine's own hooks, by operation and mode.
	engine map[string]*hook.Opened
}

// examine asks over each transport that the hook serves, starting with gRPC's unary calls.
func (e *examiner) examine(ctx context.Context) {
	sync := e.targets[e.subject.first()]
	e.checkHealth(ctx)
	direct := &round{examiner: e, ctx: ctx, ask: e.direct, over: sync.over(), thorough: true}
	defer e.close()
	answers := direct.run()
	if e.report.Unreachable() {
		return
	}
	if answers {
		e.engineAgrees(direct)
	}
	e.overStream(direct)
}

// close frees the connections of all targets.
func (e *examiner) close() {
	for _, t := range e.targets {
		t.close()
	}
	for _, opened := range e.engine {
		if opened.Close != nil {
			opened.Close() //nolint:errcheck // nothing depends on an orderly end
		}
	}
}

// direct asks over this package's own client.
func (e *examiner) direct(ctx context.Context, q *hook.Question) *reply {
	return e.targets[q.Op].client.ask(ctx, q)
}
