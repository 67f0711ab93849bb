package fallback_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/hook/wraptest"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/transports/codec"
	"github.com/hookloop/hookloop/transports/fallback"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// part is one of the two hooks, as a function that can be replaced.
type part struct {
	mu       sync.Mutex // guards the fields below
	behave   hook.Func
	down     error // the result of probes
	settings hook.Config

	running *running
}

// running counts the running questions of both hooks, by parent.
type running struct {
	mu     sync.Mutex
	asking map[string]int
	most   int
}

func (r *running) enter(parent string) (leave func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asking[parent]++
	r.most = max(r.most, r.asking[parent])
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.asking[parent]--
	}
}

func (p *part) set(behave hook.Func, down error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.behave = behave
	p.down = down
}

func (p *part) open(address string, timeout time.Duration) hook.Opener {
	return func(s hook.Config) (*hook.Opened, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.settings = s
		return &hook.Opened{
			Address: address, Timeout: timeout,
			Hook: hook.Func(func(ctx context.Context, q *hook.Question) (*hook.Answer, error) {
				defer p.running.enter(q.Parent.Name())()
				p.mu.Lock()
				behave := p.behave
				p.mu.Unlock()
				ctx, cancel := context.WithTimeout(ctx, timeout)
				defer cancel()
				return behave(ctx, q)
			}),
			Probe: func(context.Context) error {
				p.mu.Lock()
				defer p.mu.Unlock()
				return p.down
			},
		}, nil
	}
}

// situation is a composed hook with its two parts. It must be made inside of a synctest bubble.
type situation struct {
	*testing.T
	grpc, webhook *part
	running       *running
	composed      *fallback.Transport
	metrics       *prometheus.Registry

	mu       sync.Mutex // guards the fields below
	triggers []hook.Trigger
	reports  []string
}

func newSituation(t *testing.T) *situation {
	r := &running{asking: map[string]int{}}
	s := &situation{
		T: t, running: r, metrics: prometheus.NewRegistry(),
		grpc: &part{running: r, behave: answers}, webhook: &part{running: r, behave: answers},
	}
	s.composed = &fallback.Transport{
		Preferred: fallback.Side{Name: "grpc", Open: s.grpc.open("a:1", 10*time.Second)},
		Fallback:  fallback.Side{Name: "webhook", Open: s.webhook.open("http://b", 10*time.Second)},
		Metrics:   fallback.NewMetrics(s.metrics),
	}
	return s
}

// open opens the composed hook of an operation.
func (s *situation) open(op hook.Op) *hook.Opened {
	s.Helper()
	opened, err := s.composed.Open(hook.Config{
		ControllerKind: "CompositeController", ControllerName: "web", Kind: hook.Composite, Op: op,
		Field: json.RawMessage(`{"grpc":{},"webhook":{}}`), Observer: observer{s, op},
		Trigger: func(t hook.Trigger) (int, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.triggers = append(s.triggers, t)
			return 1, nil
		},
	})
	if err != nil {
		s.Fatal(err)
	}
	opened.Close = sync.OnceValue(opened.Close) // a test may close it earlier
	s.Cleanup(func() {
		if err := opened.Close(); err != nil {
			s.Error(err)
		}
	})
	return opened
}

type observer struct {
	*situation
	op hook.Op
}

func (o observer) report(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reports = append(o.reports, text)
}

func (o observer) Serves(ops []hook.Op) { o.report(fmt.Sprintf("%s: serves %s", o.op, ops)) }
func (o observer) Intercepted([]string) {}
func (o observer) Answering(a hook.Answering) {
	o.report(strings.TrimSuffix(fmt.Sprintf("%s: %s, %s", o.op, a.Transport, a.Cause), ", "))
}

// took returns and clears the triggers and the reports, after all goroutines are idle.
func (s *situation) took() (triggers, reports []string) {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.triggers {
		if !t.LowPriority {
			s.Errorf("trigger %+v does not have low priority", t)
		}
		triggers = append(triggers, fmt.Sprint(t.Reason, t.Parents))
	}
	reports = s.reports
	s.triggers = nil
	s.reports = nil
	return triggers, reports
}

