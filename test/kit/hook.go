package kit

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Request is what the engine asks a webhook.
type Request struct {
	Parent unstructured.Unstructured `json:"-"`
	// Children are the observed children by kind ("ConfigMap.v1") and name.
	Children map[string]map[string]any `json:"children"`
	// Related are the related objects in the same way.
	Related    map[string]map[string]any `json:"related"`
	Finalizing bool                      `json:"finalizing"`
	// MapKey, Input and Outputs are set when a map controller asks. Input is nil when it asks a
	// tombstone hook.
	MapKey  string                    `json:"mapKey"`
	Input   map[string]any            `json:"input"`
	Outputs map[string]map[string]any `json:"outputs"`

	// Gone is closed when the caller has closed the connection.
	Gone <-chan struct{} `json:"-"`
}

// Answer is an HTTP response that a hook function returns to answer with another status than 200. Any
// other result is sent as JSON with status 200.
type Answer struct {
	Code int
	Body string
	// Hangup closes the connection without a response.
	Hangup bool
}

// Hook is a webhook that a function of the test answers. Make it with [Kit.Hook], and pass its URL to
// [Composite] or [Mapping]. It is safe for concurrent use.
type Hook struct {
	URL string

	t       testing.TB
	address string
	server  *http.Server

	mu     sync.Mutex // guards the fields below
	answer func(Request) any
	asked  map[string]int
}

// Hook serves a webhook that calls answer for each request, until the test ends.
func (k *Kit) Hook(answer func(Request) any) *Hook {
	k.Helper()
	h := &Hook{t: k.TB, address: "127.0.0.1:0", answer: answer, asked: map[string]int{}}
	h.Start()
	h.URL = "http://" + h.address + "/hook"
	k.Cleanup(h.Stop)
	return h
}

// Mirror answers with what the parent's spec says: spec.finally while the parent is being deleted,
// spec.answer otherwise. With it, a test controls the hook by editing the parent.
func Mirror(r Request) any {
	field := "answer"
	if r.Finalizing {
		field = "finally"
	}
	answer, _, _ := unstructured.NestedFieldNoCopy(r.Parent.Object, "spec", field)
	if answer == nil {
		answer = map[string]any{}
	}
	return answer
}

// Start makes the hook listen again after [Hook.Stop], at the same address.
func (h *Hook) Start() {
	h.t.Helper()
	listener, err := net.Listen("tcp", h.address)
	if err != nil {
		h.t.Fatal(err)
	}
	h.address = listener.Addr().String()
	h.server = &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	server := h.server
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			h.t.Errorf("hook: %v", err)
		}
	}()
}

// Stop closes the listener and all connections.
func (h *Hook) Stop() {
	_ = h.server.Close() // connections that are closed report errors
}

// Answer replaces the function that answers the next requests.
func (h *Hook) Answer(f func(Request) any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answer = f
}

// Asked returns how often the engine has asked about a parent or a map key with this name.
func (h *Hook) Asked(name string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.asked[name]
}

// ServeHTTP answers one request of the engine.
func (h *Hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	request, err := read(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	h.asked[request.Parent.GetName()]++
	if request.MapKey != "" {
		h.asked[request.MapKey]++
	}
	answer := h.answer
	h.mu.Unlock()
	switch a := answer(request).(type) {
	case Answer:
		if a.Hangup {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(a.Code)
		_, _ = io.Copy(w, strings.NewReader(a.Body)) // a closed connection is not the test's fault
	default:
		_ = json.NewEncoder(w).Encode(a) // as above
	}
}

func read(r *http.Request) (Request, error) {
	body := struct {
		Parent json.RawMessage `json:"parent"`
		Request
	}{}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return Request{}, err
	}
	request := body.Request
	request.Gone = r.Context().Done()
	return request, request.Parent.UnmarshalJSON(body.Parent)
}
