package hook_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	"github.com/hookloop/hookloop/sdk/go/hook"
	"google.golang.org/grpc"
)

// logged is the log of a hook, which other goroutines write.
type logged struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// plain writes records like slog's default handler: only the message.
type plain struct{ *logged }

func (p plain) Enabled(context.Context, slog.Level) bool { return true }
func (p plain) WithAttrs([]slog.Attr) slog.Handler       { return p }
func (p plain) WithGroup(string) slog.Handler            { return p }
func (p plain) Handle(_ context.Context, r slog.Record) error {
	text := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool {
		text += " " + a.String()
		return true
	})
	_, err := p.Write([]byte(text + "\n"))
	return err
}

// ways ask a hook one question about the parent, by a unary call and over a stream.
var ways = map[string]func(t *testing.T, connection *grpc.ClientConn){
	"unary": func(t *testing.T, connection *grpc.ClientConn) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		_, _ = compositev1.NewCompositeHookServiceClient(connection).Sync(ctx, request()) // the log has the result
	},
	"stream": func(t *testing.T, connection *grpc.ClientConn) {
		engine := newEngine("a")
		e := hello(t, connection, engine)
		engine.Ask(questionAbout("web"))
		e.send()
		if _, err := e.stream.Recv(); err != nil {
			t.Error(err)
		}
	},
}

func TestAFailureIsLoggedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		sync func() (*hook.SyncResponse, error)
		want []string // nil: nothing is logged
	}{
		"an error": {func() (*hook.SyncResponse, error) { return nil, errors.New("no database") },
			[]string{"ERROR hook function failed", "no database"}},
		"no answer": {func() (*hook.SyncResponse, error) { return nil, nil },
			[]string{"ERROR hook function failed", "neither a response nor an error"}},
		"a panic": {func() (*hook.SyncResponse, error) { panic("boom") },
			[]string{"ERROR hook function panicked: boom\n", "calllog_test.go:", "\n\t"}},
		"Reject":     {func() (*hook.SyncResponse, error) { return nil, hook.Reject("Bad", "no") }, nil},
		"RetryAfter": {func() (*hook.SyncResponse, error) { return nil, hook.RetryAfter(time.Second, "busy") }, nil},
		"an answer":  {func() (*hook.SyncResponse, error) { return &hook.SyncResponse{}, nil }, nil},
	} {
		for way, ask := range ways {
			t.Run(name+" "+way, func(t *testing.T) {
				log := &logged{}
				connection, stop := start(t, hook.ServeOptions{Options: hook.Options{Log: slog.New(plain{log}),
					GracePeriod: 100 * time.Millisecond}},
					hook.Composite{Sync: func(context.Context, *hook.SyncRequest) (*hook.SyncResponse, error) { return c.sync() }})
				ask(t, connection)
				if err := stop(); err != nil {
					t.Fatal(err)
				}
				got := log.String()
				for _, want := range append(c.want, parts(c.want, "method=/hookloop.composite.v1.CompositeHookService/Sync",
					"parent=")...) {
					if !strings.Contains(got, want) {
						t.Errorf("got the log %s\nwant %q", got, want)
					}
				}
				if want := min(1, len(c.want)); strings.Count(got, "ERROR") != want || strings.Contains(got, "spec") {
					t.Errorf("got the log %s\nwant %d errors, and no content of objects", got, want)
				}
			})
		}
	}
}

// parts returns the parts of a log, with further ones unless the log is empty.
func parts(of []string, more ...string) []string {
	if of == nil {
		return nil
	}
	return more
}

// TestACallThatIsGivenUpIsLogged although its function returns no error, or does not return.
func TestACallThatIsGivenUpIsLogged(t *testing.T) {
	log := &logged{}
	entered := make(chan string, 3)
	release := make(chan struct{})
	connection, stop := start(t, hook.ServeOptions{Options: hook.Options{Log: slog.New(plain{log}),
		GracePeriod: 100 * time.Millisecond}},
		hook.Composite{Sync: func(_ context.Context, req *hook.SyncRequest) (*hook.SyncResponse, error) {
			entered <- req.Parent.Name
			<-release
			return &hook.SyncResponse{}, nil
		}})
	engine := newEngine("a")
	e := hello(t, connection, engine)
	await := func(want string) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); !strings.Contains(log.String(), want); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("got the log %s\nwant %q", log, want)
			}
		}
	}
	late := questionAbout("late")
	late.Remaining = func() time.Duration { return time.Millisecond }
	engine.Ask(late)
	e.send()
	await("the function took longer than the call's timeout")
	ticket := engine.Ask(questionAbout("cancelled"))
	e.send()
	engine.Cancel(ticket)
	e.send()
	await("the engine gave the call up")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for name := range entered {
			if name == "hi" {
				cancel() // of the unary call
				return
			}
		}
	}()
	if _, err := compositev1.NewCompositeHookServiceClient(connection).Sync(ctx, request()); err == nil {
		t.Error("the unary call has an answer")
	}
	await("context ")
	close(release)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(log.String(), "WARN hook call given up"); got != 3 || strings.Contains(log.String(), "ERROR") {
		t.Errorf("got the log %s\nwant 3 warnings", log)
	}
}
