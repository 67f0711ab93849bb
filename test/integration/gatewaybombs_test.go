package integration

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

const (
	triggerMethod = "/hookloop.stream.v1.GatewayService/Trigger"
	attachMethod  = "/hookloop.stream.v1.GatewayService/Attach"
)

// emptyParents returns a TriggerRequest of a size with as many empty parents as possible.
func emptyParents(size int) []byte {
	return append([]byte{2<<3 | 2}, lengthPrefixed(repeated(4, size))...)
}

// dialTLS opens a separate connection to the gateway.
func (b *blast) dialTLS() *grpc.ClientConn {
	b.Helper()
	pem, err := os.ReadFile(b.gateway.CAFile)
	if err != nil {
		b.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	connection, err := grpc.NewClient(b.gateway.Address,
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12})),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(rawCodec{}), grpc.MaxCallSendMsgSize(64<<20)))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = connection.Close() })
	return connection
}

// worker returns the context of calls of the ServiceAccount that may serve the worker "bomber".
func (b *blast) worker() context.Context {
	token, err := os.ReadFile(b.gateway.TokenFile)
	if err != nil {
		b.Fatal(err)
	}
	b.allow("serve", "hookworkers", "bomber")
	ctx := metadata.AppendToOutgoingContext(b.Context(), "authorization", "Bearer "+string(token))
	client := streamv1.NewGatewayServiceClient(b.dialTLS())
	b.Eventually("the worker has its right", func() error {
		_, err := client.Trigger(ctx, &streamv1.TriggerRequest{Worker: "bomber"})
		if status.Code(err) != codes.FailedPrecondition { // no controller refers to the worker
			return err
		}
		return nil
	})
	return ctx
}

// atOnce runs a function many times in parallel, and expects one of the codes each time.
func (b *blast) atOnce(times int, do func(i int) error, want ...codes.Code) {
	b.Helper()
	var wait sync.WaitGroup
	for i := range times {
		wait.Go(func() {
			err := do(i)
			// The limit of new calls is not tested here.
			for strings.Contains(status.Convert(err).Message(), "new calls a second") {
				time.Sleep(time.Second / 4)
				err = do(i)
			}
			got := status.Code(err)
			if slices.Contains(want, got) {
				return
			}
			b.Errorf("call %d: got %s, want one of %v", i, got, want)
		})
	}
	wait.Wait()
}

// strangersBombs returns the bombs of callers without credentials.
func strangersBombs() []bomb {
	request := &rawMessage{emptyParents(4 << 20)}
	trigger := func(b *blast, ctx context.Context, options ...grpc.CallOption) func(int) error {
		connections := [6]*grpc.ClientConn{}
		for i := range connections {
			connections[i] = b.dialTLS()
		}
		return func(i int) error {
			return connections[i%len(connections)].Invoke(ctx, triggerMethod, request, &streamv1.TriggerResponse{}, options...)
		}
	}
	refused := []codes.Code{codes.Unauthenticated, codes.ResourceExhausted, codes.Unimplemented}
	return []bomb{
		{"stranger: triggers", func(b *blast) { b.atOnce(60, trigger(b, b.Context()), refused...) }},
		{"stranger: triggers, gzip", func(b *blast) {
			b.atOnce(60, trigger(b, b.Context(), grpc.UseCompressor(gzip.Name)), refused...)
		}},
		{"stranger: triggers, wrong token", func(b *blast) {
			b.atOnce(60, trigger(b, metadata.AppendToOutgoingContext(b.Context(), "authorization", "Bearer no")), refused...)
		}},
		{"stranger: idle connections", func(b *blast) {
			for range 500 {
				dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}}
				c, err := dialer.DialContext(b.Context(), "tcp", b.gateway.Address)
				if err != nil {
					b.Fatal(err)
				}
				b.Cleanup(func() { _ = c.Close() })
			}
		}},
	}
}

// attached opens a stream of the worker and sends raw messages. It reads what the engine sends, or
// nothing for some seconds. It returns the error that ends the stream, or nil.
func (b *blast) attached(ctx context.Context, connection *grpc.ClientConn, reads bool, messages ...[]byte) error {
	ctx, cancel := context.WithTimeout(ctx, 6*time.Second)
	defer cancel()
	s, err := connection.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, attachMethod)
	if err != nil {
		return err
	}
	attach, err := proto.Marshal(
		&streamv1.HookMessage{Message: &streamv1.HookMessage_Attach{Attach: &streamv1.Attach{Worker: "bomber"}}})
	if err != nil {
		return err
	}
	for _, m := range append([][]byte{attach}, messages...) {
		if err := s.SendMsg(&rawMessage{m}); err != nil {
			break // the end of the stream has the reason
		}
	}
	if !reads {
		<-ctx.Done()
	}
	for {
		if err := s.RecvMsg(&streamv1.EngineMessage{}); err != nil {
			return err
		}
	}
}

