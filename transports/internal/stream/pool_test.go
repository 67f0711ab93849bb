package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"k8s.io/utils/clock"
)

// members returns a pool with one open session for each build.
func members(t *testing.T, builds ...string) (*Pool, []*Session) {
	t.Helper()
	p := NewPool(clock.RealClock{}, nil)
	var sessions []*Session
	for i, build := range builds {
		s := New(settingsOf(fmt.Sprintf("session-%d", i), nil))
		p.Add(s)
		connect(t, s).greet(build)
		sessions = append(sessions, s)
	}
	p.Changed()
	return p, sessions
}

// places returns the session of each of a thousand subjects.
func places(t *testing.T, p *Pool) map[string]*Session {
	t.Helper()
	out := map[string]*Session{}
	for i := range 1000 {
		subject := fmt.Sprintf("controller/parent-%d", i)
		s, _, err := p.pick(subject)
		if s == nil {
			t.Fatalf("%s has no session: %v", subject, err)
		}
		out[subject] = s
	}
	return out
}

// TestSubjectsStayWhereTheyAre removes one of three sessions and adds it again. Only its own
// subjects move.
func TestSubjectsStayWhereTheyAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, sessions := members(t, "one", "one", "one")
		before := places(t, p)
		count := map[*Session]int{}
		for _, s := range before {
			count[s]++
		}
		for i, s := range sessions {
			if count[s] < 200 {
				t.Errorf("session %d has %d subjects of 1000, want about a third", i, count[s])
			}
		}
		p.Remove(sessions[1])
		for subject, s := range places(t, p) {
			if was := before[subject]; was != sessions[1] && s != was {
				t.Errorf("%s has moved from a session that is there", subject)
			}
		}
		p.Add(sessions[1])
		for subject, s := range places(t, p) {
			if s != before[subject] {
				t.Errorf("%s is not where it was", subject)
			}
		}
	})
}

// TestSessionTimeout asks without a session.
func TestSessionTimeout(t *testing.T) {
	cases := map[string]struct {
		fault error
		want  string
	}{
		"nothing is known": {nil, `HookUnreachable: hook sync test: Unavailable: "no session is open"`},
		"nobody listens": {
			status.Error(codes.Unavailable, "connection refused"),
			`HookUnreachable: hook sync test: Unavailable: "connection refused"`,
		},
		"another protocol": {
			&Broken{errors.New("it chose version 9")},
			"InvalidHookAnswer: hook sync test: it chose version 9",
		},
		"the hook will not talk": {
			status.Error(codes.InvalidArgument, "what?"),
			`HookUnreachable: hook sync test: InvalidArgument: "what?"`,
		},
		"the hook is full": {
			status.Error(codes.ResourceExhausted, "go away"),
			`HookUnreachable: hook sync test: ResourceExhausted: "go away"`,
		},
		"it has no such right": {
			status.Error(codes.PermissionDenied, "no"),
			`HookFailed: hook sync test: PermissionDenied: "no"`,
		},
		"it has no streams": {
			status.Error(codes.Unimplemented, "unknown service"),
			`HookFailed: hook sync test: the hook does not serve hookloop.composite.v1.CompositeHookService/Sync: ` +
				`Unimplemented: "unknown service"`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := NewPool(clock.RealClock{}, nil)
				p.Fail(c.fault)
				began := time.Now()
				if text := (<-askAsync(t, Hook{Pool: p, Name: "sync test", Timeout: time.Minute}, "web")).text(); text != c.want {
					t.Errorf("got %s\nwant %s", text, c.want)
				}
				// The clock is the bubble's.
				if waited, unserved := time.Since(began), p.Unimplemented(); unserved != (waited == 0) ||
					!unserved && waited != sessionTimeout {
					t.Errorf("it has waited %s, want %s, or nothing where the service is unknown", waited, sessionTimeout)
				}
			})
		})
	}
}

