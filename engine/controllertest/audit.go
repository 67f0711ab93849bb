package controllertest

import (
	"fmt"
	"net/http"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// Write is one writing request.
type Write struct {
	// Verb is create, update, patch, delete or deletecollection.
	Verb string
	// Resource is the resource with its group, such as "deployments.apps".
	Resource, Subresource string
	// Namespace and Name are the object's. On a real control plane the Name of a create is empty.
	Namespace, Name string
	// Code is the HTTP status.
	Code int
	// Changed reports whether the request changed the object. On a real control plane it reports
	// whether the request succeeded.
	Changed bool
	// By is "test", "controllers" or one of the API server's own controllers, such as
	// "generic-garbage-collector".
	By string
}

// String returns the write as one line: "create deployments.apps default/shop by controllers".
func (w Write) String() string {
	resource := w.Resource
	object := w.Name
	if w.Subresource != "" {
		resource += "/" + w.Subresource
	}
	if w.Namespace != "" {
		object = w.Namespace + "/" + object
	}
	text := fmt.Sprintf("%s %s %s by %s", w.Verb, resource, object, w.By)
	switch {
	case w.Code >= http.StatusBadRequest:
		text += fmt.Sprintf(": %d %s", w.Code, http.StatusText(w.Code))
	case !w.Changed:
		text += ": unchanged"
	}
	return text
}

// Audit returns the writes since its last call, or since New. Dry runs, Events and Leases are left
// out. On a real control plane it has those of the controllers only.
func (e *Env) Audit() []Write {
	e.t.Helper()
	if e.memory == nil {
		return e.writes.take()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	all, end := e.memory.Writes(e.seen)
	e.seen = end
	var out []Write
	for _, w := range all {
		if w.DryRun || unaudited[w.Resource] {
			continue
		}
		out = append(out, Write{
			Verb: w.Verb, Resource: join(w.Resource, w.Group), Subresource: w.Subresource,
			Namespace: w.Namespace, Name: w.Name, Code: w.Code, Changed: w.Changed(), By: by(w.UserAgent),
		})
	}
	return out
}

var unaudited = map[string]bool{"events": true, "leases": true}

func join(resource, group string) string {
	if group == "" {
		return resource
	}
	return resource + "." + group
}

func by(userAgent string) string {
	switch {
	case strings.HasPrefix(userAgent, controllerAgent):
		return "controllers"
	case userAgent == helperAgent, strings.Contains(userAgent, "/"), userAgent == "memapi":
		return "test"
	}
	return userAgent
}

// recorder records the writes of the controllers on a real control plane.
type recorder struct {
	mu     sync.Mutex // guards writes
	writes []Write
}

func (r *recorder) take() []Write {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.writes
	r.writes = nil
	return all
}

// roundTripper is a function that is an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

var infos = request.RequestInfoFactory{
	APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
}

func (r *recorder) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(q *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(q)
		if err != nil || q.Method == http.MethodGet {
			return response, err
		}
		info, broken := infos.NewRequestInfo(q)
		if broken == nil && info.IsResourceRequest && !unaudited[info.Resource] && q.URL.Query().Get("dryRun") == "" {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.writes = append(r.writes, Write{
				Verb: info.Verb, Resource: join(info.Resource, info.APIGroup), Subresource: info.Subresource,
				Namespace: info.Namespace, Name: info.Name, Code: response.StatusCode,
				Changed: response.StatusCode < http.StatusBadRequest, By: "controllers",
			})
		}
		return response, nil
	})
}
