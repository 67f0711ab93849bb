package exec

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/transports/transporttest"
	clocktesting "k8s.io/utils/clock/testing"
)

// question is about a parent of a size in bytes.
func question(t *testing.T, size int) *hook.Question {
	t.Helper()
	parent := `{"apiVersion":"example.com/v1","kind":"Greeting","metadata":{"name":"hi"},` + "\n" + `"spec":{"text":"` +
		strings.Repeat("x", size) + `"}}`
	o, err := object.Decode([]byte(parent))
	if err != nil {
		t.Fatal(err)
	}
	return &hook.Question{Kind: hook.Composite, Op: hook.Sync, Controller: o, Parent: o}
}

// open opens a program of a folder until the test ends.
func open(t *testing.T, transport *Transport, config Config, settings hook.Config) *hook.Opened {
	t.Helper()
	link(t, transport, config.Program)
	config.Processes = max(config.Processes, 1)
	settings.Op = hook.Sync
	settings.Field = field(t, config)
	opened, err := transport.Open(settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
	return opened
}

// pid asks a question and returns the process id in the answer.
func pid(t *testing.T, h hook.Hook) int {
	t.Helper()
	answer, err := h.Ask(t.Context(), question(t, 0))
	if err != nil {
		t.Fatal(err)
	}
	var status struct{ Pid int }
	if err := json.Unmarshal(answer.Status, &status); err != nil {
		t.Fatal(err)
	}
	return status.Pid
}

func TestTellsTheVersionOfTheEngine(t *testing.T) {
	h := open(t, folder(t), Config{Program: "answers"}, hook.Config{Engine: "v1.2.3"})
	answer, err := h.Ask(t.Context(), question(t, 0))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(answer.Status), `"engine":"v1.2.3"`) {
		t.Errorf("the program answered with the status %s, want the engine's version in it", answer.Status)
	}
}

func TestKeepsTheProgramRunning(t *testing.T) {
	h := open(t, folder(t), Config{Program: "answers"}, hook.Config{})
	if first, second := pid(t, h), pid(t, h); first != second {
		t.Errorf("process %d answered first and process %d second, want the same", first, second)
	}
}

func TestStartsAProgramAgainThatEnds(t *testing.T) {
	h := open(t, folder(t), Config{Program: "once"}, hook.Config{})
	if first, second := pid(t, h), pid(t, h); first == second {
		t.Errorf("process %d answered twice, want two processes", first)
	}
}

// TestFaults has programs that do not do what they should. The question must fail with the right
// kind, and a text that says what happened.
func TestFaults(t *testing.T) {
	tests := map[string]struct {
		program string
		size    int // of the question
		kind    any
		text    string
	}{
		"ends without an answer":   {"crashes", 0, hook.Unreachable, `3, and its last message was "KeyError: 'spec'"`},
		"ends within an answer":    {"partial", 0, hook.Unreachable, "in the middle of its answer: exit status 0"},
		"does not exist":           {"", 0, hook.Unreachable, "no such file"},
		"never reads":              {"deaf", 1 << 20, hook.TimedOut, "no answer within 200ms"},
		"never answers":            {"silent", 0, hook.TimedOut, "no answer within 200ms"},
		"prints a message":         {"prints@hello", 0, hook.Invalid, "write messages to standard error"},
		"prints an empty line":     {"prints@", 0, hook.Invalid, "expected one line of JSON"},
		"prints null":              {"prints@null", 0, hook.Invalid, "answered question 0"},
		"prints another id":        {`prints@{"id":99,"response":{}}`, 0, hook.Invalid, "answered question 99"},
		"prints an unknown field":  {`prints@{"id":1,"responses":{}}`, 0, hook.Invalid, "unknown field"},
		"prints neither":           {`prints@{"id":1}`, 0, hook.Invalid, "neither response nor error"},
		"prints an unknown kind":   {`prints@{"id":1,"error":{"kind":"x"}}`, 0, hook.Invalid, "expected failed, throttled"},
		"floods with one line":     {"floods@0", 0, hook.Invalid, "larger than 16777216 bytes"},
		"floods with lines":        {"floods@80", 0, hook.Invalid, "expected one line of JSON"},
		"floods and does not read": {"floods@80", 1 << 20, hook.TimedOut, "no answer within 200ms"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			transport := folder(t)
			config := Config{Program: test.program, Processes: 1}
			if test.kind == any(hook.TimedOut) {
				config.Timeout = "200ms"
			}
			if test.program == "" {
				config.Program = "missing"
			} else {
				link(t, transport, test.program)
			}
			opened, err := transport.Open(hook.Config{Op: hook.Sync, Field: field(t, config)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = opened.Close() })
			answer, err := opened.Ask(t.Context(), question(t, test.size))
			if answer != nil || any(hook.ErrorKindOf(err)) != test.kind || !strings.Contains(err.Error(), test.text) {
				t.Errorf("got answer %v and %v error %q, want %v with %q", answer, hook.ErrorKindOf(err), err, test.kind, test.text)
			}
		})
	}
}