// expect compares what took returns.
func (s *situation) expect(triggers, reports []string) {
	s.Helper()
	gotTriggers, gotReports := s.took()
	if diff := cmp.Diff(triggers, gotTriggers); diff != "" {
		s.Errorf("triggers (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(reports, gotReports); diff != "" {
		s.Errorf("reports (-want +got):\n%s", diff)
	}
}

func question(op hook.Op, parent string) *hook.Question {
	o, err := object.Decode(fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Web","metadata":{"name":%q}}`, parent))
	if err != nil {
		panic(err)
	}
	return &hook.Question{Kind: hook.Composite, Op: op, Parent: o}
}

// by asks about parent web and returns who answered, or the error.
func by(t *testing.T, h *hook.Opened, op hook.Op) string {
	t.Helper()
	answer, err := h.Ask(t.Context(), question(op, "web"))
	switch {
	case err != nil && answer != nil:
		t.Errorf("got %v and %v", answer, err)
		return ""
	case err != nil:
		return err.Error()
	default:
		return answer.AnsweredBy
	}
}

func answers(context.Context, *hook.Question) (*hook.Answer, error) { return &hook.Answer{}, nil }

func hangs(ctx context.Context, _ *hook.Question) (*hook.Answer, error) {
	<-ctx.Done()
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil, ctx.Err()
	}
	return nil, &hook.Error{Kind: hook.TimedOut, Hook: "sync a:1", Err: errors.New("no answer in time")}
}

func fails(kind hook.ErrorKind, text string) hook.Func {
	return func(context.Context, *hook.Question) (*hook.Answer, error) {
		return nil, &hook.Error{Kind: kind, Hook: "sync a:1", Err: errors.New(text)}
	}
}

// maxHold is the longest time of a good gRPC hook before it is tried, or asked again about an
// operation that it did not serve.
const maxHold = 10 * time.Minute

var errRefused = errors.New("connection refused")

// refuses does not respond, as an address without a listener.
func refuses() hook.Func { return fails(hook.Unreachable, errRefused.Error()) }

func unserved(_ context.Context, q *hook.Question) (*hook.Answer, error) {
	return nil, codec.Failure(string(q.Op)+" a:1", q, time.Second, status.New(codes.Unimplemented, "unknown method"))
}

// TestOnlyAMissingResponseFallsBack asks hooks that fail in each way.
func TestOnlyAMissingResponseFallsBack(t *testing.T) {
	for name, c := range map[string]struct {
		grpc hook.Func
		want string
	}{
		"answers":                {answers, "grpc"},
		"is unreachable":         {refuses(), "webhook"},
		"hangs":                  {hangs, "webhook"},
		"does not serve it":      {unserved, "webhook"},
		"rejects the parent":     {fails(hook.Rejected, "no such plan"), "hook sync a:1: no such plan"},
		"fails":                  {fails(hook.Failed, "status 500"), "hook sync a:1: status 500"},
		"answers something else": {fails(hook.Invalid, "not JSON"), "hook sync a:1: not JSON"},
		"asks for a later call":  {fails(hook.Throttled, "later"), "hook sync a:1: later"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSituation(t)
				s.grpc.set(c.grpc, nil)
				h := s.open(hook.Sync)
				if got := by(t, h, hook.Sync); got != c.want {
					t.Errorf("got %q, want %q", got, c.want)
				}
				if s.running.most != 1 {
					t.Errorf("%d hooks were asked at once, want one after the other", s.running.most)
				}
			})
		})
	}
}

