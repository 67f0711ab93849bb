package render_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/render"
	"github.com/hookloop/hookloop/internal/memapi"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
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
	// forbidden are the paths that are refused.
	forbidden []string

	mu       sync.Mutex // guards requests
	requests []string
}

// RoundTrip implements http.RoundTripper.
func (c *liveCluster) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	c.requests = append(c.requests, r.Method+" "+r.URL.Path)
	c.mu.Unlock()
	if !slices.Contains(c.forbidden, r.URL.Path) {
		return c.Server.RoundTrip(r)
	}
	refusal := httptest.NewRecorder()
	refusal.Header().Set("Content-Type", "application/json")
	refusal.WriteHeader(http.StatusForbidden)
	_, _ = refusal.WriteString(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,
		"message":"User \"ann\" cannot list"}`)
	return refusal.Result(), nil
}

// The paths of lists.
const (
	crdPath      = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	allMaps      = "/api/v1/configmaps"
	someMaps     = "/api/v1/namespaces/default/configmaps"
	allNotes     = "/apis/example.com/v1/notes"
	someNotes    = "/apis/example.com/v1/namespaces/default/notes"
	listMapsIn   = "--live: no right to list configmaps in "
	onlyInOne    = "--live: no right to list %s in all namespaces: related objects are those of default alone"
	expectedFile = "; expected that right, or the files (-f) with the CRDs of notes.example.com"
)

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

// live renders with the files on the cluster; a controller is added if they have none.
func (c *liveCluster) live(t *testing.T, files ...string) (*render.Result, error) {
	t.Helper()
	o := render.Options{
		Live: &rest.Config{Host: "http://cluster.invalid", Transport: c}, Rounds: 20, Timeout: 2 * time.Minute,
		UntilSettled: true, Command: []string{"env", asHook + "=grpc", os.Args[0]},
	}
	if !slices.ContainsFunc(files, func(text string) bool { return strings.Contains(text, "kind: CompositeController") }) {
		files = append(files, noteController)
	}
	for i, text := range files {
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
	result, err = c.live(t, bread)
	if err != nil {
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
	confined := strings.Replace(noteController, "version: v2", "version: v1", 1)
	for _, test := range []struct {
		name      string
		forbidden []string
		files     []string
		want      []string
	}{
		{"CRDs", []string{crdPath}, nil, []string{"--live: no right to list customresourcedefinitions", expectedFile}},
		{"parents", []string{allNotes}, nil, []string{"--live: no right to list notes.example.com in all namespaces: ",
			"the parents in the files (-f): then their namespaces are enough"}},
		{"children", []string{allMaps}, nil, []string{listMapsIn + "all namespaces: ", "; expected that right"}},
		{"children in the parent's namespace", []string{someMaps}, []string{confined, bread},
			[]string{listMapsIn + "namespace default: "}},
		{"children everywhere", []string{allMaps, someMaps}, []string{bread}, []string{listMapsIn + "namespace default: "}},
	} {
		c := newLiveCluster(t)
		c.forbidden = test.forbidden
		_, err := c.live(t, test.files...)
		for _, want := range append(test.want, `User "ann" cannot list`) {
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("without the right on %s: error %v, want one line with %q", test.name, err, want)
			}
		}
	}
	c := newLiveCluster(t)
	c.removeNote(t)
	if _, err := c.live(t); err == nil || !strings.Contains(err.Error(), "has no parent in the files or in the cluster") {
		t.Errorf("without a parent: error %v", err)
	}
}

const bread = "apiVersion: example.com/v1\nkind: Note\nmetadata: {name: milk}\nspec: {text: Buy bread}\n"

// noteCRD is the definition of the Note.
const noteCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: notes.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Note, listKind: NoteList, plural: notes, singular: note}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// TestLiveInNamespaces reads the namespaces of namespaced parents in the files alone. If the hook
// may ask for objects of other namespaces, they are enough without the right to list all.
func TestLiveInNamespaces(t *testing.T) {
	confined := strings.Replace(noteController, "version: v2", "version: v1", 1)
	for name, test := range map[string]struct {
		forbidden, files, requests, notes []string
	}{
		"a hook that sees its own namespace": {
			files: []string{confined, bread}, requests: []string{someMaps, crdPath, someNotes},
		},
		"a hook that may see others": {
			files: []string{bread}, requests: []string{allMaps, crdPath, allNotes},
		},
		"a hook that may see others, without the right": {
			files: []string{bread}, forbidden: []string{allMaps, allNotes},
			requests: []string{allMaps, someMaps, crdPath, someNotes, allNotes},
			notes:    []string{fmt.Sprintf(onlyInOne, "configmaps"), fmt.Sprintf(onlyInOne, "notes.example.com")},
		},
		"without rights in the cluster": {
			files: []string{confined, bread, noteCRD}, forbidden: []string{crdPath, allMaps, allNotes},
			requests: []string{someMaps, crdPath, someNotes},
			notes: []string{"--live: no right to list customresourcedefinitions.apiextensions.k8s.io: related objects " +
				"have the kinds of Kubernetes and of the files alone"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newLiveCluster(t)
			c.forbidden = test.forbidden
			result, err := c.live(t, test.files...)
			if err != nil {
				t.Fatal(err)
			}
			for i, request := range c.requests {
				c.requests[i] = strings.TrimPrefix(request, "GET ")
			}
			slices.Sort(c.requests)
			if diff := cmp.Diff(test.requests, c.requests); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.notes, result.Notes); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
			want := []string{"update ConfigMap default/milk", "status Note default/milk"}
			if diff := cmp.Diff(want, writesOf(result)); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
		})
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
