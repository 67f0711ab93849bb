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

// Request is what a webhook is asked.
type Request struct {
	Parent unstructured.Unstructured `json:"-"`
	// Children are the observed children by kind ("ConfigMap.v1") and name.
	Children map[string]map[string]any `json:"children"`
	// Related are the related objects in the same way.
	Related    map[string]map[string]any `json:"related"`
	Finalizing bool                      `json:"finalizing"`

	// Gone is closed when the caller has given up.
	Gone <-chan struct{} `json:"-"`
}

// Answer is an HTTP answer that is not the usual one. Any other value that a hook returns is sent
// as JSON with status 200.
type Answer struct {
	Code int
	Body string
	// Hangup closes the connection instead of an answer.
	Hangup bool
}

// Hook is a webhook that the test answers. It is safe for concurrent use.
type Hook struct {
	URL string

	t       testing.TB
	address string
	server  *http.Server

	mu     sync.Mutex // guards the fields below
	answer func(Request) any
	asked  map[string]int
}

// Hook serves answer as a webhook until the test ends.
func (k *Kit) Hook(answer func(Request) any) *Hook {
	k.Helper()
	h := &Hook{t: k.TB, address: "127.0.0.1:0", answer: answer, asked: map[string]int{}}
	h.Start()
	h.URL = "http://" + h.address + "/hook"
	k.Cleanup(h.Stop)
	return h
}

// Mirror is a hook's answer that the parent holds itself, in spec.answer; while it is being
// deleted, in spec.finally.
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

// Start listens, on the same address as before where it has been stopped.
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
	_ = h.server.Close() // what is cut off is meant to be
}

// Answer replaces the function that answers.
func (h *Hook) Answer(f func(Request) any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answer = f
}

// Asked counts the questions about a parent so far.
func (h *Hook) Asked(parent string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.asked[parent]
}

// ServeHTTP answers one question.
func (h *Hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	request, err := read(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	h.asked[request.Parent.GetName()]++
	answer := h.answer
	h.mu.Unlock()
	switch a := answer(request).(type) {
	case Answer:
		if a.Hangup {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(a.Code)
		_, _ = io.Copy(w, strings.NewReader(a.Body)) // a caller that has gone is its own affair
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