// TestTimeoutIsShared measures the time until the fallback is asked, and until both have failed.
func TestTimeoutIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSituation(t)
		h := s.open(hook.Sync)
		began := time.Now()
		var askedAfter time.Duration
		s.grpc.set(hangs, nil)
		s.webhook.set(func(ctx context.Context, q *hook.Question) (*hook.Answer, error) {
			askedAfter = time.Since(began)
			return hangs(ctx, q)
		}, nil)
		got := by(t, h, hook.Sync)
		if took := time.Since(began); askedAfter != 5*time.Second || took != 10*time.Second || h.Timeout != took {
			t.Errorf("the webhook was asked after %s, the error came after %s, the timeout is %s; want 5s, 10s and 10s",
				askedAfter, took, h.Timeout)
		}
		want := "hook sync a:1 or http://b: neither transport answers: grpc: no answer within 5s, its share of the " +
			"timeout of 10s; webhook: no answer in time"
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

// TestWaitingQuestionsGoOver loses one question while another one waits for the gRPC hook: the
// webhook answers both immediately.
func TestWaitingQuestionsGoOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSituation(t)
		s.grpc.set(func(ctx context.Context, q *hook.Question) (*hook.Answer, error) {
			if q.Parent.Name() == "waiting" {
				return hangs(ctx, q)
			}
			time.Sleep(2 * time.Second)
			return refuses()(ctx, q)
		}, nil)
		h := s.open(hook.Sync)
		began := time.Now()
		var waiting sync.WaitGroup
		waiting.Go(func() {
			answer, err := h.Ask(t.Context(), question(hook.Sync, "waiting"))
			if took := time.Since(began); err != nil || answer.AnsweredBy != "webhook" || took != 2*time.Second {
				t.Errorf("got %+v and %v after %s, want the webhook's answer after 2s", answer, err, took)
			}
		})
		if got := by(t, h, hook.Sync); got != "webhook" {
			t.Errorf("got %q, want webhook", got)
		}
		waiting.Wait()
	})
}

// TestSlowQuestionHasTheWholeTimeout asks a slow question while the gRPC hook answers others.
func TestSlowQuestionHasTheWholeTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSituation(t)
		s.grpc.set(func(ctx context.Context, q *hook.Question) (*hook.Answer, error) {
			if q.Parent.Name() == "slow" {
				time.Sleep(8 * time.Second)
			}
			return answers(ctx, q)
		}, nil)
		h := s.open(hook.Sync)
		var slow sync.WaitGroup
		slow.Go(func() {
			if answer, err := h.Ask(t.Context(), question(hook.Sync, "slow")); err != nil || answer.AnsweredBy != "grpc" {
				t.Errorf("got %+v and %v, want an answer by grpc", answer, err)
			}
		})
		time.Sleep(time.Second)
		if got := by(t, h, hook.Sync); got != "grpc" {
			t.Errorf("got %q, want grpc", got)
		}
		slow.Wait()
	})
}

// TestOneLostConnectionIsRetried loses one connection, which must not change the side.
func TestOneLostConnectionIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSituation(t)
		h := s.open(hook.Sync)
		lost := false
		s.grpc.set(func(ctx context.Context, q *hook.Question) (*hook.Answer, error) {
			if !lost {
				lost = true
				return refuses()(ctx, q)
			}
			return answers(ctx, q)
		}, nil)
		if got := by(t, h, hook.Sync); got != "grpc" {
			t.Errorf("got %q, want grpc", got)
		}
		s.expect(nil, []string{"sync: grpc"})
	})
}