// TestSessionInTime opens a session while a question waits.
func TestSessionInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := pooled("a")
		got := askAsync(t, h, "web")
		time.Sleep(sessionTimeout / 2)
		p := connect(t, s).greet("one")
		p.answer(p.receiveCall(), "well")
		if text := (<-got).text(); text != `"well"` {
			t.Errorf("got %s", text)
		}
		h.Pool.Fail(status.Error(codes.Unimplemented, "unknown service"))
		if h.Pool.Unimplemented() {
			t.Error("a hook with a session is taken for one that serves none")
		}
	})
}

// TestCallerGivesUp while no session is open. This is not an error of the hook.
func TestCallerGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, h := pooled("a")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := h.Ask(ctx, questionAbout(t, "web")); !errors.Is(err, context.Canceled) || hook.ErrorKindOf(err) != "" {
			t.Errorf("got %v, want the context's own error", err)
		}
	})
}

// TestQuestionThatEndsStreams is repeated a few times only.
func TestQuestionThatEndsStreams(t *testing.T) {
	cases := map[string]struct {
		end  func(*peer, *streamv1.Call)
		want string
	}{
		"the hook crashes": {
			func(p *peer, _ *streamv1.Call) { p.fail(status.Error(codes.Unavailable, "connection reset")) },
			`HookUnreachable: hook sync test: Unavailable: "connection reset"`,
		},
		"the hook answers another call": {
			func(p *peer, c *streamv1.Call) {
				c.Id += 5
				p.answer(c, "well")
				p.receive() // GoAway
			},
			"InvalidHookAnswer: hook sync test: got an answer to call 6, which was never made",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, h := pooled("a")
				got := askAsync(t, h, "web")
				for range maxLosses {
					p := connect(t, s).greet("one")
					c.end(p, p.receiveCall())
					p.awaitEnd()
				}
				if text := (<-got).text(); text != c.want {
					t.Errorf("got %s\nwant %s", text, c.want)
				}
			})
		})
	}
}

// TestARepeatedQuestionKeepsItsID, so that the trace names the request that was answered.
func TestARepeatedQuestionKeepsItsID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := pooled("a")
		got := askAsync(t, h, "web")
		var ids []string
		received := func(p *peer) *streamv1.Call {
			call := p.receiveCall()
			request := &compositev1.SyncRequest{}
			if err := proto.Unmarshal(call.GetEnvelope(), request); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, request.GetMeta().GetRequestId())
			return call
		}
		first := connect(t, s).greet("one")
		received(first)
		first.fail(io.EOF)
		first.awaitEnd()
		second := connect(t, s).greet("one")
		second.answer(received(second), "well")
		<-got
		if ids[0] == "" || ids[0] != ids[1] {
			t.Errorf("got the IDs %q, expected the same one twice", ids)
		}
	})
}

// TestFallback answers immediately if no session is open.
func TestFallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := pooled("a")
		h.Fallback = hook.Func(func(context.Context, *hook.Question) (*hook.Answer, error) {
			return &hook.Answer{Status: []byte(`"otherwise"`)}, nil
		})
		p := connect(t, s).greet("one")
		got := askAsync(t, h, "web")
		p.receiveCall()
		p.fail(io.EOF)
		if text := (<-got).text(); text != `"otherwise"` {
			t.Errorf("got %s after the session was lost", text)
		}
	})
}

