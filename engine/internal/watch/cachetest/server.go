// Package cachetest is a small API server with list and watch, for tests of the cache and of its
// users. Its methods cause what a real API server cannot be made to do, such as losing a watch at a
// chosen moment or forbidding a resource.
//
// It validates nothing and knows no kinds. A Server is safe for concurrent use.
package cachetest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/client-go/rest"
)

// Server serves the objects that a test puts in.
type Server struct {
	t    testing.TB
	http *httptest.Server

	mu       sync.Mutex // guards the fields below
	version  int
	oldest   int                          // watches cannot continue from before
	objects  map[string]map[string]stored // by URL path of the collection, then namespace/name
	watchers map[*watcher]struct{}
	refused  map[string]int
	held     map[string]chan struct{} // closed when the events of a path are delivered again
	opened   map[string]int
	closed   bool
	// listsOnly refuses watches that begin with the present objects.
	listsOnly bool
}

type stored struct {
	raw     json.RawMessage
	version int
}

// shortWatch is the longest timeout in seconds with which a watch gets a bookmark at its beginning.
// A real API server sends one 2 seconds before a watch times out.
const shortWatch = 5

// watcher is one open watch.
type watcher struct {
	path string
	// events are frames; nil ends the watch.
	events chan []byte
}

// New starts a Server, which the test's end closes.
func New(t testing.TB) *Server {
	s := &Server{
		t: t, version: 100, objects: map[string]map[string]stored{}, watchers: map[*watcher]struct{}{},
		refused: map[string]int{}, opened: map[string]int{}, held: map[string]chan struct{}{},
	}
	s.http = httptest.NewServer(s)
	t.Cleanup(func() {
		s.mu.Lock()
		s.closed = true
		s.mu.Unlock()
		s.Drop()
		s.http.Close()
	})
	return s
}

// Config reaches the server.
func (s *Server) Config() *rest.Config { return &rest.Config{Host: s.http.URL, QPS: -1} }

// path is the URL path of a resource's collection over all namespaces.
func path(r object.Resource) string {
	if r.GVK.Group == "" {
		return "/api/" + r.GVK.Version + "/" + r.Plural
	}
	return "/apis/" + r.GVK.Group + "/" + r.GVK.Version + "/" + r.Plural
}

// Put creates or replaces an object. body is its JSON; the server sets the resourceVersion, and
// returns it.
func (s *Server) Put(r object.Resource, body string) string {
	s.t.Helper()
	m, err := object.DecodeMap([]byte(body))
	if err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	metadata, _ := m["metadata"].(map[string]any)
	metadata["resourceVersion"] = fmt.Sprint(s.version)
	raw, err := json.Marshal(m)
	if err != nil {
		s.t.Fatal(err)
	}
	namespace, _ := metadata["namespace"].(string)
	key := fmt.Sprint(namespace, "/", metadata["name"])
	collection := s.collection(path(r))
	kind := "ADDED"
	if _, there := collection[key]; there {
		kind = "MODIFIED"
	}
	collection[key] = stored{raw, s.version}
	s.send(path(r), kind, raw)
	return fmt.Sprint(s.version)
}

// Delete removes an object.
func (s *Server) Delete(r object.Resource, namespace, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	key := fmt.Sprint(namespace, "/", name)
	was := s.collection(path(r))[key]
	delete(s.collection(path(r)), key)
	s.send(path(r), "DELETED", was.raw)
}

// Bookmark sends the watchers of a resource a bookmark with a later version, and returns the
// version.
func (s *Server) Bookmark(r object.Resource) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version += 10
	s.send(path(r), "BOOKMARK", s.bookmark(""))
	return fmt.Sprint(s.version)
}

// Fail sends every watcher of a resource an error event, which ends its watch, and refuses requests
// with the code from then on.
func (s *Server) Fail(r object.Resource, code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused[path(r)] = code
	s.send(path(r), "ERROR", status(code))
}

// Garble sends every watcher of a resource an event that cannot be decoded.
func (s *Server) Garble(r object.Resource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.send(path(r), "MODIFIED", json.RawMessage(`[]`))
}

// Refuse answers every request for a resource with a status code; 0 ends that.
func (s *Server) Refuse(r object.Resource, code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused[path(r)] = code
}

// ListsOnly makes the server one without the feature gate WatchList, such as Kubernetes 1.31.
func (s *Server) ListsOnly() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listsOnly = true
}

// Hold holds back the events of a resource in all watches, until release is called.
func (s *Server) Hold(r object.Resource) (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	free := make(chan struct{})
	s.held[path(r)] = free
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.held, path(r))
		close(free)
	}
}

