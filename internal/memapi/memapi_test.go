package memapi_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/internal/memapi"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var configMaps = schema.GroupResource{Resource: "configmaps"}

func newServer(t *testing.T, o memapi.Options) (*memapi.Server, kubernetes.Interface) {
	t.Helper()
	s, err := memapi.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s, kubernetes.NewForConfigOrDie(s.Config())
}

func create(t *testing.T, client kubernetes.Interface, name string) *corev1.ConfigMap {
	t.Helper()
	created, err := client.CoreV1().ConfigMaps("default").Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

// follow watches the ConfigMaps of the namespace default.
func follow(t *testing.T, client kubernetes.Interface, o metav1.ListOptions) watch.Interface {
	t.Helper()
	w, err := client.CoreV1().ConfigMaps("default").Watch(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}

// next returns the next event as "TYPE name", "BOOKMARK version" or "ERROR code"; "end" at the end.
func next(t *testing.T, w watch.Interface) string {
	t.Helper()
	select {
	case e, ok := <-w.ResultChan():
		if !ok {
			return "end"
		}
		switch o := e.Object.(type) {
		case *corev1.ConfigMap:
			if e.Type == watch.Bookmark {
				return "BOOKMARK " + o.ResourceVersion
			}
			return string(e.Type) + " " + o.Name
		case *metav1.Status:
			return fmt.Sprint(e.Type, " ", o.Code)
		}
		return fmt.Sprint(e)
	case <-time.After(time.Minute):
		t.Fatal("no event within a minute")
	}
	return ""
}

// silent checks that there is no event: an event on another watch comes before one on this one.
func silent(t *testing.T, w watch.Interface) {
	t.Helper()
	select {
	case e := <-w.ResultChan():
		t.Errorf("got %v, want no event", e)
	default:
	}
}

func expect(t *testing.T, w watch.Interface, want ...string) {
	t.Helper()
	for _, e := range want {
		if got := next(t, w); got != e {
			t.Fatalf("event %q, want %q", got, e)
		}
	}
}

func TestWatch(t *testing.T) {
	s, client := newServer(t, memapi.Options{})
	maps := client.CoreV1().ConfigMaps("default")
	a := create(t, client, "a")
	synthetic := follow(t, client, metav1.ListOptions{})
	since := follow(t, client, metav1.ListOptions{ResourceVersion: a.ResourceVersion})
	initial := true
	list := follow(t, client, metav1.ListOptions{SendInitialEvents: &initial, AllowWatchBookmarks: true,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
	selected := follow(t, client, metav1.ListOptions{LabelSelector: "x=1"})
	expect(t, synthetic, "ADDED a")
	expect(t, list, "ADDED a", "BOOKMARK "+a.ResourceVersion)

	b := create(t, client, "b")
	label := []byte(`{"metadata":{"labels":{"x":"1"}}}`)
	if _, err := maps.Patch(t.Context(), "a", "application/merge-patch+json", label, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Patch(t.Context(), "a", "application/merge-patch+json", []byte(`{"metadata":{"labels":null}}`),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := maps.Delete(t.Context(), b.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, w := range []watch.Interface{synthetic, since, list} {
		expect(t, w, "ADDED b", "MODIFIED a", "MODIFIED a", "DELETED b")
	}
	expect(t, selected, "ADDED a", "DELETED a")
	version := s.Bookmark(configMaps)
	expect(t, list, "BOOKMARK "+version)
	if n := s.Watches(configMaps); n != 4 {
		t.Errorf("%d watches, want 4", n)
	}
	s.DropWatches(configMaps)
	for _, w := range []watch.Interface{synthetic, since, list, selected} {
		for got := next(t, w); got != "end"; got = next(t, w) {
			if got != "BOOKMARK "+version {
				t.Errorf("event %q after the last one", got)
			}
		}
	}
}

// TestHeldEvents checks that a held resource delivers nothing, and everything when it is released.
func TestHeldEvents(t *testing.T) {
	s, client := newServer(t, memapi.Options{})
	w := follow(t, client, metav1.ListOptions{})
	create(t, client, "a")
	expect(t, w, "ADDED a")
	s.Hold(configMaps)
	create(t, client, "b")
	silent(t, w)
	if s.Delivered() {
		t.Error("Delivered = true with a held event")
	}
	s.Release(configMaps)
	expect(t, w, "ADDED b")
}

// TestHistory checks that watches and lists of the past end where the history does.
func TestHistory(t *testing.T) {
	s, client := newServer(t, memapi.Options{History: 3})
	a := create(t, client, "a")
	for _, name := range []string{"b", "c", "d", "e"} {
		create(t, client, name)
	}
	expect(t, follow(t, client, metav1.ListOptions{ResourceVersion: a.ResourceVersion}), "ERROR 410", "end")
	exact := metav1.ListOptions{ResourceVersion: a.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact}
	if _, err := client.CoreV1().ConfigMaps("").List(t.Context(), exact); !apierrors.IsResourceExpired(err) {
		t.Errorf("list of the past = %v, want Expired", err)
	}
	now, err := client.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	create(t, client, "f")
	exact.ResourceVersion = now.ResourceVersion
	then, err := client.CoreV1().ConfigMaps("").List(t.Context(), exact)
	if err != nil || len(then.Items) != 5 {
		t.Errorf("list before f = %d items, %v; want 5", len(then.Items), err)
	}
	s.Forget(configMaps)
	expect(t, follow(t, client, metav1.ListOptions{ResourceVersion: now.ResourceVersion}), "ERROR 410", "end")
}

// TestSlowWatch checks that a watch that falls behind the history gets "410 Gone".
func TestSlowWatch(t *testing.T) {
	s, client := newServer(t, memapi.Options{History: 3})
	create(t, client, "a")
	w := follow(t, client, metav1.ListOptions{})
	expect(t, w, "ADDED a")
	s.Hold(configMaps)
	for i := range 5 {
		create(t, client, "b"+strconv.Itoa(i))
	}
	s.Release(configMaps)
	expect(t, w, "ERROR 410", "end")
}

func TestFaults(t *testing.T) {
	s, client := newServer(t, memapi.Options{})
	conflict := metav1.Status{Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: "planned"}
	s.Fail(memapi.Fault{Verb: "create", Resource: "configmaps", Name: "", Times: 2, Status: conflict})
	maps := client.CoreV1().ConfigMaps("default")
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	for i := range 3 {
		_, err := maps.Create(t.Context(), object, metav1.CreateOptions{})
		if failed := apierrors.IsConflict(err); failed != (i < 2) {
			t.Errorf("request %d = %v", i+1, err)
		}
	}
	end := s.Fail(memapi.Fault{Times: -1, Status: metav1.Status{Code: http.StatusServiceUnavailable}})
	if _, err := maps.Get(t.Context(), "a", metav1.GetOptions{}); err == nil {
		t.Error("a get succeeded in spite of the fault")
	}
	end()
	if _, err := maps.Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

func TestAudit(t *testing.T) {
	s, client := newServer(t, memapi.Options{})
	owner := create(t, client, "owner")
	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owned", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID},
	}}}
	maps := client.CoreV1().ConfigMaps("default")
	if _, err := maps.Create(t.Context(), owned, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Update(t.Context(), owner, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, since := s.Writes(0)
	_ = maps.Delete(t.Context(), "missing", metav1.DeleteOptions{}) // the log shows its error
	if err := maps.Delete(t.Context(), owner.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	all, end := s.Writes(0)
	var got []string
	for _, w := range all {
		w.Before, w.After, w.UserAgent = mark(w.Before), mark(w.After), agent(w.UserAgent)
		got = append(got, w.String())
	}
	want := []string{
		"create configmaps default/owner: 201, none -> X, by client",
		"create configmaps default/owned: 201, none -> X, by client",
		"update configmaps default/owner: 200, X -> X, by client",
		"delete configmaps default/missing: 404 NotFound, none -> none, by client",
		"delete configmaps default/owned: 200, X -> none, by generic-garbage-collector",
		"delete configmaps default/owner: 200, X -> none, by client",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if since != 3 || end != 6 || all[2].Changed() {
		t.Errorf("positions %d and %d, unchanged %v", since, end, !all[2].Changed())
	}
	if n := s.Counts()[memapi.Count{Verb: "create", Resource: "configmaps", Code: 201}]; n != 2 {
		t.Errorf("%d creates counted, want 2", n)
	}
}

func mark(version string) string {
	if version == "" {
		return ""
	}
	return "X"
}

func agent(userAgent string) string {
	if userAgent == "generic-garbage-collector" {
		return userAgent
	}
	return "client"
}

// TestDiscovery compares the aggregated documents with those of each group.
func TestDiscovery(t *testing.T) {
	shop := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Shop"}
	crds := []*apiextensionsv1.CustomResourceDefinition{memapi.Definition(shop, "shops", true, true)}
	_, client := newServer(t, memapi.Options{CRDs: crds})
	_, lists, err := client.Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*metav1.APIResourceList{}
	for _, l := range lists {
		all[l.GroupVersion] = l
	}
	for _, gv := range []string{"v1", "apps/v1", "example.com/v1", "rbac.authorization.k8s.io/v1"} {
		one, err := client.Discovery().ServerResourcesForGroupVersion(gv)
		if err != nil || all[gv] == nil {
			t.Fatalf("%s: %v", gv, err)
		}
		names := func(l *metav1.APIResourceList) (names []string) {
			for _, r := range l.APIResources {
				names = append(names, fmt.Sprint(r.Name, " ", r.Kind, " ", r.Namespaced, " ", r.Verbs))
			}
			return names
		}
		if diff := cmp.Diff(names(one), names(all[gv])); diff != "" {
			t.Errorf("%s (-alone +aggregated):\n%s", gv, diff)
		}
	}
	if version, err := client.Discovery().ServerVersion(); err != nil || version.Major != "1" {
		t.Errorf("version = %v, %v", version, err)
	}
}

func TestClosed(t *testing.T) {
	s, client := newServer(t, memapi.Options{})
	w := follow(t, client, metav1.ListOptions{})
	s.Close()
	expect(t, w, "end")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{}); err == nil {
		t.Error("a request with a cancelled context succeeded")
	}
	if _, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{}); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("a request to a closed server = %v", err)
	}
}