// TestReadTrigger names the invalid field.
func TestReadTrigger(t *testing.T) {
	cases := map[string]struct {
		trigger *streamv1.Trigger
		want    string
	}{
		"a long reason": {
			&streamv1.Trigger{Reason: strings.Repeat("x", MaxReasonBytes+1)},
			"reason has 257 bytes, expected at most 256",
		},
		"many names": {
			&streamv1.Trigger{Parents: make([]*streamv1.ParentName, MaxParents+1)},
			"parents has 10001 names, expected at most 10000",
		},
		"names and a selector": {
			&streamv1.Trigger{
				Parents:       []*streamv1.ParentName{{Name: "a"}},
				LabelSelector: "a=b",
			},
			"label_selector: is set beside parents",
		},
		"no name": {
			&streamv1.Trigger{Parents: []*streamv1.ParentName{{Name: "a"}, {}}},
			"parents[1].name: is empty",
		},
		"a long selector": {
			&streamv1.Trigger{LabelSelector: strings.Repeat("a", 4097)},
			"label_selector: has 4097 bytes, expected at most 4096",
		},
		"a selector of many values": {
			&streamv1.Trigger{LabelSelector: "a in (" + strings.Repeat("b,", 128) + "b)"},
			"label_selector: has 129 requirements and values, expected at most 128",
		},
		"a bad selector":  {&streamv1.Trigger{LabelSelector: "a in ("}, "label_selector: "},
		"an unknown kind": {&streamv1.Trigger{ControllerKind: "Pod"}, `controller_kind is "Pod"`},
		"the other kind": {
			&streamv1.Trigger{ControllerKind: "DecoratorController"},
			`controller_kind is "DecoratorController", expected "CompositeController"`,
		},
		"another's parent": {&streamv1.Trigger{ControllerName: "other"}, `controller_name is "other", expected "mine"`},
	}
	take := TriggerOf("CompositeController", "mine", func(hook.Trigger) (int, error) { return 3, nil })
	for name, c := range cases {
		if _, err := take(c.trigger); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want INVALID_ARGUMENT: %s", name, err, c.want)
		}
	}
	if n, err := take(
		&streamv1.Trigger{ControllerKind: "CompositeController", ControllerName: "mine", LabelSelector: "a=b"},
	); n != 3 ||
		err != nil {
		t.Errorf("a good trigger: got %d, %v", n, err)
	}
	for field, large := range map[string]*streamv1.Trigger{
		"controller_name": {ControllerName: strings.Repeat("\x00", 1<<20)},
		"controller_kind": {ControllerKind: strings.Repeat("\x00", 1<<20)},
		"label_selector":  {LabelSelector: "a in (" + invalidValues(1020) + ")"},
		// as many as are parsed
		"label_selector: unable to parse": {LabelSelector: "a in (" + invalidValues(MaxSelectorItems) + ")"},
	} {
		if _, err := take(large); !strings.Contains(err.Error(), field) || len(err.Error()) > 1024 {
			t.Errorf("%s: got an error of %d bytes, want at most 1024: %.2000v", field, len(err.Error()), err)
		}
		if _, err := ReadTrigger(large); err != nil && len(err.Error()) > 1024 {
			t.Errorf("%s: got an error of %d bytes, want at most 1024: %.2000v", field, len(err.Error()), err)
		}
	}
	refuse := TriggerOf("CompositeController", "mine",
		func(hook.Trigger) (int, error) { return 0, hook.ErrTooManyTriggers })
	if _, err := refuse(&streamv1.Trigger{}); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("too many triggers: got %v", err)
	}
}

// invalidValues returns different values of labels that no label may have.
func invalidValues(n int) string {
	values := make([]string, n)
	for i := range values {
		values[i] = "-" + string(rune('a'+i%26)) + string(rune('a'+i/26%26))
	}
	return strings.Join(values, ",")
}

// TestFaultsAreOfSessions keeps each session's own failure: an unreachable session does not hide
// another one's UNIMPLEMENTED.
func TestFaultsAreOfSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unaware := New(Config{ID: "a", Clock: clock.RealClock{}})
		dead := New(Config{ID: "b", Clock: clock.RealClock{}})
		p := NewPool(clock.RealClock{}, nil)
		p.Add(unaware)
		p.Add(dead)
		p.FailSession(unaware, status.Error(codes.Unimplemented, "unknown service"))
		p.FailSession(dead, status.Error(codes.Unavailable, "connection refused"))
		if !p.Unimplemented() {
			t.Error("the fault of the dead session hides that the other knows no streams")
		}
		p.Remove(unaware)
		if p.Unimplemented() {
			t.Error("the fault of a session that is gone counts")
		}
		p.FailSession(unaware, status.Error(codes.Unimplemented, "unknown service"))
		if p.Unimplemented() {
			t.Error("the fault of a session that is not in the pool counts")
		}
	})
}
