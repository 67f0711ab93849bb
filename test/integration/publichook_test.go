package integration

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// recordingHook is a webhook that answers from fields of the parent's spec, and keeps the requests.
type recordingHook struct {
	url string

	mu    sync.Mutex // guards calls
	calls []hookCall
}

// hookCall is one request to the hook.
type hookCall struct {
	path    string
	headers []string // names, and the values that describe the body
	parent  unstructured.Unstructured
	body    map[string]any
}

// answerFields maps the last element of a request's path to the field of spec that holds the
// answer.
var answerFields = map[string]string{"sync": "answer", "finalize": "finally", "customize": "customized"}

func newRecordingHook(t *testing.T) *recordingHook {
	t.Helper()
	h := &recordingHook{}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	h.url = server.URL
	return h
}

// ServeHTTP records a request and answers it. A parent with spec.refuse gets status 500.
func (h *recordingHook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	call, err := readCall(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	h.calls = append(h.calls, call)
	h.mu.Unlock()
	if text, _, _ := unstructured.NestedString(call.parent.Object, "spec", "refuse"); text != "" {
		http.Error(w, text, http.StatusInternalServerError)
		return
	}
	answer, _, _ := unstructured.NestedFieldNoCopy(call.parent.Object, "spec", answerFields[path.Base(call.path)])
	if answer == nil {
		answer = map[string]any{}
	}
	_ = json.NewEncoder(w).Encode(answer) // a closed connection is not the test's fault
}

func readCall(r *http.Request) (hookCall, error) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return hookCall{}, err
	}
	var body map[string]any
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.UseNumber() // large integers keep their digits
	if err := decoder.Decode(&body); err != nil {
		return hookCall{}, err
	}
	call := hookCall{path: r.Method + " " + r.URL.Path, headers: headersOf(r.Header), body: body}
	for _, field := range []string{"parent", "object"} {
		if parent, ok := body[field].(map[string]any); ok {
			call.parent.Object = parent
			return call, nil
		}
	}
	return hookCall{}, fmt.Errorf("the request has neither parent nor object: %s", data)
}

// content returns the body of the request. A short one leaves out the declared controller and the
// parent's spec.
func (c hookCall) content(short bool) map[string]any {
	body := maps.Clone(c.body)
	if short {
		body["controller"] = "(as in the first request)"
		for _, field := range []string{"parent", "object"} {
			if parent, ok := body[field].(map[string]any); ok {
				parent = maps.Clone(parent)
				parent["spec"] = "(as applied)"
				body[field] = parent
			}
		}
	}
	return body
}

// headersOf returns the names of the headers. Those that describe the body keep their values.
func headersOf(header http.Header) []string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(header)) {
		if strings.HasPrefix(name, "Content-Type") || strings.HasPrefix(name, "Accept") {
			name += ": " + strings.Join(header[name], ", ")
		}
		lines = append(lines, name)
	}
	return lines
}

// mark returns the number of requests so far.
func (h *recordingHook) mark() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.calls)
}

// about returns the requests about a parent since a mark.
func (h *recordingHook) about(name string, since int) []hookCall {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(h.calls[since:]), func(c hookCall) bool { return c.parent.GetName() != name })
}