// TestSideChangesWithHysteresis stops the gRPC hook and starts it again: the webhook answers until
// the gRPC hook has been good for a time, and one question has tried it. Parents are synced after
// each change.
func TestSideChangesWithHysteresis(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSituation(t)
		h := s.open(hook.Sync)
		final := s.open(hook.Finalize)
		by(t, h, hook.Sync)
		s.expect(nil, []string{"sync: grpc", "finalize: grpc"})

		s.grpc.set(refuses(), errRefused)
		if got := by(t, h, hook.Sync); got != "webhook" {
			t.Errorf("got %q while gRPC is down, want webhook", got)
		}
		triggers, reports := s.took()
		slices.Sort(reports)
		if diff := cmp.Diff([]string{"webhook answers in place of grpc[]"}, triggers); diff != "" {
			t.Errorf("triggers (-want +got):\n%s", diff)
		}
		want := []string{"finalize: webhook, connection refused", "sync: webhook, connection refused"}
		if diff := cmp.Diff(want, reports); diff != "" {
			t.Errorf("reports (-want +got):\n%s", diff)
		}
		began := time.Now()
		if got := by(t, final, hook.Finalize); got != "webhook" || time.Since(began) > 0 {
			t.Errorf("finalize was answered by %q after %s, want by the webhook at once", got, time.Since(began))
		}

		time.Sleep(time.Minute)
		s.grpc.set(answers, nil)
		time.Sleep(5 * time.Second)
		if got := by(t, h, hook.Sync); got != "webhook" {
			t.Errorf("got %q 5 s after gRPC is back, want webhook still", got)
		}
		s.expect(nil, nil)
		time.Sleep(7 * time.Second)
		s.expect([]string{"grpc is tried again[{ web}]"}, nil)
		if got := by(t, h, hook.Sync); got != "grpc" {
			t.Errorf("got %q, want grpc again", got)
		}
		triggers, _ = s.took()
		if diff := cmp.Diff([]string{"grpc answers again[]"}, triggers); diff != "" {
			t.Errorf("triggers (-want +got):\n%s", diff)
		}
	})
}

// TestHungHookIsTriedRarely keeps a hook reachable that answers nothing: a trial costs one question
// a share of its timeout, and the time between trials grows.
func TestHungHookIsTriedRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSituation(t)
		tried := 0
		s.grpc.set(func(ctx context.Context, q *hook.Question) (*hook.Answer, error) {
			tried++
			return hangs(ctx, q)
		}, nil)
		h := s.open(hook.Sync)
		for began := time.Now(); time.Since(began) < 10*time.Minute; time.Sleep(time.Second) {
			if got := by(t, h, hook.Sync); got != "webhook" {
				t.Fatalf("got %q, want webhook", got)
			}
		}
		if tried < 3 || tried > 8 {
			t.Errorf("the hook was asked %d times in 10 minutes, want from 3 to 8", tried)
		}
	})
}

// TestOneQuestionTries asks two questions when a trial is due: one tries, and the other is answered
// by the webhook immediately.
func TestOneQuestionTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSituation(t)
		s.grpc.set(refuses(), nil)
		h := s.open(hook.Sync)
		by(t, h, hook.Sync)
		s.grpc.set(hangs, nil)
		time.Sleep(time.Minute)
		var tries sync.WaitGroup
		tries.Go(func() { by(t, h, hook.Sync) })
		synctest.Wait()
		began := time.Now()
		if got := by(t, h, hook.Sync); got != "webhook" || time.Since(began) > 0 {
			t.Errorf("got %q after %s, want webhook at once", got, time.Since(began))
		}
		tries.Wait()
	})
}

// TestNeitherAnswers stops both: one error names both reasons, also after the side has changed.
func TestNeitherAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSituation(t)
		s.grpc.set(refuses(), errRefused)
		s.webhook.set(fails(hook.Unreachable, "no such host"), errRefused)
		h := s.open(hook.Sync)
		want := "hook sync a:1 or http://b: neither transport answers: grpc: connection refused; webhook: no such host"
		for range 2 {
			_, err := h.Ask(t.Context(), question(hook.Sync, "web"))
			if err == nil || err.Error() != want || hook.ErrorKindOf(err) != hook.Unreachable {
				t.Errorf("got  %s %v\nwant %s %s", hook.ErrorKindOf(err), err, hook.Unreachable, want)
			}
		}
		s.webhook.set(fails(hook.Failed, "status 500"), nil)
		if got := by(t, h, hook.Sync); got != "hook sync a:1: status 500" {
			t.Errorf("got %q, want the webhook's own failure", got)
		}
	})
}

