package auth

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// countingCodec counts decoded messages.
type countingCodec struct {
	encoding.CodecV2
	messages atomic.Int64
}

func (c *countingCodec) Unmarshal(data mem.BufferSlice, v any) error {
	c.messages.Add(1)
	return c.CodecV2.Unmarshal(data, v)
}

// TestNothingIsDecodedOfStrangers calls without a credential, with an invalid one, and with
// compression. The server decodes no message of these calls, and one of an authenticated caller.
func TestNothingIsDecodedOfStrangers(t *testing.T) {
	g := start(t, logr.Discard())
	client := g.trusted()
	bad := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer bad")
	for _, ctx := range []context.Context{t.Context(), bad} {
		_, err := client.Trigger(ctx, &streamv1.TriggerRequest{Worker: "hello"})
		check(t, status.Convert(err), codes.Unauthenticated)
		_, err = client.Trigger(ctx, &streamv1.TriggerRequest{Worker: "hello"}, grpc.UseCompressor(gzip.Name))
		check(t, status.Convert(err), codes.Unimplemented)
	}
	if n := g.codec.messages.Load(); n != 0 {
		t.Errorf("%d messages of unauthenticated callers were decoded", n)
	}
	check(t, call(t, client, "Bearer good"), codes.OK)
	if n := g.codec.messages.Load(); n != 1 {
		t.Errorf("%d messages were decoded, expected the one of the caller who is known", n)
	}
}

// TestCompressedCalls are rejected for every caller, as unary calls and as streams.
func TestCompressedCalls(t *testing.T) {
	g := start(t, logr.Discard())
	client := g.trusted()
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer good")
	_, err := client.Trigger(ctx, &streamv1.TriggerRequest{Worker: "hello"}, grpc.UseCompressor(gzip.Name))
	check(t, status.Convert(err), codes.Unimplemented, `grpc-encoding is "gzip", expected identity`)
	stream, err := client.Attach(ctx, grpc.UseCompressor(gzip.Name))
	if err != nil {
		t.Fatal(err)
	}
	_, err = stream.Recv()
	check(t, status.Convert(err), codes.Unimplemented, `grpc-encoding is "gzip"`)
}

