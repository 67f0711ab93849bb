package pipeline_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	webs = object.Resource{
		GVK: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Web"}, Plural: "webs",
		Namespaced: true, HasStatus: true,
	}
	pages = object.Resource{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Page"}, Plural: "pages", Namespaced: true}
)

// api is an API server with Webs and Pages. Its views show each write immediately. It logs the
// writes, and the lines of its users.
type api struct {
	t *testing.T

	mu     sync.Mutex // guards the fields below
	stores map[object.Resource]*view.Store
	// unknown has the errors of resources with unknown objects.
	unknown map[object.Resource]error
	// refuses answers 403 to a write of an object with a name that begins so.
	refuses string
	// takes has the objects with this name be gone when a delete of them arrives.
	takes   string
	version int
	log     []string
}

func newAPI(t *testing.T, objects ...string) *api {
	t.Helper()
	a := &api{t: t, stores: map[object.Resource]*view.Store{}, unknown: map[object.Resource]error{}, version: 100}
	for _, r := range []object.Resource{webs, pages} {
		a.stores[r] = view.NewStore(r)
		a.stores[r].Replace(nil, "1")
	}
	for _, text := range objects {
		a.put(text)
	}
	return a
}

// put stores an object in JSON.
func (a *api) put(text string) {
	a.t.Helper()
	o, err := object.Decode([]byte(text))
	if err != nil {
		a.t.Fatal(err)
	}
	a.stores[a.resource(o.GVK().Kind)].Put(o)
}

func (a *api) resource(kindOrPlural string) object.Resource {
	for r := range a.stores {
		if r.GVK.Kind == kindOrPlural || r.Plural == kindOrPlural {
			return r
		}
	}
	a.t.Errorf("no resource %q", kindOrPlural)
	return object.Resource{}
}

// View implements view.Reader.
func (a *api) View(r object.Resource) (view.View, error) {
	if err := a.unknown[r]; err != nil {
		return view.View{}, err
	}
	return a.stores[r].View()
}

// get returns an object of the namespace shop, or nil.
func (a *api) get(r object.Resource, name string) *object.Object {
	v, err := a.stores[r].View()
	if err != nil {
		a.t.Error(err)
	}
	return v.Get("shop", name)
}

// Wrote counts nothing.
func (a *api) Wrote(string, string) {}

// note adds a line to the log.
func (a *api) note(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.log = append(a.log, fmt.Sprintf(format, args...))
}

// took returns the log and empties it. The writes of one stage are in no order.
func (a *api) took() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	log := a.log
	a.log = nil
	return log
}

// ServeHTTP takes requests for objects of the namespace shop.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(r.URL.Path, "/")
	at := slices.Index(parts, "shop")
	resource := a.resource(parts[at+1])
	name := ""
	sub := ""
	if len(parts) > at+2 {
		name = parts[at+2]
	}
	if len(parts) > at+3 {
		sub = "/" + parts[at+3]
	}
	var body any
	if r.Body != nil && r.Method != http.MethodGet {
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			a.t.Error(err)
		}
	}
	if m, ok := body.(map[string]any); ok && name == "" {
		name = m["metadata"].(map[string]any)["name"].(string)
	}
	if r.Method != http.MethodGet {
		a.note("%s %s/%s%s", strings.ToLower(r.Method), resource.Plural, name, sub)
	}
	w.Header().Set("Content-Type", "application/json")
	if r.Method != http.MethodGet && a.refuses != "" && strings.HasPrefix(name, a.refuses) {
		status(w, http.StatusForbidden, "Forbidden")
		return
	}
	answer := a.handle(resource, r.Method, name, body)
	if answer == nil {
		status(w, http.StatusNotFound, "NotFound")
		return
	}
	if _, err := w.Write(answer.Raw()); err != nil {
		a.t.Error(err)
	}
}

func status(w http.ResponseWriter, code int, reason string) {
	w.WriteHeader(code)
	_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, reason, code)
}

// handle carries out one request and returns the object, nil if it does not exist.
func (a *api) handle(r object.Resource, method, name string, body any) *object.Object {
	present := a.get(r, name)
	switch {
	case method == http.MethodPost:
		m := body.(map[string]any)
		m["metadata"].(map[string]any)["uid"] = "uid-" + name
		return a.store(r, m)
	case present == nil:
		return nil
	case method == http.MethodGet:
		return present
	case method == http.MethodPut:
		return a.store(r, body.(map[string]any))
	case method == http.MethodDelete:
		a.stores[r].Delete(present)
		if name == a.takes {
			return nil
		}
		return present
	}
	m, err := present.Map()
	if err != nil {
		a.t.Error(err)
	}
	if ops, ok := body.([]any); ok {
		m["status"] = ops[1].(map[string]any)["value"]
	} else {
		metadata := m["metadata"].(map[string]any)
		for field, value := range body.(map[string]any)["metadata"].(map[string]any) {
			metadata[field] = value
		}
	}
	return a.store(r, m)
}

// store gives an object its next version and stores it; it deletes one that was waiting for its
// last finalizer.
func (a *api) store(r object.Resource, m map[string]any) *object.Object {
	a.mu.Lock()
	a.version++
	m["metadata"].(map[string]any)["resourceVersion"] = fmt.Sprint(a.version)
	a.mu.Unlock()
	o, err := object.FromMap(m)
	if err != nil {
		a.t.Error(err)
	}
	if o.Deleting() && len(o.Finalizers()) == 0 {
		a.stores[r].Delete(o)
	} else {
		a.stores[r].Put(o)
	}
	return o
}

// serve starts the server and returns its URL.
func (a *api) serve() string {
	server := httptest.NewServer(a)
	a.t.Cleanup(server.Close)
	return server.URL
}
