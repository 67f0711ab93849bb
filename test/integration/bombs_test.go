package integration

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"github.com/hookloop/hookloop/internal/protocol/grpctest"
	"github.com/hookloop/hookloop/test/confine"
	"github.com/hookloop/hookloop/test/kit"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcgzip "google.golang.org/grpc/encoding/gzip" // hooks may answer with it
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// Bombs are compressed fast; their compression is not tested.
var _ = grpcgzip.SetLevel(gzip.BestSpeed)

// memoryLimit is the real memory limit of the engine.
const memoryLimit = 256 << 20

// bomb is an input of at most some MiB that takes many times as much memory after decoding.
type bomb struct {
	name string
	// set sends the bomb, and returns when the engine has rejected it.
	set func(b *blast)
}

// blast is the environment of the bombs: an engine with a gateway under a real memory limit, and a
// bystander with parents that must be served all the time.
type blast struct {
	*testing.T
	*entrance
	bystander *kit.Kit
	mirror    string
	rounds    int
}

// bombs returns all bombs. Each makes its content when it is sent, because all contents together
// take hundreds of MiB.
func bombs() []bomb {
	return slices.Concat(webhookBombs(), grpcBombs(), strangersBombs(), workersBombs())
}

// TestBombs sends each bomb with five syncs at a time, and checks the bystander after each. The
// engine must neither die nor restart.
func TestBombs(t *testing.T) {
	k := start(t)
	limit, err := confine.New(memoryLimit)
	if err != nil {
		t.Logf("the limit is watched, not enforced: %v", err)
	} else {
		t.Cleanup(func() {
			if err := limit.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	b := &blast{entrance: openEntranceWithin(k, limit), bystander: kit.New(t), mirror: mirror(t)}
	run(t, b.bystander, kit.Composite{Sync: b.mirror, Labels: b.labels})
	b.bystander.Apply(parent("web", page("page", "text: none")))
	var table strings.Builder
	rows := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	for _, bomb := range bombs() {
		t.Run(bomb.name, func(t *testing.T) {
			b.T = t
			if err := confine.Reset(b.engine.PID()); err != nil {
				t.Fatal(err)
			}
			bomb.set(b)
			b.serves()
			peak, err := confine.Peak(b.engine.PID())
			if err != nil || peak > memoryLimit {
				t.Errorf("the peak is %d MiB, %v, want at most %d", peak>>20, err, memoryLimit>>20)
			}
			_, _ = fmt.Fprintf(rows, "%s\t%d MiB\n", bomb.name, peak>>20) // a strings.Builder never fails
		})
	}
	_ = rows.Flush() // a strings.Builder never fails
	t.Logf("peak RSS of the engine under a limit of %d MiB:\n%s", memoryLimit>>20, &table)
}

// serves checks that the engine runs, and that the bystander's parent is served.
func (b *blast) serves() {
	b.Helper()
	select {
	case <-b.engine.Done():
		b.Fatalf("the engine is dead: %v", b.engine.Err())
	default:
	}
	b.rounds++
	text := fmt.Sprintf("round-%d", b.rounds)
	b.bystander.Patch("Web", "web", "spec: {answer: {children: ["+page("page", "text: "+text)+"]}}")
	await(b.bystander, "v1/ConfigMap", "page", "data.text", text)
}

// refused runs a controller with five parents, and waits until all of them report why their answer
// is rejected.
func (b *blast) refused(c kit.Composite, reasons ...string) {
	b.Helper()
	k := kit.New(b.T)
	c.Labels = b.labels
	k.CRD("Web", "Namespaced")
	c.Parent = "webs"
	c.Children = []string{"v1/configmaps InPlace"}
	c.Timeout = "60s" // a bomb is much work for the hook, which shares the machine
	for i := range 5 {
		k.Apply(parent(fmt.Sprintf("web-%d", i)))
	}
	k.Declare(c)
	for i := range 5 {
		name := fmt.Sprintf("web-%d", i)
		k.EventuallyWithin(3*time.Minute, name+" is refused", func() error {
			select {
			case <-b.engine.Done():
				b.Fatalf("the engine is dead: %v", b.engine.Err())
			default:
			}
			condition := kit.Condition(k.Get("Web", name), "Synced")
			for _, reason := range reasons {
				if condition["status"] == "False" && condition["reason"] == reason {
					return nil
				}
			}
			return fmt.Errorf("its condition is %v", condition)
		})
	}
}

// tooMuch holds the reasons for rejecting a bomb: its own content, or the memory that other answers
// need.
var tooMuch = []string{"InvalidHookAnswer", "MemoryBudget"}

// webhookBombs returns answers of 16 MiB that are some KiB of gzip.
func webhookBombs() []bomb {
	const size = 16<<20 - 100
	fill := func(before, item, after string) func() string {
		n := (size - len(before) - len(after) - len(item)) / (len(item) + 1)
		return func() string { return before + strings.Repeat(item+",", n) + item + after }
	}
	var out []bomb
	for name, body := range map[string]func() string{
		"conditions":   fill(`{"conditions":[`, `{}`, `]}`),
		"events":       fill(`{"events":[`, `{}`, `]}`),
		"results":      fill(`{"results":[`, `{}`, `]}`),
		"requirements": fill(`{"requirements":[`, `{}`, `]}`),
		"childStates":  fill(`{"childStates":[`, `{}`, `]}`),
		"dependsOn":    fill(`{"childStates":[{"dependsOn":[`, `{}`, `]}]}`),
		"children":     fill(`{"children":[`, `{}`, `]}`),
		"a child's fields": fill(
			`{"children":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":[`, `{}`, `]}]}`),
		"a status's fields":   fill(`{"status":{"a":[`, `{}`, `]}}`),
		"an unknown field":    fill(`{"unknown":[`, `[]`, `]}`),
		"one unknown name":    func() string { return `{"` + strings.Repeat("x", size) + `":1}` },
		"the same field":      fill(`{"status":{},`, `"finalized":true`, `}`),
		"a string of escapes": func() string { return `{"status":{"a":"` + strings.Repeat(`\u0000`, size/6) + `"}}` },
	} {
		out = append(out, bomb{"webhook: " + name, func(b *blast) {
			b.refused(kit.Composite{Sync: gzippedHook(b.T, body()), Version: "v2"}, tooMuch...)
		}})
	}
	return out
}

// gzippedHook serves a body as a webhook until the test ends.
func gzippedHook(t *testing.T, body string) string {
	var zipped strings.Builder
	z, err := gzip.NewWriterLevel(&zipped, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(z, body); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = io.WriteString(w, zipped.String()) // the engine may hang up
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// repeated returns a serialized message with many empty items in a repeated field.
func repeated(field int, size int) []byte {
	item := []byte{byte(field<<3 | 2), 0}
	if field > 15 {
		panic("the field's number takes two bytes")
	}
	return []byte(strings.Repeat(string(item), size/len(item)))
}

// rawMessage is a serialized message.
type rawMessage struct{ data []byte }

// rawCodec sends raw messages unchanged.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) ([]byte, error) {
	if r, is := v.(*rawMessage); is {
		return r.data, nil
	}
	return proto.Marshal(v.(proto.Message))
}

func (rawCodec) Unmarshal(data []byte, v any) error { return proto.Unmarshal(data, v.(proto.Message)) }

// serveRaw serves a hook that answers every call except health checks with the same bytes.
func serveRaw(t *testing.T, answer []byte) string {
	t.Helper()
	handle := func(_ any, s grpc.ServerStream) error {
		if method, _ := grpc.MethodFromServerStream(s); strings.Contains(method, "Health") {
			return status.Error(codes.Unimplemented, "it has no health service")
		}
		return s.SendMsg(&rawMessage{answer})
	}
	server := grpc.NewServer(grpc.ForceServerCodec(rawCodec{}), grpc.UnknownServiceHandler(handle),
		grpc.MaxSendMsgSize(64<<20))
	return grpctest.Serve(t, server)
}

// grpcBombs returns responses of 15 MiB: of unary calls, and of streams.
func grpcBombs() []bomb {
	const size = 15 << 20
	responses := map[string]func() []byte{"children": func() []byte { return repeated(2, size) }}
	for name, field := range map[string]int{"conditions": 2, "events": 3, "results": 4, "requirements": 5} {
		responses[name] = func() []byte {
			return append([]byte{3<<3 | 2}, lengthPrefixed(repeated(field, size))...) // details
		}
	}
	var out []bomb
	for name, response := range responses {
		out = append(out, bomb{"gRPC: " + name, func(b *blast) {
			address := serveRaw(b.T, response())
			b.refused(kit.Composite{Sync: "grpc:" + address}, tooMuch...)
		}}, bomb{"stream: " + name, func(b *blast) {
			h := serveFaulty(b.T)
			envelope := response()
			h.everyone = true
			h.turn(answering(func(a *streamv1.Answer) []*streamv1.HookMessage {
				a.GetDesired().Envelope = envelope
				return saying(a)
			}))
			b.refused(kit.Composite{Sync: "stream:" + h.address}, tooMuch...)
		}})
	}
	out = append(out, bomb{"gRPC: depends_on", func(b *blast) {
		child := append([]byte{2<<3 | 2}, lengthPrefixed(repeated(4, size))...)
		address := serveRaw(b.T, child)
		b.refused(kit.Composite{Sync: "grpc:" + address}, tooMuch...)
	}}, bomb{"stream: subjects", func(b *blast) {
		welcome := append([]byte{1<<3 | 2}, lengthPrefixed(append([]byte{8, 1}, repeated(7, size)...))...)
		address := serveRaw(b.T, welcome)
		b.refused(kit.Composite{Sync: "stream:" + address}, append(tooMuch, "HookUnreachable")...)
	}}, bomb{"stream: pieces", func(b *blast) {
		h := serveFaulty(b.T)
		h.everyone = true
		pieces := slices.Repeat([]*streamv1.Piece{{}}, 2<<20) // 4 MiB, and 128 MiB and more after decoding
		h.turn(answering(func(a *streamv1.Answer) []*streamv1.HookMessage {
			a.GetDesired().Pieces = pieces
			return saying(a)
		}))
		b.refused(kit.Composite{Sync: "stream:" + h.address}, tooMuch...)
	}}, bomb{"gRPC: gzip", func(b *blast) {
		response := &compositev1.SyncResponse{Status: []byte(`{"a":"` + strings.Repeat("x", 32<<20) + `"}`)}
		address := serveCompressed(b.T, response)
		b.refused(kit.Composite{Sync: "grpc:" + address}, append(tooMuch, "HookFailed")...)
	}})
	return out
}

func lengthPrefixed(data []byte) []byte {
	var out []byte
	for n := len(data); ; n >>= 7 {
		if n < 0x80 {
			return append(append(out, byte(n)), data...)
		}
		out = append(out, byte(n)|0x80)
	}
}

// compressing answers with gzip, even if the caller does not accept it.
type compressing struct {
	compositev1.UnimplementedCompositeHookServiceServer
	response *compositev1.SyncResponse
}

func (c compressing) Sync(
	ctx context.Context,
	_ *compositev1.SyncRequest,
) (*compositev1.SyncResponse, error) {
	return c.response, grpc.SetSendCompressor(ctx, "gzip")
}

func serveCompressed(t *testing.T, response *compositev1.SyncResponse) string {
	t.Helper()
	server := grpc.NewServer(grpc.MaxSendMsgSize(128 << 20))
	compositev1.RegisterCompositeHookServiceServer(server, compressing{response: response})
	return grpctest.Serve(t, server)
}