// TestFallbackThatFailsIsNotWaitedFor stops the webhook after the gRPC hook is back: the gRPC hook
// answers before its time.
func TestFallbackThatFailsIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSituation(t)
		s.grpc.set(refuses(), errRefused)
		h := s.open(hook.Sync)
		by(t, h, hook.Sync)
		s.grpc.set(answers, nil)
		s.webhook.set(refuses(), nil)
		time.Sleep(3 * time.Second)
		for range 2 {
			if got := by(t, h, hook.Sync); got != "grpc" {
				t.Errorf("got %q, want grpc", got)
			}
		}
	})
}

// TestFallbackThatHangsIsNotWaitedFor hangs the webhook after the gRPC hook is back: the question
// that waits for it has no time left, and the gRPC hook answers the next one.
func TestFallbackThatHangsIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSituation(t)
		s.grpc.set(refuses(), errRefused)
		h := s.open(hook.Sync)
		by(t, h, hook.Sync)
		s.grpc.set(func(ctx context.Context, q *hook.Question) (*hook.Answer, error) {
			if ctx.Err() != nil {
				return hangs(ctx, q)
			}
			return answers(ctx, q)
		}, nil)
		s.webhook.set(hangs, nil)
		time.Sleep(3 * time.Second)
		want := "hook sync a:1 or http://b: neither transport answers: grpc: connection refused; webhook: no answer in time"
		if got := by(t, h, hook.Sync); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if got := by(t, h, hook.Sync); got != "grpc" {
			t.Errorf("got %q, want grpc", got)
		}
	})
}

// TestHalfServedHook has a gRPC hook without a function for finalize: the webhook answers that
// operation alone, and the gRPC hook is asked again rarely.
func TestHalfServedHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSituation(t)
		asked := 0
		s.grpc.set(func(ctx context.Context, q *hook.Question) (*hook.Answer, error) {
			if q.Op == hook.Sync {
				return answers(ctx, q)
			}
			asked++
			return unserved(ctx, q)
		}, nil)
		h := s.open(hook.Sync)
		final := s.open(hook.Finalize)
		s.took()
		for range 10 {
			if got := by(t, h, hook.Sync) + " " + by(t, final, hook.Finalize); got != "grpc webhook" {
				t.Errorf("sync and finalize were answered by %q, want grpc and webhook", got)
			}
		}
		s.expect(nil, []string{"finalize: webhook, the hook does not serve " +
			`hookloop.composite.v1.CompositeHookService/Finalize: Unimplemented: "unknown method"`})
		if asked != 1 {
			t.Errorf("the gRPC hook was asked to finalize %d times, want once", asked)
		}
		s.grpc.settings.Observer.Serves([]hook.Op{hook.Sync})
		s.expect(nil, []string{"finalize: serves [sync finalize]"})

		s.grpc.set(answers, nil)
		time.Sleep(11 * time.Minute)
		if got := by(t, final, hook.Finalize); got != "grpc" {
			t.Errorf("finalize was answered by %q, want grpc, which serves it now", got)
		}
		s.expect([]string{"grpc serves finalize now[]"}, []string{"finalize: grpc"})
	})
}

// TestListedOperations reports an operation as missing and then as served, without a question.
func TestListedOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSituation(t)
		final := s.open(hook.Finalize)
		s.grpc.settings.Observer.Serves([]hook.Op{hook.Sync})
		if got := by(t, final, hook.Finalize); got != "webhook" {
			t.Errorf("got %q, want webhook", got)
		}
		s.grpc.settings.Observer.Serves([]hook.Op{hook.Sync, hook.Finalize})
		if got := by(t, final, hook.Finalize); got != "grpc" {
			t.Errorf("got %q, want grpc", got)
		}
	})
}