// pass waits until the events of a watch are not held back.
func (s *Server) pass(ctx context.Context, at string) {
	s.mu.Lock()
	free := s.held[at]
	s.mu.Unlock()
	if free == nil {
		return
	}
	select {
	case <-free:
	case <-ctx.Done():
	}
}

// Drop ends all watches, as a server that restarts does.
func (s *Server) Drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.watchers {
		close(w.events)
		delete(s.watchers, w)
	}
}

// Forget drops the history: a watch from an earlier version gets "410 Gone" and must list again.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.oldest = s.version
}

// Watches counts the open watches of a resource, and all that were ever opened.
func (s *Server) Watches(r object.Resource) (open, ever int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.watchers {
		if w.path == path(r) {
			open++
		}
	}
	return open, s.opened[path(r)]
}

func (s *Server) collection(at string) map[string]stored {
	if s.objects[at] == nil {
		s.objects[at] = map[string]stored{}
	}
	return s.objects[at]
}

func (s *Server) bookmark(annotations string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(
		`{"apiVersion":"v1","kind":"Bookmark","metadata":{"resourceVersion":"%d"%s}}`, s.version, annotations))
}

func frame(kind string, raw json.RawMessage) []byte {
	return []byte(fmt.Sprintf(`{"type":%q,"object":%s}`+"\n", kind, raw))
}

func (s *Server) send(at, kind string, raw json.RawMessage) {
	for w := range s.watchers {
		if w.path == at {
			w.events <- frame(kind, raw)
		}
	}
}

// ServeHTTP answers a list or a watch.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	s.mu.Lock()
	code := s.refused[r.URL.Path]
	s.mu.Unlock()
	if code != 0 {
		s.fail(w, code)
		return
	}
	if r.URL.Query().Get("watch") == "" {
		s.write(w, s.list(r.URL.Path))
		return
	}
	s.watch(w, r)
}

func (s *Server) fail(w http.ResponseWriter, code int) {
	w.WriteHeader(code)
	s.write(w, status(code))
}

// status is an API server's answer with an error code.
func status(code int) json.RawMessage {
	reason := map[int]string{http.StatusForbidden: "Forbidden", http.StatusNotFound: "NotFound",
		http.StatusGone: "Expired", http.StatusUnprocessableEntity: "Invalid"}[code]
	return json.RawMessage(
		fmt.Sprintf(
			`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"message":"the answer is %d","code":%d}`,
			reason,
			code,
			code,
		),
	)
}

func (s *Server) write(w http.ResponseWriter, data []byte) {
	_, _ = w.Write(data) // the client may have disconnected
}

func (s *Server) list(at string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	var items []string
	for _, o := range s.collection(at) {
		items = append(items, string(o.raw))
	}
	return []byte(
		fmt.Sprintf(
			`{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"%d"},"items":[%s]}`,
			s.version,
			strings.Join(items, ","),
		),
	)
}

// open makes a watch that begins with the present objects, or with what came after a version; nil
// and a status code where that cannot be.
func (s *Server) open(r *http.Request) (*watcher, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	query := r.URL.Query()
	since, _ := strconv.Atoi(query.Get("resourceVersion"))
	initial := query.Get("sendInitialEvents") == "true"
	switch {
	case s.closed:
		return nil, http.StatusServiceUnavailable
	case initial && s.listsOnly:
		return nil, http.StatusUnprocessableEntity
	case !initial && since < s.oldest:
		return nil, http.StatusGone
	}
	w := &watcher{path: r.URL.Path, events: make(chan []byte, 10_000)}
	s.opened[w.path]++
	s.watchers[w] = struct{}{}
	for _, o := range s.collection(w.path) {
		if initial || o.version > since {
			w.events <- frame("ADDED", o.raw)
		}
	}
	if timeout, err := strconv.Atoi(query.Get("timeoutSeconds")); err == nil && timeout <= shortWatch {
		w.events <- frame("BOOKMARK", s.bookmark(""))
	}
	if initial {
		w.events <- frame("BOOKMARK", s.bookmark(`,"annotations":{"k8s.io/initial-events-end":"true"}`))
	}
	return w, 0
}

// watch sends the present objects if the request asks for them, and then events until the watch is
// dropped.
func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	own, code := s.open(r)
	if own == nil {
		s.fail(w, code)
		return
	}
	defer func() {
		s.mu.Lock()
		delete(s.watchers, own)
		s.mu.Unlock()
	}()
	flusher, _ := w.(http.Flusher)
	flusher.Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case event, ok := <-own.events:
			if !ok {
				return
			}
			s.pass(r.Context(), own.path)
			s.write(w, event)
			flusher.Flush()
		}
	}
}
