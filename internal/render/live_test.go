package render_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/internal/memapi"
	"github.com/hookloop/hookloop/internal/render"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

const noteController = `apiVersion: metacontroller.k8s.io/v1alpha1
kind: CompositeController
metadata: {name: note}
spec:
  generateSelector: true
  parentResource: {apiVersion: example.com/v1, resource: notes}
  childResources: [{apiVersion: v1, resource: configmaps, updateStrategy: {method: InPlace}}]
  hooks: {sync: {version: v2, grpc: {target: "dns:///hooks.shop:9443", mode: Stream}}}
`

// liveCluster is an API server in memory in place of a cluster. It keeps the requests.
type liveCluster struct {
	*memapi.Server
	mu       sync.Mutex // guards requests
	requests []string
}

// RoundTrip implements http.RoundTripper.
func (c *liveCluster) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	c.requests = append(c.requests, r.Method+" "+r.URL.Path)
	c.mu.Unlock()
	return c.Server.RoundTrip(r)
}

// newLiveCluster has the Note milk with its ConfigMap, which has another text.
func newLiveCluster(t *testing.T) *liveCluster {
	t.Helper()
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Note"}
	server, err := memapi.New(memapi.Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{
		memapi.Definition(kind, "notes", true, true),
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	owner := map[string]any{
		"apiVersion": "example.com/v1", "kind": "Note", "name": "milk", "uid": "uid-milk", "controller": true,
	}
	for _, o := range []map[string]any{
		{
			"apiVersion": "example.com/v1", "kind": "Note", "spec": map[string]any{"text": "Buy milk"},
			"metadata": map[string]any{"name": "milk", "namespace": "default", "uid": "uid-milk"},
		},
		{
			"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"text": "Buy tea"},
			"metadata": map[string]any{
				"name": "milk", "namespace": "default", "labels": map[string]any{"controller-uid": "uid-milk"},
				"ownerReferences": []any{owner},
			},
		},
	} {
		if err := server.Restore(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	return &liveCluster{Server: server}
}

// live renders with the files on the cluster.
func (c *liveCluster) live(t *testing.T, files ...string) (*render.Result, error) {
	t.Helper()
	o := render.Options{
		Live: &rest.Config{Host: "http://cluster.invalid", Transport: c}, Rounds: 20, Timeout: 2 * time.Minute,
		UntilSettled: true, Command: []string{"env", asHook + "=grpc", os.Args[0]},
	}
	for i, text := range append([]string{noteController}, files...) {
		o.Files = append(o.Files, filepath.Join(t.TempDir(), "file.yaml"))
		if err := os.WriteFile(o.Files[i], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return render.Render(t.Context(), o)
}

func writesOf(r *render.Result) (writes []string) {
	for _, w := range r.Writes {
		writes = append(writes, w.Verb+" "+w.String())
	}
	return writes
}

// TestLive takes the objects from a cluster: it reads the resources of the controller, each once,
// and writes nothing. A file changes its object as a user would.
func TestLive(t *testing.T) {
	c := newLiveCluster(t)
	version := c.Version()
	result, err := c.live(t)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"update ConfigMap default/milk", "status Note default/milk"}
	if diff := cmp.Diff(want, writesOf(result)); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	slices.Sort(c.requests)
	if diff := cmp.Diff([]string{
		"GET /api/v1/configmaps", "GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions",
		"GET /apis/example.com/v1/notes",
	}, c.requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	const bread = "apiVersion: example.com/v1\nkind: Note\nmetadata: {name: milk}\nspec: {text: Buy bread}\n"
	if result, err = c.live(t, bread); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, writesOf(result)); diff != "" {
		t.Errorf("writes with a file (-want +got):\n%s", diff)
	}
	if got := result.Changes[0].After["data"]; cmp.Diff(map[string]any{"text": "Buy bread"}, got) != "" {
		t.Errorf("the ConfigMap has %v, want the text of the file", got)
	}
	if c.Version() != version {
		t.Error("the cluster has changed")
	}
}

// TestLiveErrors names the right that is missing, and a controller without a parent in the cluster.
func TestLiveErrors(t *testing.T) {
	for _, resource := range []string{"customresourcedefinitions", "notes", "configmaps"} {
		c := newLiveCluster(t)
		c.Fail(memapi.Fault{Verb: "list", Resource: resource, Times: -1, Group: map[string]string{
			"customresourcedefinitions": "apiextensions.k8s.io", "notes": "example.com",
		}[resource], Status: metav1.Status{
			Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: `User "ann" cannot list`,
		}})
		_, err := c.live(t)
		if err == nil || !strings.HasPrefix(err.Error(), "--live: no right to list "+resource) ||
			!strings.Contains(err.Error(), `User "ann" cannot list`) || strings.Contains(err.Error(), "\n") {
			t.Errorf("without the right on %s: error %v, want one line that names it", resource, err)
		}
	}
	c := newLiveCluster(t)
	c.removeNote(t)
	if _, err := c.live(t); err == nil || !strings.Contains(err.Error(), "has no parent in the files or in the cluster") {
		t.Errorf("without a parent: error %v", err)
	}
}

// removeNote deletes the Note.
func (c *liveCluster) removeNote(t *testing.T) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete,
		"http://cluster.invalid/apis/example.com/v1/namespaces/default/notes/milk", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.Server.RoundTrip(r)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", response, err)
	}
	_ = response.Body.Close() // in memory
}
