package controller

import (
	"fmt"
	"reflect"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/heaptest"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// memoKind is the resource of the tests of memos.
var memoKind = object.Resource{
	GVK:    schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
	Plural: "deployments", Namespaced: true,
}

// memoDeployment returns a Deployment as an API server has it.
func memoDeployment(t testing.TB, i, version int) *object.Object {
	t.Helper()
	o, err := object.Decode(fmt.Appendf(nil, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d%d",
		"namespace":"shop","uid":"u%d","resourceVersion":"%d","generation":3,"creationTimestamp":"2026-01-01T00:00:00Z",
		"labels":{"app":"d","tier":"web"},"annotations":{"deployment.kubernetes.io/revision":"1"},
		"ownerReferences":[{"apiVersion":"example.com/v1","kind":"Website","name":"d","uid":"o","controller":true}]},
		"spec":{"replicas":2,"selector":{"matchLabels":{"app":"d"}},"strategy":{"type":"RollingUpdate","rollingUpdate":
		{"maxSurge":"25%%","maxUnavailable":"25%%"}},"template":{"metadata":{"labels":{"app":"d"}},"spec":{"containers":
		[{"name":"web","image":"nginx:1.29","ports":[{"containerPort":80,"protocol":"TCP"}],"resources":
		{"requests":{"cpu":"10m","memory":"32Mi"}},"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}],
		"volumeMounts":[{"name":"page","mountPath":"/usr/share/nginx"}],"terminationMessagePolicy":"File"}],
		"volumes":[{"name":"page","configMap":{"name":"page","defaultMode":420}}],"restartPolicy":"Always",
		"dnsPolicy":"ClusterFirst"}},"revisionHistoryLimit":10},"status":{"observedGeneration":3,"replicas":2,
		"conditions":[{"type":"Available","status":"True","lastUpdateTime":"2026-01-01T00:00:00Z","lastTransitionTime":
		"2026-01-01T00:00:00Z","reason":"MinimumReplicasAvailable","message":"Deployment has minimum availability."}]}}`,
		i, i, version))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// memoReader reads the views of one store.
type memoReader struct{ store *view.Store }

func (r memoReader) View(object.Resource) (view.View, error) { return r.store.View() }

// newMemoAccess returns a Reader with a memo of a store with n Deployments.
func newMemoAccess(t testing.TB, n int) (*access, *view.Store) {
	t.Helper()
	store := view.NewStore(memoKind)
	var all []*object.Object
	for i := range n {
		all = append(all, memoDeployment(t, i, 1))
	}
	store.Replace(all, "1")
	return &access{
		controller: "test", scheme: scheme.Scheme, views: memoReader{store}, memo: &memo{},
		declared: map[schema.GroupVersionKind]object.Resource{memoKind.GVK: memoKind},
	}, store
}

// TestMemo counts how often objects are decoded.
func TestMemo(t *testing.T) {
	a, store := newMemoAccess(t, 3)
	read := func() *appsv1.Deployment {
		t.Helper()
		d, err := Get[*appsv1.Deployment](a, Key{Namespace: "shop", Name: "d1"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := List[*appsv1.Deployment](a); err != nil {
			t.Fatal(err)
		}
		return d
	}
	for range 10 {
		d := read()
		if d.Labels["app"] != "d" || *d.Spec.Replicas != 2 || d.Spec.Template.Spec.Containers[0].Image != "nginx:1.29" {
			t.Fatalf("got %v, want the object without a reader's changes", d)
		}
		d.Labels["app"], *d.Spec.Replicas, d.Spec.Template.Spec.Containers[0].Image = "changed", 9, "changed"
	}
	if a.memo.decoded != 3 {
		t.Errorf("%d decoded objects after 40 reads of 3 objects, want 3", a.memo.decoded)
	}
	store.Put(memoDeployment(t, 1, 2))
	if d := read(); d.ResourceVersion != "2" || a.memo.decoded != 4 {
		t.Errorf("version %s, and %d decoded objects after a change, want 2 and 4", d.ResourceVersion, a.memo.decoded)
	}
	if _, err := GetFor(a, memoKind.GVK, Key{Namespace: "shop", Name: "d1"}); err != nil || a.memo.decoded != 5 {
		t.Errorf("%d decoded objects after a read as another type, want 5; error %v", a.memo.decoded, err)
	}
	runtime.KeepAlive(store)
}

// TestMemoIsBounded reads more objects than a memo keeps.
func TestMemoIsBounded(t *testing.T) {
	var m memo
	kind := reflect.TypeFor[*appsv1.Deployment]()
	var all []*object.Object
	for i := range 3 * memoEntries {
		o := memoDeployment(t, i, 1)
		all = append(all, o)
		if _, err := m.read(kind, o); err != nil {
			t.Fatal(err)
		}
		if n := m.size(); n > 2*memoEntries || m.bytes > memoBytes {
			t.Fatalf("%d values with %d bytes, want at most %d with %d", n, m.bytes, 2*memoEntries, memoBytes)
		}
	}
	before := m.decoded
	if _, err := m.read(kind, all[len(all)-1]); err != nil || m.decoded != before {
		t.Errorf("the newest object is decoded again; error %v", err)
	}
	if _, err := m.read(kind, all[0]); err != nil || m.decoded != before+1 {
		t.Errorf("the oldest object is not decoded again; error %v", err)
	}
	runtime.KeepAlive(all)
}

// TestMemoForgets checks that a memo keeps nothing of objects that the cache has dropped.
func TestMemoForgets(t *testing.T) {
	a, store := newMemoAccess(t, 50)
	if _, err := List[*appsv1.Deployment](a); err != nil || a.memo.size() != 50 {
		t.Fatalf("%d values, want 50; error %v", a.memo.size(), err)
	}
	store.Replace(nil, "2")
	deadline := time.Now().Add(30 * time.Second)
	for a.memo.size() > 0 {
		if time.Now().After(deadline) {
			t.Fatalf("%d values of objects that are gone", a.memo.size())
		}
		runtime.GC()
	}
	if a.memo.bytes != 0 {
		t.Errorf("%d bytes without values", a.memo.bytes)
	}
}

// TestMemoRace reads and changes copies in parallel.
func TestMemoRace(t *testing.T) {
	a, store := newMemoAccess(t, 20)
	var wait sync.WaitGroup
	for worker := range 4 {
		wait.Go(func() {
			for n := range 50 {
				if worker == 0 {
					store.Put(memoDeployment(t, n%20, n+2))
				}
				all, err := List[*appsv1.Deployment](a)
				if err != nil {
					t.Error(err)
				}
				for _, d := range all {
					d.Labels["app"] = fmt.Sprint(worker, n)
				}
			}
		})
	}
	wait.Wait()
}

// uncopyable is a type with a DeepCopyObject that returns another type.
type uncopyable struct{ corev1.ConfigMap }

// shallow is a type with a DeepCopyObject that is not deep.
type shallow struct{ corev1.ConfigMap }

func (s *shallow) DeepCopyObject() apiruntime.Object { c := *s; return &c }

// TestMemoOfTypesWithoutCopies decodes for each reader.
func TestMemoOfTypesWithoutCopies(t *testing.T) {
	var m memo
	o := memoDeployment(t, 1, 1)
	for _, kind := range []reflect.Type{reflect.TypeFor[*uncopyable](), reflect.TypeFor[*shallow]()} {
		for range 2 {
			got, err := m.read(kind, o)
			if err != nil || reflect.TypeOf(got) != kind || got.GetLabels()["app"] != "d" {
				t.Fatalf("got %T with %v, error %v; want %s", got, got.GetLabels(), err, kind)
			}
			got.GetLabels()["app"] = "changed"
		}
	}
	if m.size() != 0 {
		t.Errorf("%d values, want none", m.size())
	}
}

// TestShares finds memory that a value and its copy have in common.
func TestShares(t *testing.T) {
	one := 1
	items := []any{"a"}
	m := map[string]any{"a": "b"}
	type all struct {
		Pointer *int
		Items   []any
		Map     map[string]any
		Nested  any
	}
	for name, x := range map[string]struct {
		value, copied all
		want          bool
	}{
		"nothing": {all{Items: []any{}, Nested: m}, all{Items: []any{}, Nested: map[string]any{"a": "b"}}, false},
		"pointer": {all{Pointer: &one}, all{Pointer: &one}, true},
		"slice":   {all{Items: items}, all{Items: items}, true},
		"map":     {all{Map: m}, all{Map: m}, true},
		"nested":  {all{Nested: []any{m}}, all{Nested: []any{m}}, true},
		"entry":   {all{Map: map[string]any{"m": m}}, all{Map: map[string]any{"m": m}}, true},
	} {
		if got := shares(reflect.ValueOf(x.value), reflect.ValueOf(x.copied)); got != x.want {
			t.Errorf("%s: shares = %v, want %v", name, got, x.want)
		}
	}
}

// BenchmarkRead reads one Deployment, decoded each time and with a memo.
func BenchmarkRead(b *testing.B) {
	o := memoDeployment(b, 1, 1)
	for name, m := range map[string]*memo{"decoded": nil, "memo": {}} {
		b.Run("typed/"+name, func(b *testing.B) { benchmarkRead[*appsv1.Deployment](b, m, o) })
		b.Run("unstructured/"+name, func(b *testing.B) { benchmarkRead[*unstructured.Unstructured](b, m, o) })
	}
	b.Run("typed/first", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := decodeBy[*appsv1.Deployment](&memo{}, o); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func benchmarkRead[T Object](b *testing.B, m *memo, o *object.Object) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := decodeBy[T](m, o); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMemoMemory reports the heap of a full memo.
func BenchmarkMemoMemory(b *testing.B) {
	var all []*object.Object
	for i := range 5_000 {
		all = append(all, memoDeployment(b, i, 1))
	}
	for b.Loop() {
		var m memo
		before := heaptest.Used()
		for _, o := range all {
			if _, err := m.read(reflect.TypeFor[*appsv1.Deployment](), o); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(heaptest.Used()-before), "heap-bytes")
		b.ReportMetric(float64(m.size()), "values")
	}
	runtime.KeepAlive(all)
}
