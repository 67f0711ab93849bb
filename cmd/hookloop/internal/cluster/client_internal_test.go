package cluster

import (
	"net/http"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/internal/memapi"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// clusterOf connects to an API server in memory.
func clusterOf(t *testing.T, server *memapi.Server) *cluster {
	t.Helper()
	return clusterAt(t, server.Config())
}

func clusterAt(t *testing.T, config *rest.Config) *cluster {
	t.Helper()
	metadata, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	served, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{metadata: metadata, objects: objects, discovery: served, namespace: "shop"}
}

// TestFindNothing: a resource that the cluster does not serve is reported as such, but not if a
// part of its API could not be read.
func TestFindNothing(t *testing.T) {
	server, err := memapi.New(memapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	c := clusterOf(t, server)
	want := `"websites.example.com": the cluster serves no such resource; ` +
		`expected one such as websites or websites.example.com`
	if _, err := c.find("websites.example.com"); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	config := server.Config()
	config.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
		return refusesGroup{next, "/apis/apps/v1"}
	}
	c = clusterAt(t, config)
	if _, err := c.find("websites.example.com"); err == nil || !strings.Contains(err.Error(), "that could be read") {
		t.Errorf("error %v, want one of resources that could be read", err)
	}
	if found, err := c.find("configmaps"); err != nil || found.Resource.Resource != "configmaps" {
		t.Errorf("found %v: %v", found, err)
	}
}

// refusesGroup answers requests for one group's resources with an error, as an API server does
// while an extension of it is down. It asks for one document for each group, because the document
// of all groups cannot fail in part.
type refusesGroup struct {
	next http.RoundTripper
	path string
}

func (r refusesGroup) RoundTrip(q *http.Request) (*http.Response, error) {
	if q.URL.Path == r.path {
		return &http.Response{
			StatusCode: http.StatusServiceUnavailable, Request: q, Header: http.Header{}, Body: http.NoBody,
		}, nil
	}
	q = q.Clone(q.Context())
	q.Header.Set("Accept", "application/json")
	return r.next.RoundTrip(q)
}
