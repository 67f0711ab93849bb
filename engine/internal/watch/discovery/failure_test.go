package discovery_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hookloop/hookloop/engine/internal/watch/discovery"
	"github.com/hookloop/hookloop/engine/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// documents are an API server's, in the form that every version serves.
var documents = map[string]string{
	"/api": `{"kind":"APIVersions","versions":["v1"]}`,
	"/api/v1": `{"kind":"APIResourceList","groupVersion":"v1","resources":[
		{"name":"nodes","kind":"Node","verbs":["list","watch"]}]}`,
	"/apis": `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"example.com",
		"versions":[{"groupVersion":"example.com/v1","version":"v1"}],
		"preferredVersion":{"groupVersion":"example.com/v1","version":"v1"}}]}`,
	"/apis/example.com/v1": `{"kind":"APIResourceList","groupVersion":"example.com/v1","resources":[
		{"name":"shops","kind":"Shop","namespaced":true,"verbs":["list","watch"]}]}`,
}

// TestFailedDocument fails each document in each way: the error is returned, and the last
// known resources stay.
func TestFailedDocument(t *testing.T) {
	known := map[string]object.Resource{"nodes": nodes, "shops": shops}
	for path := range documents {
		for name, code := range map[string]int{
			"404": http.StatusNotFound, "409": http.StatusConflict, "403": http.StatusForbidden,
			"429": http.StatusTooManyRequests,
			"500": http.StatusInternalServerError, "504": http.StatusGatewayTimeout,
		} {
			t.Run(strings.TrimPrefix(path, "/")+" "+name, func(t *testing.T) {
				var failing atomic.Bool
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if failing.Load() && r.URL.Path == path {
						w.WriteHeader(code)
						return
					}
					w.Header().Set("Content-Type", "application/json")
					_, _ = w.Write([]byte(documents[r.URL.Path])) // the client may have disconnected
				}))
				defer server.Close()
				client, err := clientdiscovery.NewDiscoveryClientForConfig(&rest.Config{Host: server.URL, QPS: -1})
				if err != nil {
					t.Fatal(err)
				}
				d := discovery.New(discovery.Config{Client: client})
				refresh(t, d)
				knows(t, d, known)
				failing.Store(true)
				if err := d.Refresh(t.Context()); err == nil {
					t.Error("Refresh hides the failure")
				}
				keeps(t, d, known)
				server.CloseClientConnections()
			})
		}
	}
}

// keeps checks that known resources stay known. Whether another one is served is known only if no
// document failed.
func keeps(t *testing.T, d *discovery.Discovery, known map[string]object.Resource) {
	t.Helper()
	for _, want := range known {
		got, err := d.Resource(want.GVK.GroupVersion().String(), want.Plural)
		if err != nil || got != want {
			t.Errorf("Resource(%s) = %v, %v, want %v", want.Plural, got, err, want)
		}
	}
}

// failedShop is the error if the document of shops cannot be read.
func failedShop(reason string) error {
	return &clientdiscovery.ErrGroupDiscoveryFailed{
		Groups: map[schema.GroupVersion]error{shops.GVK.GroupVersion(): errors.New(reason)},
	}
}

// TestFailureIsAChange signals that a group cannot be read, and that it can again, although the
// resources are the same: whether other resources of the group are served is unknown meanwhile.
func TestFailureIsAChange(t *testing.T) {
	for name, lists := range map[string][]*metav1.APIResourceList{
		"a group with resources":    {core, shop},
		"a group without resources": {core},
	} {
		t.Run(name, func(t *testing.T) {
			s := &served{}
			d := discovery.New(discovery.Config{Client: s})
			s.set(nil, lists...)
			refresh(t, d)
			for _, step := range []struct {
				name   string
				err    error
				lists  []*metav1.APIResourceList
				signal bool
			}{
				{"it fails", failedShop("down"), lists[:1], true},
				{"it fails with another error", failedShop("still down"), lists[:1], false},
				{"nothing can be read", errors.New("the API server is down"), nil, false},
				{"it heals", nil, lists, true},
				{"it is read again", nil, lists, false},
			} {
				before := d.Changed()
				s.set(step.err, step.lists...)
				if err := d.Refresh(t.Context()); (err != nil) != (step.err != nil) {
					t.Fatalf("%s: Refresh = %v", step.name, err)
				}
				if got := changed(before); got != step.signal {
					t.Errorf("%s: a change is signaled: %v, want %v", step.name, got, step.signal)
				}
			}
		})
	}
}

// TestMissingCoreHealsNothing reads a document without the API server's own resources, as a proxy's
// 404, after a group has failed: whether resources of the group are served stays unknown.
func TestMissingCoreHealsNothing(t *testing.T) {
	s := &served{}
	d := discovery.New(discovery.Config{Client: s})
	s.set(failedShop("down"), core)
	if err := d.Refresh(t.Context()); err == nil {
		t.Error("Refresh hides the failure")
	}
	s.set(nil)
	if err := d.Refresh(t.Context()); err == nil {
		t.Error("Refresh hides that the core resources are missing")
	}
	var missing *discovery.NotFoundError
	if _, err := d.Resource("example.com/v1", "shops"); err == nil || errors.As(err, &missing) {
		t.Errorf("Resource(shops) = %v, want that it is unknown", err)
	}
}
