// Package verify asks a hook a fixed set of questions and reports the faults of its answers:
// JSON in another encoding, children that the engine rejects, integers and texts that changed on
// the way, errors without a code, deadlines and cancellations that the hook ignores.
//
// It needs no cluster and writes nothing: the caller names the hook's address, and optionally the
// controller, its CRDs and a parent. It does not judge whether the children are the right ones. A
// client of its own shows what the engine's client would hide; package plan and the engine's
// transports then judge the same answers as in production. The tests run hooks with planted faults,
// each of which must be found by its id. The functions are safe for concurrent use.
package verify

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
)

// DefaultTimeout is the timeout of a call if neither the options nor the controller sets one.
const DefaultTimeout = 10 * time.Second

// Options are the hook and the way in which it is asked.
type Options struct {
	// Addresses are the hook's addresses as [OPERATION=]ADDRESS: a gRPC target, or the URL of a
	// webhook.
	Addresses []string
	// Command starts the hook on loopback, in place of Addresses; the hook ends with Verify.
	Command []string
	// Kind is the kind of controller; empty means that of the controller in Files, else composite.
	Kind string
	// Files hold the controller and the CustomResourceDefinitions of its resources, as YAML.
	Files []string
	// Parent is a file with the parent, as YAML; empty means a built-in one.
	Parent string
	// Input is a file with an input of a map hook, as YAML; empty means a built-in one.
	Input string
	// Recordings are recordings of questions, or folders of them, which are asked, too. Without Files,
	// the controller and the parent are those of the first one.
	Recordings []string
	// Version is the version of a webhook's JSON; empty means the controller's, else v1.
	Version string
	// Timeout is the timeout of a call; 0 means the controller's, else DefaultTimeout.
	Timeout time.Duration
	Security

	// answerTime replaces the measured answer time of a slow hook in tests; 0 means none.
	answerTime time.Duration
}

// UsageError reports a wrong option or file.
type UsageError struct{ Problem string }

func (e *UsageError) Error() string { return e.Problem }

func usagef(format string, args ...any) error {
	return &UsageError{fmt.Sprintf(format, args...)}
}

// Verify asks the hook all questions and returns the findings. The error is a *UsageError, the
// context's, or that of a command that starts no hook; a hook that cannot be reached is a finding.
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
	// answered reports that the hook has ended a call with an answer or a status.
	answered bool
	// answerTime is that of the options.
	answerTime time.Duration
	// engine are the engine's own hooks, by operation and mode.
	engine map[string]*hook.Opened
}

// examine asks over each transport that the hook serves, gRPC's unary calls first.
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
