package gateway

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"testing"

	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"github.com/hookloop/hookloop/internal/budget"
	"github.com/hookloop/hookloop/internal/heaptest"
	"github.com/hookloop/hookloop/internal/protocol/grpctest"
	"github.com/hookloop/hookloop/transports/codec"
	"github.com/hookloop/hookloop/transports/internal/stream"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
)

// served serves a gateway on loopback, and returns a client.
func (h *testGateway) served() streamv1.GatewayServiceClient {
	h.Helper()
	server := grpc.NewServer(grpc.ForceServerCodecV2(codec.Codec(stream.Limits())))
	h.Register(server)
	connection, err := grpc.NewClient("passthrough:"+grpctest.Serve(h.T, server),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { _ = connection.Close() })
	return streamv1.NewGatewayServiceClient(connection)
}

// namelessParents returns a request of about 110 KB that takes 5 MiB when it is decoded.
func namelessParents() *streamv1.TriggerRequest {
	return &streamv1.TriggerRequest{Worker: "hello", Trigger: &streamv1.Trigger{
		Parents: slices.Repeat([]*streamv1.ParentName{{}}, 57_000),
	}}
}

// TestRequestsWithoutTheRight are not decoded while the caller's right is checked.
func TestRequestsWithoutTheRight(t *testing.T) {
	h := newTestGateway(t)
	asked := make(chan struct{})
	h.guard.unanswered = func(string) bool {
		asked <- struct{}{}
		return true
	}
	client := h.served()
	request := namelessParents()
	ctx, cancel := context.WithCancel(t.Context())
	before := heaptest.Used()
	ended := make(chan error, maxPendingPerUser)
	for range cap(ended) {
		go func() {
			_, err := client.Trigger(ctx, request)
			ended <- err
		}()
	}
	for range cap(ended) {
		<-asked
	}
	if grown := heaptest.Used() - before; grown > 16<<20 {
		t.Errorf("%d requests take %d MiB while the API server is asked", cap(ended), grown>>20)
	}
	cancel()
	for range cap(ended) {
		if err := <-ended; status.Code(err) != codes.Canceled {
			t.Error(err)
		}
	}
	runtime.KeepAlive(request)
}

// TestRequestsWithTheRight have their memory in the budget.
func TestRequestsWithTheRight(t *testing.T) {
	h := newTestGateway(t)
	client := h.served()
	for memory, want := range map[*budget.Budget]struct {
		code codes.Code
		says string
	}{
		nil:                 {codes.InvalidArgument, "parents has 57000 names"},
		budget.New(1 << 30): {codes.InvalidArgument, "parents has 57000 names"},
		budget.New(8 << 20): {codes.ResourceExhausted, `memory budget "decoding"`},
		budget.New(1 << 10): {codes.ResourceExhausted, `memory budget "decoding"`},
	} {
		h.settings.Memory = memory
		_, err := client.Trigger(t.Context(), namelessParents())
		if status.Code(err) != want.code || !strings.Contains(err.Error(), want.says) {
			t.Errorf("with a budget of %d: %v, want %s: %s", memory.Limit(), err, want.code, want.says)
		}
		for _, u := range memory.Usage() {
			if u.Bytes != 0 {
				t.Errorf("with a budget of %d: %+v are in use after the call", memory.Limit(), u)
			}
		}
	}
}

// TestWorkerOf reads the name from an encoded request, as a decoder does.
func TestWorkerOf(t *testing.T) {
	name := func(text string) []byte {
		return protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), text)
	}
	trigger := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), name("no"))
	unknown := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 7)
	cases := map[string]struct {
		request    []byte
		want, says string
	}{
		"first":         {slices.Concat(name("hello"), trigger), "hello", ""},
		"last":          {slices.Concat(trigger, name("hello")), "hello", ""},
		"twice":         {slices.Concat(name("no"), name("hello")), "hello", ""},
		"unknown field": {slices.Concat(name("hello"), unknown), "hello", ""},
		"long":          {name(strings.Repeat("a", 1000)), strings.Repeat("a", maxName+1), ""},
		"none":          {trigger, "", "worker is empty"},
		"cut":           {slices.Concat(name("hello"), trigger[:2]), "", "the request is malformed"},
	}
	for title, c := range cases {
		got, err := workerOf(c.request)
		if got != c.want || (err == nil) != (c.says == "") || err != nil && (status.Code(err) != codes.InvalidArgument ||
			!strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: got %q, %v; want %q, %q", title, got, err, c.want, c.says)
		}
	}
}