// TestSpans creates root spans for authenticated callers, whatever they want sampled.
func TestSpans(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	before := otel.GetTracerProvider()
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)))
	t.Cleanup(func() { otel.SetTracerProvider(before) })
	g := start(t, logr.Discard())
	g.attach = func(grpc.BidiStreamingServer[streamv1.HookMessage, streamv1.EngineMessage]) error { return nil }
	client := g.trusted()
	ctx := metadata.AppendToOutgoingContext(t.Context(), "traceparent",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	_, err := client.Trigger(ctx, &streamv1.TriggerRequest{})
	check(t, status.Convert(err), codes.Unauthenticated)
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer good")
	stream, err := client.Attach(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = stream.Recv() // waits for its end
	if n := len(spans.Started()); n != 0 {
		t.Errorf("%d spans of a stranger's call and of a stream, expected none", n)
	}
	if _, err := client.Trigger(ctx, &streamv1.TriggerRequest{}); err != nil {
		t.Fatal(err)
	}
	started := spans.Started()
	if len(started) != 1 || started[0].Name() != "hookloop.stream.v1.GatewayService/Trigger" {
		t.Fatalf("%v, expected one span of the call", started)
	}
	links := started[0].Links()
	trace := started[0].SpanContext().TraceID().String()
	if started[0].Parent().IsValid() || len(links) != 1 || strings.HasPrefix(trace, "0af765") {
		t.Errorf("parent %v, links %v: expected a root that links to the caller's span", started[0].Parent(), links)
	}
}

// openConnections opens TLS connections to a gateway without calls.
func (g *gateway) openConnections(t *testing.T, n int) []net.Conn {
	t.Helper()
	config := clientTLS(t, g.own)
	config.NextProtos = []string{"h2"}
	out := make([]net.Conn, n)
	for i := range out {
		c, err := tls.Dial("tcp", g.address, config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		out[i] = c
	}
	return out
}

// closed waits until the server has closed a connection.
func closed(t *testing.T, c net.Conn) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	for {
		_, err := c.Read(make([]byte, 4096))
		var slow net.Error
		if errors.As(err, &slow) && slow.Timeout() {
			t.Fatal("the connection is still open")
		}
		if err != nil {
			return
		}
	}
}

// TestStrangersConnections closes unauthenticated connections, oldest first, if they are too many
// or too old. Connections of authenticated callers stay, up to a limit for each caller.
func TestStrangersConnections(t *testing.T) {
	g := start(t, logr.Discard())
	client := g.trusted()
	check(t, call(t, client, "Bearer good"), codes.OK)
	idle := g.openConnections(t, maxNewPerAddress+2)
	closed(t, idle[0])
	closed(t, idle[1])
	for !g.clock.HasWaiters() {
		time.Sleep(time.Millisecond)
	}
	g.clock.Step(admissionTimeout)
	closed(t, idle[len(idle)-1])
	check(t, call(t, client, "Bearer good"), codes.OK)
}

// TestConnectionsWithoutARight do not count as those of an admitted caller, and are closed in time.
// The caller's next connections count when it is admitted.
func TestConnectionsWithoutARight(t *testing.T) {
	g := start(t, logr.Discard())
	g.change(func() { g.tokens["other"] = accepts("other", "2", "hookloop") })
	counts := func() [2]int {
		g.connections.mu.Lock()
		defer g.connections.mu.Unlock()
		return [2]int{len(g.connections.fresh), g.connections.admitted}
	}
	for range 3 {
		check(t, call(t, g.trusted(), "Bearer other"), codes.PermissionDenied)
	}
	if got := counts(); got != [2]int{3, 0} {
		t.Errorf("%v connections of new and of admitted callers, want 3 and none", got)
	}
	check(t, call(t, g.trusted(), "Bearer good"), codes.OK)
	g.trigger = func(context.Context) error { return nil }
	check(t, call(t, g.trusted(), "Bearer good"), codes.OK)
	if got := counts(); got != [2]int{3, 2} {
		t.Errorf("%v connections of new and of admitted callers, want 3 and 2", got)
	}
	g.clock.Step(admissionTimeout)
	deadline := time.Now().Add(time.Minute)
	for counts() != [2]int{0, 2} && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	if got := counts(); got != [2]int{0, 2} {
		t.Errorf("%v connections of new and of admitted callers at last, want none and 2", got)
	}
}

func TestConnectionsOfACaller(t *testing.T) {
	g := start(t, logr.Discard())
	g.change(func() { g.tokens["other"], g.allowed["other"] = accepts("other", "2", "hookloop"), true })
	for range maxConnectionsPerCaller {
		check(t, call(t, g.trusted(), "Bearer good"), codes.OK)
		g.clock.Step(time.Second / 4) // keeps the calls below the rate limits
	}
	check(t, call(t, g.trusted(), "Bearer good"), codes.ResourceExhausted, `User "laptop" (by token) has 64 connections`)
	check(t, call(t, g.trusted(), "Bearer other"), codes.OK)
}

// TestStrangersOfManyAddresses closes the oldest connection of the address with the most
// connections.
func TestStrangersOfManyAddresses(t *testing.T) {
	c := newConnections(fixed())
	var first *connection
	take := func(host byte, port int) *connection {
		return c.take(pretended{remote: &net.TCPAddr{IP: net.IPv4(10, 0, 0, host), Port: port}})
	}
	victim := take(200, 1)
	for host := range maxNew / maxNewPerAddress {
		for port := range maxNewPerAddress {
			if conn := take(byte(host), port+1); first == nil {
				first = conn
			}
		}
	}
	if !first.closed || victim.closed || len(c.fresh) != maxNew {
		t.Errorf("first closed %t, lone one closed %t, %d unauthenticated ones; "+
			"expected the first of an address with many to be closed",
			first.closed, victim.closed, len(c.fresh))
	}
}

func elsewhere(ctx context.Context) context.Context {
	return peer.NewContext(ctx, &peer.Peer{Addr: &net.TCPAddr{IP: net.IPv4(10, 9, 9, 9), Port: 1}})
}

type pretended struct {
	net.Conn
	remote net.Addr
}

func (p pretended) RemoteAddr() net.Addr { return p.remote }
func (pretended) Close() error           { return nil }

// TestStrangersAtOnce uses an API server that does not answer. The reviews in progress of an
// address are bounded, and another address is still served.
func TestStrangersAtOnce(t *testing.T) {
	f := newFailures(fixed())
	for i := range failureBurst {
		if _, err := f.begin(opened(t.Context())); err != nil {
			t.Fatalf("question %d: %v", i, err)
		}
	}
	if _, err := f.begin(opened(t.Context())); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("%v, expected RESOURCE_EXHAUSTED", err)
	}
	f.total = maxPending
	done, err := f.begin(elsewhere(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.begin(elsewhere(t.Context())); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("%v, expected one question of an address while there are many", err)
	}
	done(false)
	if _, found := f.pending["10.9.9.9"]; found {
		t.Error("an address without questions is still counted")
	}
}
