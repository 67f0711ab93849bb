package auth

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// logBook records the lines of a log at any verbosity.
type logBook struct {
	mu    sync.Mutex
	lines []string
}

func (b *logBook) logger() logr.Logger {
	return funcr.New(func(prefix, args string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.lines = append(b.lines, prefix+" "+args)
	}, funcr.Options{Verbosity: 10})
}

func (b *logBook) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.lines, "\n")
}

// TestStreams accepts a stream, and ends it with the reason if the right is revoked.
func TestStreams(t *testing.T) {
	g := start(t, logr.Discard())
	client := g.trusted()
	guard, err := New(
		Config{Client: g.fakeServer, Audience: "hookloop", Clock: clock.RealClock{}, Recheck: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	g.attach = func(stream grpc.BidiStreamingServer[streamv1.HookMessage, streamv1.EngineMessage]) error {
		caller, ok := FromContext(stream.Context())
		if !ok {
			return errors.New("no caller")
		}
		kept, cancel := guard.Recheck(stream.Context(), caller, serve)
		defer cancel()
		if err := stream.Send(&streamv1.EngineMessage{}); err != nil {
			return err
		}
		<-kept.Done()
		return context.Cause(kept)
	}
	stream, err := client.Attach(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer good"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	g.change(func() { delete(g.allowed, "laptop") })
	_, err = stream.Recv()
	check(t, status.Convert(err), codes.PermissionDenied, `User "laptop" cannot serve`)

	stream, err = client.Attach(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = stream.Recv()
	check(t, status.Convert(err), codes.Unauthenticated, "neither a token nor a client certificate")
}

// TestLog logs each kind of call, without tokens and metadata.
func TestLog(t *testing.T) {
	b := &logBook{}
	g := start(t, b.logger())
	client := g.trusted()
	calls := []func(){
		func() { check(t, call(t, client, "Bearer good"), codes.OK) },
		func() { check(t, call(t, client, "Bearer very-bad-token"), codes.Unauthenticated) },
		func() { check(t, call(t, client, "Very-bad-scheme"), codes.Unauthenticated) },
	}
	for _, made := range calls {
		made()
	}
	g.change(func() { g.down = errDown })
	g.clock.Step(time.Hour)
	check(t, call(t, client, "Bearer good"), codes.Unavailable)
	g.change(func() { g.down = nil })
	g.trigger = func(context.Context) error { panic("lost my mind") }
	check(t, call(t, client, "Bearer good"), codes.Internal, "a fault in Hookloop")
	g.trigger = func(ctx context.Context) error {
		klog.FromContext(ctx).Info("from a handler")
		return nil
	}
	check(t, call(t, client, "Bearer good"), codes.OK)
	text := b.text()
	for _, want := range []string{
		`"caller"="laptop" "by"="token"`, `"a call is refused"`, "connection refused", "lost my mind",
		`"grpc.method"="Trigger"`, "from a handler",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the log does not say %s:\n%s", want, text)
		}
	}
	for _, secret := range []string{"good", "very-bad", "Very-bad", "user-agent"} {
		if strings.Contains(text, secret) {
			t.Errorf("the log says %q:\n%s", secret, text)
		}
	}
}

// TestRejectedCallsInTheLog are few: those beyond the limit of a caller are for debugging.
func TestRejectedCallsInTheLog(t *testing.T) {
	b := &logBook{}
	record := recordCalls(newLimits(byCaller, fixed(), recordRate, recordBurst))
	ctx := klog.NewContext(t.Context(), b.logger())
	for _, name := range []string{"stranger", "other"} {
		of := context.WithValue(ctx, callerKey{}, &Caller{Name: name})
		for range 3 * recordBurst {
			record(of, level(codes.PermissionDenied), "finished call", "caller", name)
		}
	}
	for _, name := range []string{"stranger", "other"} {
		text := b.text()
		if n := strings.Count(text, `"level"=0 "msg"="finished call" "caller"="`+name); n != recordBurst {
			t.Errorf("%d calls of %s are in the log, want %d:\n%s", n, name, recordBurst, text)
		}
	}
}

// TestSizes are bounded.
func TestSizes(t *testing.T) {
	g := start(t, logr.Discard())
	client := g.trusted()
	big := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+strings.Repeat("a", MaxHeaderBytes))
	_, err := client.Trigger(big, &streamv1.TriggerRequest{})
	if err == nil || g.reviews != 0 {
		t.Errorf("%v and %d reviews; want an error and none", err, g.reviews)
	}
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer good")
	_, err = client.Trigger(ctx, &streamv1.TriggerRequest{Worker: strings.Repeat("a", DefaultMessageBytes)})
	check(t, status.Convert(err), codes.ResourceExhausted, "larger than max")
	check(t, call(t, client, "Bearer good"), codes.OK)
}

// TestStreamsOfAConnection opens the maximum number of streams of a connection. One more waits
// until another ends.
func TestStreamsOfAConnection(t *testing.T) {
	g := start(t, logr.Discard())
	client := g.trusted()
	g.attach = func(stream grpc.BidiStreamingServer[streamv1.HookMessage, streamv1.EngineMessage]) error {
		g.clock.Step(time.Second)                           // keeps the calls below the caller's rate limit
		if err := g.trigger(stream.Context()); err != nil { // admits the caller
			return err
		}
		if err := stream.Send(&streamv1.EngineMessage{}); err != nil {
			return err
		}
		_, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	}
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer good")
	for range MaxStreams {
		stream, err := client.Attach(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	_, err := client.Trigger(short, &streamv1.TriggerRequest{})
	check(t, status.Convert(err), codes.DeadlineExceeded)
}

// TestRates limits each caller and each address, without an effect on others.
func TestRates(t *testing.T) {
	g := start(t, logr.Discard())
	g.change(func() { g.tokens["other"], g.allowed["other"] = accepts("other", "2", "hookloop"), true })
	client := g.trusted()
	for range callBurst {
		check(t, call(t, client, "Bearer good"), codes.OK)
	}
	check(t, call(t, client, "Bearer good"), codes.ResourceExhausted,
		`at most 20 new calls a second of User "laptop" (by token)`)
	check(t, call(t, client, "Bearer other"), codes.OK)
	g.clock.Step(time.Second / callRate)
	check(t, call(t, client, "Bearer good"), codes.OK)

	var last *status.Status
	for range addressBurst {
		last = call(t, client)
	}
	check(t, last, codes.ResourceExhausted, "at most 50 new calls a second of 127.0.0.1")
}

// TestLimitsAreBounded uses many keys.
func TestLimitsAreBounded(t *testing.T) {
	l := newLimits(byAddress, fixed(), 1, 1)
	for i := range maxLimited + 10 {
		ctx := peer.NewContext(t.Context(),
			&peer.Peer{Addr: &net.TCPAddr{IP: net.IPv4(10, 1, byte(i>>8), byte(i)), Port: i + 1}})
		if err := l.Limit(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if l.all.Len() != maxLimited {
		t.Errorf("%d addresses are counted, want %d", l.all.Len(), maxLimited)
	}
}

// TestLimitsAreCounted uses each kind of limit for two keys.
func TestLimitsAreCounted(t *testing.T) {
	g := guard(t, newFakeServer(), clocktesting.NewFakeClock(time.Now()))
	all := []*limits{g.addresses, g.callers, g.records, g.denials, g.failures.limits}
	for _, l := range all {
		for _, key := range []string{"a", "b", "a"} {
			l.takeOf(key)
		}
	}
	if got := g.CachedLimits(); got != 2*len(all) {
		t.Errorf("%d limits are counted, want 2 of %d kinds", got, len(all))
	}
}

// TestAddresses maps the hosts of one IPv6 network to one key.
func TestAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"10.0.0.1": "10.0.0.1", "::ffff:10.0.0.1": "10.0.0.1",
		"2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64", "fe80::1%eth0": "fe80::/64",
	} {
		at, err := net.ResolveTCPAddr("tcp", net.JoinHostPort(address, "1234"))
		if err != nil {
			t.Fatal(err)
		}
		if got := byAddress(peer.NewContext(t.Context(), &peer.Peer{Addr: at})); got != want {
			t.Errorf("%s is counted as %s, want %s", address, got, want)
		}
	}
}

// TestOldTLS is rejected.
func TestOldTLS(t *testing.T) {
	g := start(t, logr.Discard())
	config := clientTLS(t, g.own)
	config.MinVersion = tls.VersionTLS10
	config.MaxVersion = tls.VersionTLS11
	config.NextProtos = []string{"h2"}
	connection, err := tls.Dial("tcp", g.address, config)
	if err == nil {
		_ = connection.Close()
		t.Fatal("TLS 1.1 is spoken")
	}
	if want := "protocol version not supported"; !strings.Contains(fmt.Sprint(err), want) {
		t.Errorf("%v, want %q", err, want)
	}
}