// encoded returns a message of a hook.
func encoded(b *blast, m *streamv1.HookMessage) []byte {
	b.Helper()
	data, err := proto.Marshal(m)
	if err != nil {
		b.Fatal(err)
	}
	return data
}

// unknownSubjects returns a Welcome with all capabilities that names subjects, which the engine
// does not know.
func unknownSubjects(b *blast, subjects int) []byte {
	w := &streamv1.Welcome{
		Version: 1, Window: &streamv1.Window{Calls: 1, Bytes: 1},
		Capabilities: []streamv1.Capability{
			streamv1.Capability_CAPABILITY_FRAGMENTS, streamv1.Capability_CAPABILITY_RESUME,
		},
	}
	for i := range subjects {
		w.Subjects = append(w.Subjects, &streamv1.SubjectState{Subject: fmt.Sprintf("%060d", i)})
	}
	return encoded(b, &streamv1.HookMessage{Message: &streamv1.HookMessage_Welcome{Welcome: w}})
}

// invalidSelector returns a label selector of at most 4 KiB with as many different invalid values
// as possible.
func invalidSelector() string {
	values := make([]string, 1000)
	for i := range values {
		values[i] = fmt.Sprintf("-%02x", i)
	}
	return ("a in (" + strings.Join(values, ","))[:4<<10-1] + ")"
}

// fragments returns the first bytes of a message in fragments, of total bytes in all.
func fragments(b *blast, data []byte, total int) (out [][]byte) {
	for index := 0; len(data) > 0; index++ {
		n := min(len(data), 1<<20)
		m, err := proto.Marshal(&streamv1.HookMessage{Message: &streamv1.HookMessage_Fragment{
			Fragment: &streamv1.Fragment{Index: uint32(index), TotalBytes: uint64(total), Data: data[:n]},
		}})
		if err != nil {
			b.Fatal(err)
		}
		out = append(out, m)
		data = data[n:]
	}
	return out
}

// workersBombs returns the bombs of a hook that dialled in and may serve a worker, over the
// greatest allowed number of streams.
func workersBombs() []bomb {
	const streams = 64
	over := func(b *blast, reads bool, messages ...[]byte) {
		ctx, connection := b.worker(), b.dialTLS()
		b.atOnce(streams, func(int) error { return b.attached(ctx, connection, reads, messages...) },
			codes.InvalidArgument, codes.ResourceExhausted, codes.DeadlineExceeded, codes.Internal, codes.Unavailable)
	}
	triggers := func(b *blast, worker string, want ...codes.Code) {
		ctx, connection := b.worker(), b.dialTLS()
		request := append([]byte{1<<3 | 2}, lengthPrefixed([]byte(worker))...)
		request = append(request, emptyParents(1<<20)...)
		b.atOnce(60, func(int) error {
			return connection.Invoke(ctx, triggerMethod, &rawMessage{request}, &streamv1.TriggerResponse{})
		}, append(want, codes.ResourceExhausted)...)
	}
	// field 7 of a Welcome is subjects, field 1 the version
	empty := func(size int) []byte {
		return append([]byte{1<<3 | 2}, lengthPrefixed(append([]byte{1 << 3, 1}, repeated(7, size)...))...)
	}
	out := []bomb{
		{"worker: triggers", func(b *blast) { triggers(b, "bomber", codes.InvalidArgument) }},
		{"another's worker: triggers", func(b *blast) { triggers(b, "other", codes.PermissionDenied) }},
		{"worker: empty subjects", func(b *blast) { over(b, true, empty(1<<20)) }},
		{"worker: empty subjects in fragments", func(b *blast) {
			whole := empty(15 << 20)
			over(b, true, fragments(b, whole, len(whole))...)
		}},
		{"worker: messages that never end", func(b *blast) {
			over(b, true, fragments(b, []byte(strings.Repeat("x", 15<<20)), 16<<20)...)
		}},
	}
	for how, reads := range map[string]bool{"read": true, "not read": false} {
		out = append(out,
			bomb{"worker: unknown subjects, " + how, func(b *blast) { over(b, reads, unknownSubjects(b, 10_000)) }},
			bomb{"worker: unknown subjects in fragments, " + how, func(b *blast) {
				whole := unknownSubjects(b, 200_000)
				over(b, reads, fragments(b, whole, len(whole))...)
			}},
			bomb{"worker: invalid selectors, " + how, func(b *blast) {
				invalid := encoded(b, &streamv1.HookMessage{Message: &streamv1.HookMessage_Trigger{
					Trigger: &streamv1.Trigger{LabelSelector: invalidSelector()},
				}})
				over(b, reads, slices.Concat([][]byte{unknownSubjects(b, 0)}, slices.Repeat([][]byte{invalid}, 300))...)
			}})
	}
	return out
}