// TestMetrics compares the metrics after answers of both.
func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSituation(t)
		h := s.open(hook.Sync)
		by(t, h, hook.Sync)
		s.grpc.set(refuses(), errRefused)
		by(t, h, hook.Sync)
		by(t, h, hook.Sync)
		err := testutil.GatherAndCompare(s.metrics, strings.NewReader(`
# HELP hookloop_fallback_active Whether the fallback answers, by controller and hook.
# TYPE hookloop_fallback_active gauge
hookloop_fallback_active{controller="composite/web",hook="sync"} 1
# HELP hookloop_fallback_answers_total Answers of hooks that have a fallback, by transport.
# TYPE hookloop_fallback_answers_total counter
hookloop_fallback_answers_total{controller="composite/web",hook="sync",transport="grpc"} 1
hookloop_fallback_answers_total{controller="composite/web",hook="sync",transport="webhook"} 2
`))
		if err != nil {
			t.Error(err)
		}
	})
}

// TestSeriesEndWithTheHook closes one of two hooks while the fallback answers: its series are gone,
// and the other's are not.
func TestSeriesEndWithTheHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSituation(t)
		s.grpc.set(refuses(), errRefused)
		h := s.open(hook.Sync)
		final := s.open(hook.Finalize)
		by(t, h, hook.Sync)
		by(t, final, hook.Finalize)
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		err := testutil.GatherAndCompare(s.metrics, strings.NewReader(`
# HELP hookloop_fallback_active Whether the fallback answers, by controller and hook.
# TYPE hookloop_fallback_active gauge
hookloop_fallback_active{controller="composite/web",hook="finalize"} 1
# HELP hookloop_fallback_answers_total Answers of hooks that have a fallback, by transport.
# TYPE hookloop_fallback_answers_total counter
hookloop_fallback_answers_total{controller="composite/web",hook="finalize",transport="webhook"} 1
`))
		if err != nil {
			t.Error(err)
		}
	})
}

// TestSpanShowsWhoAnswered compares the attributes of the span in which a question is asked.
func TestSpanShowsWhoAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSituation(t)
		h := s.open(hook.Sync)
		asked := func() (attributes map[string]string, events int) {
			spans := tracetest.NewSpanRecorder()
			tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test")
			ctx, span := tracer.Start(t.Context(), "ask Sync")
			if _, err := h.Ask(ctx, question(hook.Sync, "web")); err != nil {
				t.Fatal(err)
			}
			span.End()
			attributes = map[string]string{}
			for _, a := range spans.Ended()[0].Attributes() {
				attributes[strings.TrimPrefix(string(a.Key), "hookloop.hook.")] = a.Value.String()
			}
			return attributes, len(spans.Ended()[0].Events())
		}
		got, missed := asked()
		want := map[string]string{"transport": "grpc", "address": "a:1", "fallback": "false"}
		if diff := cmp.Diff(want, got); diff != "" || missed != 0 {
			t.Errorf("%d events; attributes of an answer by gRPC (-want +got):\n%s", missed, diff)
		}
		s.grpc.set(refuses(), errRefused)
		got, missed = asked()
		want = map[string]string{"transport": "webhook", "address": "http://b", "fallback": "true"}
		if diff := cmp.Diff(want, got); diff != "" || missed == 0 {
			t.Errorf("%d events; attributes of an answer by the webhook (-want +got):\n%s", missed, diff)
		}
	})
}

// TestBadSettings opens hooks with a missing or an invalid field.
func TestBadSettings(t *testing.T) {
	broken := &fallback.Transport{
		Preferred: fallback.Side{Name: "grpc", Open: (&part{}).open("a:1", time.Second)},
		Fallback: fallback.Side{Name: "webhook", Open: func(hook.Config) (*hook.Opened, error) {
			return nil, errors.New("url: is missing")
		}},
	}
	for field, want := range map[string]string{
		`{"grpc":{}}`:              "webhook: is missing; expected both transports",
		`{"webhook":{}}`:           "grpc: is missing; expected both transports",
		`{"grpc":{},"webhook":{}}`: "webhook: url: is missing",
	} {
		opened, err := broken.Open(hook.Config{Field: json.RawMessage(field)})
		if opened != nil || err == nil || err.Error() != want {
			t.Errorf("%s: got %v and %v, want %s", field, opened, err, want)
		}
	}
}