// TestSecondLine has a program print two lines for a question. The first is the answer; the second
// must not become the answer of the next question.
func TestSecondLine(t *testing.T) {
	h := open(t, folder(t), Config{Program: "twice"}, hook.Config{})
	if _, err := h.Ask(t.Context(), question(t, 0)); err != nil {
		t.Fatal(err)
	}
	_, err := h.Ask(t.Context(), question(t, 0))
	if hook.ErrorKindOf(err) != hook.Invalid || !strings.Contains(err.Error(), "answered question 1, expected") {
		t.Errorf("got %v, want an invalid answer that names the ids", err)
	}
	if _, err := h.Ask(t.Context(), question(t, 0)); err != nil {
		t.Errorf("a new program does not answer: %v", err)
	}
}

// TestPauses has a program end again and again. The first question starts it again at once, and
// after that there is a pause, which doubles.
func TestPauses(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	h := open(t, folder(t), Config{Program: "crashes"}, hook.Config{Clock: clock})
	paused := func() bool {
		_, err := h.Ask(t.Context(), question(t, 0))
		if hook.ErrorKindOf(err) != hook.Unreachable || !strings.Contains(err.Error(), "KeyError") {
			t.Fatalf("got %v, want an unreachable hook and the reason why it ended", err)
		}
		return strings.Contains(err.Error(), "is started again in")
	}
	var pauses []time.Duration
	wait := time.Duration(0)
	for len(pauses) < 10 {
		if paused() {
			clock.SetTime(clock.Now().Add(firstPause))
			wait += firstPause
			continue
		}
		pauses = append(pauses, wait)
		wait = 0
	}
	want := []time.Duration{0, 0, 1, 2, 4, 8, 16, 32, 64, 100}
	for i := range want {
		want[i] *= firstPause
	}
	if !slices.Equal(pauses, want) {
		t.Errorf("the pauses are %v, want %v", pauses, want)
	}
}

// TestTimeoutDoesNotPause asks a program that answers one question in time and not another.
func TestTimeoutDoesNotPause(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	h := open(t, folder(t), Config{Program: "silent", Timeout: "50ms"}, hook.Config{Clock: clock})
	for range 3 {
		_, err := h.Ask(t.Context(), question(t, 0))
		if hook.ErrorKindOf(err) != hook.TimedOut {
			t.Errorf("got %v, want a timeout", err)
		}
	}
}

// TestCloseKillsTheProcessGroup closes the hook of a program that has started another one and
// ignores the end of its input.
func TestCloseKillsTheProcessGroup(t *testing.T) {
	listener := transporttest.Listen(t)
	defer listener.Close() //nolint:errcheck // the test is over
	h := open(t, folder(t), Config{Program: "parent@" + listener.Addr().String()}, hook.Config{})
	if _, err := h.Ask(t.Context(), question(t, 0)); err != nil {
		t.Fatal(err)
	}
	conn, err := listener.Accept() // of the other program
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // the test is over
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil || strings.Contains(err.Error(), "timeout") {
		t.Errorf("got %v, want the end of the connection, because its program was killed", err)
	}
}

// TestCloseEndsQuestions closes a hook while questions wait for it.
func TestCloseEndsQuestions(t *testing.T) {
	behaving := make(chan struct{}, 1)
	program := "relay@" + serve(t, func(ctx context.Context, _ transporttest.Received) transporttest.Reply {
		behaving <- struct{}{}
		return transporttest.Reply{Fault: transporttest.Hang}
	})
	h := open(t, folder(t), Config{Program: program, Timeout: "1h"}, hook.Config{})
	failures := make(chan error, 3)
	for range cap(failures) {
		q := question(t, 0)
		go func() {
			_, err := h.Ask(context.Background(), q)
			failures <- err
		}()
	}
	<-behaving
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	for range cap(failures) {
		if err := <-failures; hook.ErrorKindOf(err) != hook.Unreachable || !errors.Is(err, errClosed) {
			t.Errorf("got %v, want %v", err, errClosed)
		}
	}
	if _, err := h.Ask(t.Context(), question(t, 0)); !errors.Is(err, errClosed) {
		t.Errorf("got %v from a closed hook, want %v", err, errClosed)
	}
}

