package discovery_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/internal/watch/cachetest"
	"github.com/hookloop/hookloop/engine/internal/watch/discovery"
	"github.com/hookloop/hookloop/engine/object"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/utils/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// served is the list of resources of an API server. It has only the method that is used.
type served struct {
	clientdiscovery.ServerResourcesInterface

	mu    sync.Mutex // guards the fields below
	lists []*metav1.APIResourceList
	err   error
}

func (s *served) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return nil, s.lists, s.err
}

func (s *served) set(err error, lists ...*metav1.APIResourceList) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists = lists
	s.err = err
}

var (
	core = &metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{
		{Name: "pods", Kind: "Pod", Namespaced: true, Verbs: metav1.Verbs{"get", "list", "watch"}},
		{Name: "pods/status", Kind: "Pod", Namespaced: true, Verbs: metav1.Verbs{"get", "patch"}},
		{Name: "nodes", Kind: "Node", Verbs: metav1.Verbs{"list", "watch"}},
		{Name: "bindings", Kind: "Binding", Namespaced: true, Verbs: metav1.Verbs{"create"}},
	}}
	shop = &metav1.APIResourceList{GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{
		{Name: "shops", Kind: "Shop", Namespaced: true, Verbs: metav1.Verbs{"list", "watch"}},
	}}
	pods = object.Resource{
		GVK:        schema.GroupVersionKind{Version: "v1", Kind: "Pod"},
		Plural:     "pods",
		Namespaced: true,
		HasStatus:  true,
	}
	nodes = object.Resource{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Node"}, Plural: "nodes"}
	shops = object.Resource{
		GVK:        schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Shop"},
		Plural:     "shops",
		Namespaced: true,
	}
)

func refresh(t *testing.T, d *discovery.Discovery) {
	t.Helper()
	if err := d.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// knows compares the results for three resources; nil means "not served".
func knows(t *testing.T, d *discovery.Discovery, want map[string]object.Resource) {
	t.Helper()
	got := map[string]object.Resource{}
	for _, name := range [][2]string{{"v1", "pods"}, {"v1", "nodes"}, {"v1", "bindings"}, {"example.com/v1", "shops"}} {
		r, err := d.Resource(name[0], name[1])
		var missing *discovery.NotFoundError
		switch {
		case err == nil:
			got[name[1]] = r
		case !errors.As(err, &missing) || !meta.IsNoMatchError(err):
			t.Errorf("Resource(%s, %s) = %v, want a NotFoundError", name[0], name[1], err)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
}

func changed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestRefresh(t *testing.T) {
	s := &served{}
	d := discovery.New(discovery.Config{Client: s})
	before := d.Changed()
	s.set(nil, core)
	refresh(t, d)
	knows(t, d, map[string]object.Resource{"pods": pods, "nodes": nodes})
	if !changed(before) {
		t.Error("nobody is told of new resources")
	}

	before = d.Changed()
	refresh(t, d)
	if changed(before) {
		t.Error("a refresh that finds the same is told as a change")
	}

	s.set(nil, core, shop)
	refresh(t, d)
	knows(t, d, map[string]object.Resource{"pods": pods, "nodes": nodes, "shops": shops})
	if got := d.Len(); got != 3 {
		t.Errorf("%d resources are counted, want 3", got)
	}
}

// TestBrokenGroup keeps the last known resources of a group with a broken API, and updates the
// others.
func TestBrokenGroup(t *testing.T) {
	s := &served{}
	d := discovery.New(discovery.Config{Client: s})
	s.set(nil, shop)
	refresh(t, d)
	broken := &clientdiscovery.ErrGroupDiscoveryFailed{
		Groups: map[schema.GroupVersion]error{shops.GVK.GroupVersion(): errors.New("down")},
	}
	s.set(broken, core)
	if err := d.Refresh(t.Context()); !errors.As(err, new(*clientdiscovery.ErrGroupDiscoveryFailed)) {
		t.Errorf("Refresh = %v, want the broken group named", err)
	}
	knows(t, d, map[string]object.Resource{"pods": pods, "nodes": nodes, "shops": shops})

	s.set(errors.New("the API server is down"))
	if err := d.Refresh(t.Context()); err == nil {
		t.Error("Refresh hides that nothing could be read")
	}
	knows(t, d, map[string]object.Resource{"pods": pods, "nodes": nodes, "shops": shops})
}

func TestMalformedAPIVersion(t *testing.T) {
	_, err := discovery.New(discovery.Config{}).Resource("a/b/c", "pods")
	var missing *discovery.NotFoundError
	if err == nil || errors.As(err, &missing) {
		t.Errorf("Resource = %v, want an error of the apiVersion", err)
	}
}

// TestCustom distinguishes custom resources from others, with and without knowing the
// CustomResourceDefinitions.
func TestCustom(t *testing.T) {
	api := cachetest.New(t)
	s := &served{}
	c, err := cache.New(cache.Config{Config: api.Config()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	d := discovery.New(discovery.Config{Client: s, Cache: c, Clock: clock.RealClock{}, Interval: time.Hour})
	of := func(group string) object.Resource {
		return object.Resource{GVK: schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Shop"}, Plural: "shops"}
	}
	custom := func() map[string]bool {
		got := map[string]bool{}
		for _, group := range []string{"", "apps", "networking.k8s.io", "example.com", "gateway.k8s.io",
			"aggregated.example.com"} {
			got[group] = d.Custom(of(group))
		}
		return got
	}
	want := map[string]bool{
		"":                       false,
		"apps":                   false,
		"networking.k8s.io":      false,
		"example.com":            true,
		"gateway.k8s.io":         true,
		"aggregated.example.com": true,
	}
	if diff := cmp.Diff(want, custom()); diff != "" {
		t.Errorf("while the definitions are not known (-want +got):\n%s", diff)
	}
	for _, group := range []string{"example.com", "gateway.k8s.io"} {
		api.Put(definitions,
			`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",`+
				`"metadata":{"name":"shops.`+group+`","uid":"u"}}`)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.Run(ctx)
	}()
	want["aggregated.example.com"] = false
	known := func(context.Context) (bool, error) { return cmp.Equal(want, custom()), nil }
	if err := wait.PollUntilContextCancel(ctx, time.Millisecond, true, known); err != nil {
		t.Errorf("with the definitions (-want +got):\n%s", cmp.Diff(want, custom()))
	}
	cancel()
	<-done
}

// definitions is the resource of CustomResourceDefinitions.
var definitions = object.Resource{
	GVK:    schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
	Plural: "customresourcedefinitions", HasStatus: true,
}

// TestFollow sees a new resource because a CustomResourceDefinition has changed, not because time
// has passed.
func TestFollow(t *testing.T) {
	api := cachetest.New(t)
	s := &served{}
	s.set(nil, core)
	c, err := cache.New(cache.Config{Config: api.Config()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	d := discovery.New(discovery.Config{Client: s, Cache: c, Clock: clock.RealClock{}, Interval: time.Hour})
	refresh(t, d)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.Run(ctx)
	}()
	told := d.Changed()
	s.set(nil, core, shop)
	api.Put(definitions,
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",`+
			`"metadata":{"name":"shops.example.com","uid":"u"}}`)
	select {
	case <-told:
	case <-ctx.Done():
		t.Fatal("the new resource was not found")
	}
	knows(t, d, map[string]object.Resource{"pods": pods, "nodes": nodes, "shops": shops})
	cancel()
	<-done
}
