package transporttest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/hook"
	"go.opentelemetry.io/otel/trace"
)

// deadline bounds each wait of a case.
const deadline = 30 * time.Second

func (h *Harness) questionArrives(t *testing.T) {
	for _, kind := range hook.Descriptors() {
		for _, op := range kind.Operations {
			t.Run(string(kind.ControllerKind)+" "+string(op), func(t *testing.T) {
				received := make(chan Received, 1)
				field := h.Serve(t, "", func(_ context.Context, got Received) Reply {
					received <- got
					return Reply{Answer: &hook.Answer{}}
				})
				q := question(t, kind.ControllerKind, op, "hi")
				if _, err := h.open(t, op, field).Ask(t.Context(), q); err != nil {
					t.Fatal(err)
				}
				want := Record(t.Context(), q)
				got := <-received
				if got.Kind == "" {
					want.Kind = ""
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("the question as the hook got it (-asked +got):\n%s", diff)
				}
			})
		}
	}
}

func (h *Harness) traceArrives(t *testing.T) {
	sc := trace.NewSpanContext(
		trace.SpanContextConfig{TraceID: trace.TraceID{1, 2, 3}, SpanID: trace.SpanID{4}, TraceFlags: trace.FlagsSampled})
	received := make(chan Received, 1)
	field := h.Serve(t, "", func(_ context.Context, got Received) Reply {
		received <- got
		return Reply{Answer: &hook.Answer{}}
	})
	ctx := trace.ContextWithSpanContext(t.Context(), sc)
	if _, err := h.open(t, hook.Sync, field).Ask(ctx, question(t, hook.Composite, hook.Sync, "hi")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sc.TraceID().String(), (<-received).TraceID); diff != "" {
		t.Errorf("trace id (-sent +got):\n%s", diff)
	}
}

// answerCase is an answer to a question of one kind and operation.
type answerCase struct {
	kind   hook.ControllerKind
	op     hook.Op
	answer *hook.Answer
}

// answerCases returns an answer for each operation of each kind.
func answerCases() map[string]answerCase {
	blue := "blue"
	children := []json.RawMessage{
		json.RawMessage(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"n":` + bigInteger + `}}`),
		json.RawMessage(`null`),
	}
	status := json.RawMessage(`{"n":` + bigInteger + `}`)
	return map[string]answerCase{
		"composite sync": {
			hook.Composite,
			hook.Sync,
			&hook.Answer{Status: status, Children: children, ResyncAfter: 1500 * time.Millisecond},
		},
		"composite finalize": {hook.Composite, hook.Finalize, &hook.Answer{Children: []json.RawMessage{}, Finalized: true}},
		"decorator sync": {hook.Decorator, hook.Sync, &hook.Answer{
			Status:      status,
			Children:    children,
			Labels:      map[string]*string{"color": &blue, "old": nil},
			Annotations: map[string]*string{"gone": nil},
		}},
		"decorator finalize": {
			hook.Decorator,
			hook.Finalize,
			&hook.Answer{Children: []json.RawMessage{}, Finalized: true, Labels: map[string]*string{"old": nil}},
		},
		"composite customize": {hook.Composite, hook.Customize, &hook.Answer{Related: []hook.RelatedRule{
			{APIVersion: "v1", Resource: "configmaps", Namespace: "shop", Names: []string{"shared"}},
			{
				APIVersion: "v1",
				Resource:   "secrets",
				LabelSelector: json.RawMessage(
					`{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"c","operator":"NotIn","values":["d"]}]}`,
				),
			},
		}}},
		"map map": {hook.Mapping, hook.Map, &hook.Answer{Children: children, ResyncAfter: 1500 * time.Millisecond}},
		"map tombstone": {hook.Mapping, hook.Tombstone, &hook.Answer{
			Children:    []json.RawMessage{json.RawMessage(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}`)},
			ResyncAfter: time.Hour,
		}},
		"map finalize": {hook.Mapping, hook.Finalize, &hook.Answer{Children: []json.RawMessage{}, Finalized: true}},
		"map customize": {hook.Mapping, hook.Customize, &hook.Answer{Related: []hook.RelatedRule{
			{APIVersion: "v1", Resource: "configmaps", Namespace: "shop", Names: []string{"shared"}},
		}}},
		"decorator customize": {hook.Decorator, hook.Customize, &hook.Answer{Related: []hook.RelatedRule{
			{APIVersion: "v1", Resource: "configmaps", NamespaceSelector: json.RawMessage(`{"matchLabels":{"a":"b"}}`)},
		}}},
	}
}

