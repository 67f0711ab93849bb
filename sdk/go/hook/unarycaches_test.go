package hook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"weak"

	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	mapv1 "github.com/hookloop/hookloop/gen/hookloop/map/v1"
	"github.com/hookloop/hookloop/internal/protocol/session"
	"go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/protobuf/proto"
)

// pages are n children with a text.
func pages(n int, text string) []Child {
	var children []Child
	for i := range n {
		body := fmt.Sprintf(`{"apiVersion":"v1","kind":"Page","metadata":{"name":"page-%d"},"text":%q}`, i, text)
		children = append(children, Child{Object: json.RawMessage(body)})
	}
	return children
}

// encodeAbout encodes the response to a call about a parent.
func encodeAbout(t *testing.T, caches *unaryCaches, parent string, children []Child) []*hookv1.DesiredObject {
	t.Helper()
	request := &compositev1.SyncRequest{
		Controller: &hookv1.ObservedObject{Uid: "c"}, Parent: &hookv1.ObservedObject{Uid: parent},
	}
	response, err := caches.call(t.Context(), "Sync", request, func(ctx context.Context) (any, error) {
		return callCacheOf(ctx).encode("Children", children)
	})
	if err != nil {
		t.Fatal(err)
	}
	return response.([]*hookv1.DesiredObject)
}

// TestUnaryResponsesAreEncodedOnce calls about two parents in turns.
func TestUnaryResponsesAreEncodedOnce(t *testing.T) {
	caches := newUnaryCaches(maxUnaryBytes)
	first := encodeAbout(t, caches, "a", pages(200, "a"))
	other := encodeAbout(t, caches, "b", pages(200, "b"))
	if again := encodeAbout(t, caches, "a", pages(200, "a")); &again[0] != &first[0] {
		t.Error("an equal response is encoded again")
	}
	changed := pages(200, "b")
	changed[7] = pages(8, "new")[7]
	now := encodeAbout(t, caches, "b", changed)
	if now[6] != other[6] || now[7] == other[7] || !strings.Contains(string(now[7].GetBody()), `"new"`) {
		t.Error("a changed child is not the only one that is encoded again")
	}
}

// TestUnaryCachesAreBounded calls about more parents than fit, and about small ones.
func TestUnaryCachesAreBounded(t *testing.T) {
	const limit = 1 << 20
	caches := newUnaryCaches(limit)
	text := strings.Repeat("x", 500)
	for n := range 40 {
		encodeAbout(t, caches, fmt.Sprint(n), pages(minDecoded, text))
		encodeAbout(t, caches, fmt.Sprint("small ", n), pages(minDecoded-1, text))
		held := len(caches.known)
		if caches.bytes > limit || caches.bytes < held*minDecoded*len(text) || held > n+1 || held != caches.recent.Len() {
			t.Fatalf("%d responses with %d bytes are kept, want at most %d bytes of large ones", held, caches.bytes, limit)
		}
	}
	if held := len(caches.known); held < 10 {
		t.Errorf("%d responses are kept, want as many as fit", held)
	}
	kept := caches.bytes
	encodeAbout(t, caches, "39", pages(3*limit/len(text), text))
	if caches.bytes >= kept {
		t.Errorf("%d bytes are kept after a response that is too large, want fewer than %d", caches.bytes, kept)
	}
}

// TestFailedCallsKeepTheResponse has a failed call between two equal responses.
func TestFailedCallsKeepTheResponse(t *testing.T) {
	caches := newUnaryCaches(maxUnaryBytes)
	first := encodeAbout(t, caches, "a", pages(200, "a"))
	request := &compositev1.SyncRequest{
		Controller: &hookv1.ObservedObject{Uid: "c"}, Parent: &hookv1.ObservedObject{Uid: "a"},
	}
	fault := errors.New("no")
	_, err := caches.call(t.Context(), "Sync", request, func(ctx context.Context) (any, error) {
		if _, err := callCacheOf(ctx).encode("Children", pages(200, "b")); err != nil {
			return nil, err
		}
		return nil, fault
	})
	if !errors.Is(err, fault) {
		t.Errorf("the error is %v, want %v", err, fault)
	}
	if again := encodeAbout(t, caches, "a", pages(200, "a")); &again[0] != &first[0] {
		t.Error("an equal response is encoded again after a failed call")
	}
}

// TestACacheHoldsOneResponse answers two calls about a parent with other children: the first
// response is garbage, because the cache counts one only.
func TestACacheHoldsOneResponse(t *testing.T) {
	caches := newUnaryCaches(maxUnaryBytes)
	x := &exchange{streams: &streams{tracer: noop.NewTracerProvider().Tracer("")}}
	work := &session.Work{Method: "Sync"}
	for name, encode := range map[string]func(text string) []*hookv1.DesiredObject{
		"unary": func(text string) []*hookv1.DesiredObject { return encodeAbout(t, caches, "a", pages(200, text)) },
		"stream": func(text string) []*hookv1.DesiredObject {
			var response compositev1.SyncResponse
			x.methods = methods{"Sync": func(ctx context.Context, _ proto.Message) (_ proto.Message, err error) {
				response.Children, err = callCacheOf(ctx).encode("Children", pages(200, text))
				return &response, err
			}}
			if _, err := x.call(t.Context(), work); err != nil {
				t.Fatal(err)
			}
			return response.Children
		},
	} {
		first := weak.Make(encode("a")[0])
		second := weak.Make(encode("b")[0])
		runtime.GC()
		if first.Value() != nil || second.Value() == nil {
			t.Errorf("%s: the first response is kept: %v, the second: %v; want the second only", name,
				first.Value() != nil, second.Value() != nil)
		}
	}
	runtime.KeepAlive(caches)
	runtime.KeepAlive(work)
}

// TestSubjectsOfUnaryCalls are different for the inputs of a parent, and absent without a parent.
func TestSubjectsOfUnaryCalls(t *testing.T) {
	parent := &hookv1.ObservedObject{Uid: "p"}
	a, _ := about("Map", &mapv1.MapRequest{Parent: parent, Input: &hookv1.ObservedObject{Uid: "1"}})
	b, ok := about("Map", &mapv1.MapRequest{Parent: parent, Input: &hookv1.ObservedObject{Uid: "2"}})
	if a == b || !ok {
		t.Errorf("two inputs have the subjects %v and %v", a, b)
	}
	if _, ok := about("Sync", &compositev1.SyncRequest{}); ok {
		t.Error("a request without a parent has a subject")
	}
}