// TestRandomFaults changes the two hooks at random while several parents are asked about. No
// parent has two questions at the same time, no question exceeds the timeout, a question fails only
// if neither hook was good, and the gRPC hook answers again in the end.
func TestRandomFaults(t *testing.T) {
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			s := newSituation(t)
			h := s.open(hook.Sync)
			behaviors := []hook.Func{answers, refuses(), hangs, unserved}
			ctx, stop := context.WithCancel(t.Context())
			var asking sync.WaitGroup
			for n := range 8 {
				delay := time.Second/2 + time.Duration(random.Int64N(int64(2*time.Second)))
				asking.Go(func() {
					q := question(hook.Sync, fmt.Sprintf("web-%d", n))
					for ctx.Err() == nil {
						began := time.Now()
						if _, err := h.Ask(t.Context(), q); err != nil {
							t.Errorf("seed %d: %v, although the webhook answers", seed, err)
						}
						if took := time.Since(began); took > h.Timeout {
							t.Errorf("seed %d: a question took %s, the timeout is %s", seed, took, h.Timeout)
						}
						time.Sleep(delay)
					}
				})
			}
			for range 20 {
				var down error
				behave := random.IntN(len(behaviors))
				if behave == 1 {
					down = errRefused
				}
				s.grpc.set(behaviors[behave], down)
				time.Sleep(time.Duration(random.Int64N(int64(time.Minute))))
			}
			s.grpc.set(answers, nil)
			time.Sleep(2 * maxHold)
			stop()
			asking.Wait()
			if got := by(t, h, hook.Sync); got != "grpc" || s.running.most != 1 {
				t.Errorf("seed %d: got %q in the end, and %d questions about one parent at once; want grpc and 1", seed, got,
					s.running.most)
			}
		})
	}
}

// TestAComposedHookHasTheFieldsOfBoth: the name of the preferred hook, or that of the fallback.
func TestAComposedHookHasTheFieldsOfBoth(t *testing.T) {
	for what, names := range map[string][2]string{
		"the preferred hook has the name": {"shop", ""},
		"the fallback has the name":       {"", "shop"},
		"both have a name":                {"shop", "blog"},
	} {
		side := func(transport, named string) fallback.Side {
			return fallback.Side{Name: transport, Open: func(hook.Config) (*hook.Opened, error) {
				opened := wraptest.Full()
				opened.Named = named
				return opened, nil
			}}
		}
		composed := fallback.Transport{Preferred: side("grpc", names[0]), Fallback: side("webhook", names[1])}
		opened, err := composed.Open(hook.Config{Field: json.RawMessage(`{"grpc":{},"webhook":{}}`)})
		if err != nil {
			t.Fatal(err)
		}
		// Nothing probes a composed hook: it probes its preferred one.
		if missing := wraptest.Missing(opened); !slices.Equal(missing, []string{"Probe"}) || opened.Named != "shop" {
			t.Errorf("%s: the composed hook does not have %q, and has the name %q", what, missing, opened.Named)
		}
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestAHookThatIsNotUsedIsClosed has a preferred transport that returns a hook in a way that it must
// not.
func TestAHookThatIsNotUsedIsClosed(t *testing.T) {
	for name, refused := range map[string]struct {
		hook hook.Hook
		err  error
	}{
		"beside an error":    {hook.Func(answers), errRefused},
		"without a function": {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			closed := 0
			opener := func(hook.Config) (*hook.Opened, error) {
				return &hook.Opened{Hook: refused.hook, Close: func() error { closed++; return nil }}, refused.err
			}
			composed := fallback.Transport{
				Preferred: fallback.Side{Name: "tcp", Open: opener},
				Fallback:  fallback.Side{Name: "webhook", Open: opener},
			}
			opened, err := composed.Open(hook.Config{Field: json.RawMessage(`{"tcp":{},"webhook":{}}`)})
			if opened != nil || err == nil || closed != 1 {
				t.Errorf("got %v and %v, and %d hooks are closed; want an error, and 1", opened, err, closed)
			}
		})
	}
}
