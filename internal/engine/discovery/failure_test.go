package discovery_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/engine/discovery"
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
				d := discovery.New(discovery.Settings{Client: client})
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