func (h *Harness) answersArrive(t *testing.T) {
	for name, c := range answerCases() {
		t.Run(name, func(t *testing.T) {
			field := h.Serve(t, "", func(context.Context, Received) Reply { return Reply{Answer: c.answer} })
			got, err := h.open(t, c.op, field).Ask(t.Context(), question(t, c.kind, c.op, "hi"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.answer, got, sameJSON()); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

// sameJSON compares JSON without white space, and numbers by their digits.
func sameJSON() cmp.Option {
	return cmp.Transformer("json", func(raw json.RawMessage) any {
		if raw == nil {
			return nil
		}
		decoder := json.NewDecoder(strings.NewReader(string(raw)))
		decoder.UseNumber()
		var v any
		if err := decoder.Decode(&v); err != nil {
			return err
		}
		return v
	})
}

func (h *Harness) faults(t *testing.T) {
	cases := []struct {
		fault Fault
		want  hook.Error
		text  string
	}{
		{Fail, hook.Error{Kind: hook.Failed}, FailText},
		{Throttle, hook.Error{Kind: hook.Throttled, RetryAfter: RetryAfter}, ""},
		{Reject, hook.Error{Kind: hook.Rejected, Reason: RejectReason}, ""},
		{Garbage, hook.Error{Kind: hook.Invalid}, ""},
		{Huge, hook.Error{Kind: hook.Invalid}, "larger than"},
	}
	for _, c := range cases {
		t.Run(string(c.fault), func(t *testing.T) {
			if slices.Contains(h.Lacks, c.fault) {
				t.Skipf("a hook cannot %s over this transport", c.fault)
			}
			field := h.Serve(t, "", func(context.Context, Received) Reply { return Reply{Fault: c.fault} })
			answer, err := h.open(t, hook.Sync, field).Ask(t.Context(), question(t, hook.Composite, hook.Sync, "hi"))
			got := portError(t, answer, err)
			if got.Kind != c.want.Kind || got.RetryAfter != c.want.RetryAfter || got.Reason != c.want.Reason {
				t.Errorf("got kind %s, retry after %s, reason %q; want %s, %s, %q (%v)",
					got.Kind, got.RetryAfter, got.Reason, c.want.Kind, c.want.RetryAfter, c.want.Reason, err)
			}
			if !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %q, want it to contain %q", err, c.text)
			}
		})
	}
}

// portError checks the properties of every failure: no answer, and one line of bounded length with
// the hook's name.
func portError(t *testing.T, answer *hook.Answer, err error) *hook.Error {
	t.Helper()
	if answer != nil {
		t.Errorf("got an answer beside the error: %+v", answer)
	}
	var failure *hook.Error
	if !errors.As(err, &failure) {
		t.Fatalf("got %T %v, want a *hook.Error", err, err)
	}
	message := err.Error()
	if !strings.HasPrefix(message, "hook sync ") || strings.ContainsAny(message, "\n\r") || len(message) > 1000 {
		t.Errorf("got message %.1100q, want one line of at most 1000 bytes that begins with %q", message, "hook sync ")
	}
	return failure
}

func (h *Harness) unreachable(t *testing.T) {
	if h.Nowhere == nil {
		t.Skip("this transport cannot name a hook that does not run")
	}
	answer, err := h.open(t, hook.Sync, h.Nowhere(t)).Ask(t.Context(), question(t, hook.Composite, hook.Sync, "hi"))
	if got := portError(t, answer, err); got.Kind != hook.Unreachable {
		t.Errorf("got kind %s, want %s (%v)", got.Kind, hook.Unreachable, err)
	}
}

func (h *Harness) timesOut(t *testing.T) {
	field := h.Serve(t, "50ms", func(context.Context, Received) Reply { return Reply{Fault: Hang} })
	answer, err := h.open(t, hook.Sync, field).Ask(t.Context(), question(t, hook.Composite, hook.Sync, "hi"))
	if got := portError(t, answer, err); got.Kind != hook.TimedOut {
		t.Errorf("got kind %s, want %s (%v)", got.Kind, hook.TimedOut, err)
	}
}

func (h *Harness) cancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	released := make(chan struct{})
	field := h.Serve(t, "", func(served context.Context, _ Received) Reply {
		cancel()
		<-served.Done()
		close(released)
		return Reply{Fault: Hang}
	})
	answer, err := h.open(t, hook.Sync, field).Ask(ctx, question(t, hook.Composite, hook.Sync, "hi"))
	if answer != nil || !errors.Is(err, context.Canceled) || hook.ErrorKindOf(err) != "" {
		t.Errorf("got %v and %v, want no answer and the context's own error", answer, err)
	}
	select {
	case <-released:
	case <-time.After(deadline):
		t.Error("the hook did not learn that its caller gave up")
	}
}

func (h *Harness) concurrent(t *testing.T) {
	field := h.Serve(t, "", func(_ context.Context, got Received) Reply {
		return Reply{Answer: &hook.Answer{Status: got.Parent}}
	})
	opened := h.open(t, hook.Sync, field)
	var calls sync.WaitGroup
	for i := range 50 {
		q := question(t, hook.Composite, hook.Sync, fmt.Sprintf("parent-%d", i))
		calls.Go(func() {
			answer, err := opened.Ask(t.Context(), q)
			switch {
			case err != nil:
				t.Errorf("%s: %v", q.Parent.Name(), err)
			case string(answer.Status) != string(q.Parent.Raw()):
				t.Errorf("%s: got an answer to somebody else: %s", q.Parent.Name(), answer.Status)
			}
		})
	}
	calls.Wait()
}