// TestEnvironment gives a program the environment of the transport, and nothing else.
func TestEnvironment(t *testing.T) {
	t.Setenv("SECRET", "of the engine")
	for _, env := range [][]string{nil, {"A=1", "B=2"}} {
		transport := folder(t)
		transport.Env = env
		h := open(t, transport, Config{Program: "answers"}, hook.Config{})
		answer, err := h.Ask(t.Context(), question(t, 0))
		if err != nil {
			t.Fatal(err)
		}
		var status struct{ Env int }
		if err := json.Unmarshal(answer.Status, &status); err != nil {
			t.Fatal(err)
		}
		if status.Env != len(env) {
			t.Errorf("the program has %d variables, want %d", status.Env, len(env))
		}
	}
}

// TestStandardError logs what a program writes: cut, and not more than a burst of it.
func TestStandardError(t *testing.T) {
	var mu sync.Mutex
	var lines []string
	transport := folder(t)
	transport.Log = funcr.New(func(_, args string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, args)
	}, funcr.Options{})
	h := open(t, transport, Config{Program: "noisy@10000"}, hook.Config{})
	if _, err := h.Ask(t.Context(), question(t, 0)); err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(lines) < messageBurst || len(lines) > 2*messageBurst {
		t.Errorf("%d lines are logged, want about %d", len(lines), messageBurst)
	}
	if n := len(lines[0]); n > 2*maxMessage {
		t.Errorf("the first line has %d bytes, want it to be cut", n)
	}
	if last := lines[len(lines)-1]; !strings.Contains(last, "were left out") {
		t.Errorf("the last line is %s, want the number of lines that were left out", last)
	}
}

// memory counts reservations, and has room for some bytes.
type memory struct {
	mu         sync.Mutex
	room, used int64
	releases   int
}

func (m *memory) Reserve(_ context.Context, bytes int64) (func(), error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.used+bytes > m.room {
		return nil, &hook.Error{Kind: hook.Failed, Reason: "MemoryBudget", Err: errors.New("no room")}
	}
	m.used += bytes
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.used -= bytes
		m.releases++
	}, nil
}

// TestMemory counts an answer of 1 MiB. Without room for it, the question fails, and the next one
// may have an answer again.
func TestMemory(t *testing.T) {
	program := "relay@" + serve(t, func(_ context.Context, got transporttest.Received) transporttest.Reply {
		return transporttest.Reply{Answer: &hook.Answer{Status: got.Parent}}
	})
	m := &memory{room: 100 << 20}
	h := open(t, folder(t), Config{Program: program}, hook.Config{Memory: m})
	if _, err := h.Ask(t.Context(), question(t, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if m.used < 2<<20 || m.releases > 0 {
		t.Errorf("%d bytes are reserved for an answer of 1 MiB, and %d reservations ended", m.used, m.releases)
	}
	m.room = m.used + 1<<20
	before := m.used
	_, err := h.Ask(t.Context(), question(t, 1<<20))
	var failure *hook.Error
	if !errors.As(err, &failure) || failure.Reason != "MemoryBudget" {
		t.Errorf("got %v, want the error of the memory budget", err)
	}
	if m.used != before {
		t.Errorf("%d bytes are reserved after a question that failed, want %d", m.used, before)
	}
	if _, err := h.Ask(t.Context(), question(t, 0)); err != nil {
		t.Errorf("a small answer fails, too: %v", err)
	}
}

// TestConfigs opens wrong configs. The error names the field.
func TestConfigs(t *testing.T) {
	for config, want := range map[string]string{
		`{}`:                                 "program: ",
		`{"program":".."}`:                   "program: ",
		`{"program":"../bin/sh"}`:            "program: ",
		`{"program":"/bin/sh"}`:              "program: ",
		`{"program":"a","processes":0}`:      "processes: ",
		`{"program":"a","processes":65}`:     "processes: ",
		`{"program":"a","timeout":"soon"}`:   "timeout: ",
		`{"program":"a","timeout":"-1s"}`:    "timeout: ",
		`{"program":"a","arguments":["-c"]}`: `unknown field "arguments"`,
		`{"program":["a"]}`:                  "program",
		`[]`:                                 "Config",
	} {
		opened, err := folder(t).Open(hook.Config{Op: hook.Sync, Field: json.RawMessage(config)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v and %v, want an error with %q", config, opened, err, want)
		}
	}
}
