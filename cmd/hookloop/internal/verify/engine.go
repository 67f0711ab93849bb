package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"google.golang.org/grpc/codes"
)

// The modes of the engine's gRPC client.
const (
	unaryMode  = "Unary"
	streamMode = "Stream"
)

// engineAgrees asks once with the engine's own client, which may refuse what our client accepts.
func (e *examiner) engineAgrees(direct *round) {
	if direct.first == nil || e.report.Faults() > 0 {
		return
	}
	r := &round{examiner: e, ctx: direct.ctx, over: direct.over, related: direct.related}
	name := "the parent, asked by the engine's client"
	q := r.question(e.subject.first(), e.subject.parent, nil)
	got := e.byEngine(unaryMode)(direct.ctx, q)
	if got.failure != nil {
		r.found(ruleRejected, name, q, got.failure.String())
	}
	r.judge(name, q, got)
}

// overStream asks all questions over the engine's stream, if the hook serves it.
func (e *examiner) overStream(direct *round) {
	t := e.targets[e.subject.first()]
	if t.grpc == nil {
		return
	}
	r := &round{examiner: e, ctx: direct.ctx, over: overStream, ask: e.byEngine(streamMode), thorough: direct.first == nil}
	q := r.question(e.subject.first(), e.subject.parent, nil)
	got := r.ask(r.ctx, q)
	switch missing := got.failure != nil && got.failure.missing; {
	case missing && direct.first != nil:
		r.found(ruleNoStream, "hookloop.stream.v1.HookStreamService/Connect", q, got.failure.String())
		return
	case missing, got.unreachable != "":
		return
	case direct.missing:
		e.report.drop(ruleNotServed, overGRPC)
		direct.found(ruleNoUnary, "the parent, without children", q, codes.Unimplemented.String())
	}
	if !r.run() || direct.first == nil || r.first == nil {
		return
	}
	again := direct.ask(direct.ctx, q)
	if again.answer == nil || !equal(again.answer, direct.first) {
		return // the answers differ anyway
	}
	if !equal(direct.first, r.first) {
		r.found(ruleStream, "the parent, without children", q, "another status or other children")
	}
}

// equal returns true if two answers have the same status and children.
func equal(a, b *hook.Answer) bool {
	if len(a.Children) != len(b.Children) || !sameJSON(a.Status, b.Status) {
		return false
	}
	for i := range a.Children {
		if !sameJSON(a.Children[i], b.Children[i]) {
			return false
		}
	}
	return true
}

func sameJSON(a, b json.RawMessage) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	var left, right any
	return json.Unmarshal(a, &left) == nil && json.Unmarshal(b, &right) == nil && reflect.DeepEqual(left, right)
}

// streamTries is how often to ask until a stream is open.
const streamTries = 3

// byEngine returns a function that asks with the engine's own client. For a stream it asks up to
// streamTries times until one is open, because before that we learn nothing about the hook's
// answer.
func (e *examiner) byEngine(mode string) func(context.Context, *hook.Question) *reply {
	return func(ctx context.Context, q *hook.Question) *reply {
		begun := time.Now()
		opened, err := e.opened(q.Op, mode)
		if err != nil {
			return &reply{unreachable: err.Error()}
		}
		answer, err := opened.Ask(ctx, q)
		for n := 1; n < streamTries && mode == streamMode && unreached(err); n++ {
			begun = time.Now()
			answer, err = opened.Ask(ctx, q)
		}
		r := &reply{answer: answer, took: time.Since(begun)}
		if err != nil {
			r.engineError(err)
		}
		return r
	}
}

// unreached returns true if a question did not reach the hook.
func unreached(err error) bool {
	var failure *hook.Error
	return errors.As(err, &failure) && failure.Kind == hook.Unreachable
}

// opened returns the engine's hook of an operation. It stays open until the examiner closes.
func (e *examiner) opened(op hook.Op, mode string) (*hook.Opened, error) {
	key := string(op) + mode
	if known := e.engine[key]; known != nil {
		return known, nil
	}
	opened, err := e.targets[op].open(e.subject, mode)
	if err != nil {
		return nil, err
	}
	if e.engine == nil {
		e.engine = map[string]*hook.Opened{}
	}
	e.engine[key] = opened
	return opened, nil
}

// engineError records how the engine sees a failed call.
func (r *reply) engineError(err error) {
	var coded interface{ Code() string }
	var failure *hook.Error
	if !errors.As(err, &failure) {
		r.unreachable = err.Error()
		return
	}
	f := &failureOf{failure}
	switch {
	case failure.Kind == hook.Invalid:
		r.fault(ruleRejected, "%v", failure.Err)
	case failure.Kind == hook.TimedOut:
		r.timedOut = true
	case errors.As(err, &coded):
		r.failure = f.coded(coded.Code())
	case failure.Kind == hook.Unreachable:
		r.unreachable = failure.Err.Error()
	default:
		r.failure = f.coded(string(failure.Kind))
	}
}

// failureOf turns an error of the port into a failure.
type failureOf struct{ *hook.Error }

func (f *failureOf) coded(code string) *failure {
	out := &failure{code: code, message: f.Err.Error(), missing: code == codes.Unimplemented.String()}
	if code == codes.Unknown.String() {
		out.vague = fmt.Sprintf("%s is the status of an exception that nothing has turned into one", code)
	}
	return out
}
