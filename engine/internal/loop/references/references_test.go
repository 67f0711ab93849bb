package references

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/heaptest"
	"k8s.io/apimachinery/pkg/labels"
)

// naive is the property's other side: the reads of each key in a list, all of which it looks at.
type naive map[int][]read

func (n naive) affected(of object.Resource, old, current *object.Object) []int {
	keys := map[int]struct{}{}
	for key, reads := range n {
		for _, read := range reads {
			if read.of == of && (old != nil && read.concerns(old) || current != nil && read.concerns(current)) {
				keys[key] = struct{}{}
			}
		}
	}
	return slices.Sorted(maps.Keys(keys))
}

// TestAffectedAgreesWithAScan runs random reconciles that succeed, fail or are forgotten. After
// each, random events map to the keys that a scan over all reads finds.
func TestAffectedAgreesWithAScan(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		s := NewStore[int](Limits{})
		want := naive{}
		for range 60 {
			key := random.IntN(12)
			reads := make([]read, random.IntN(14))
			r := s.Begin(key)
			for i := range reads {
				reads[i] = randomRead(t, random)
				reads[i].record(r)
			}
			switch random.IntN(5) {
			case 0: // an error or a panic
				r.Failed()
				want[key] = append(want[key], reads...)
			case 1:
				r.Failed()
				s.Forget(key)
				delete(want, key)
			default:
				r.Done(random.IntN(2) == 0)
				want[key] = reads
			}
			of := randomResource(random)
			old := randomThing(t, random, of)
			current := randomThing(t, random, of)
			switch random.IntN(3) {
			case 0:
				old = nil
			case 1:
				current = nil
			}
			got := slices.Sorted(slices.Values(s.Affected(of, old, current)))
			if diff := cmp.Diff(want.affected(of, old, current), got); diff != "" {
				t.Fatalf("seed %d: keys (-scan +got):\n%s", seed, diff)
			}
		}
		for key := range want {
			s.Forget(key)
		}
		if stats := s.Stats(); stats != (Stats{}) || len(s.resources) > 0 {
			t.Fatalf("seed %d: after all keys are forgotten: %+v, %d resources", seed, stats, len(s.resources))
		}
	}
}

// affects reports whether an event on an object of the name in namespace ns maps to the key.
func affects(t *testing.T, s *Store[int], key int, name string) bool {
	t.Helper()
	return slices.Contains(s.Affected(pods, nil, thing(t, pods, "ns", name, "", nil)), key)
}

// TestReadsCountFromTheirStart: an event during the reconcile that first reads an object maps to
// the key, and so does one on an object that the last reconcile has read.
func TestReadsCountFromTheirStart(t *testing.T) {
	s := NewStore[int](Limits{})
	first := s.Begin(1)
	first.Object(pods, "ns", "a")
	if !affects(t, s, 1, "a") {
		t.Error("an event on what the running reconcile has read is lost")
	}
	first.Done(false)
	second := s.Begin(1)
	second.Object(pods, "ns", "b")
	if !affects(t, s, 1, "a") || !affects(t, s, 1, "b") {
		t.Error("an event during the second reconcile is lost")
	}
	second.Done(false)
	if affects(t, s, 1, "a") || !affects(t, s, 1, "b") {
		t.Error("a reconcile without an error does not replace the references")
	}
	second.Object(pods, "ns", "c")
	if affects(t, s, 1, "c") {
		t.Error("a read after the end of the reconcile is recorded")
	}
}

// TestFailedKeepsBoth: after an error the key depends on what it has read before and now.
func TestFailedKeepsBoth(t *testing.T) {
	s := NewStore[int](Limits{})
	for _, step := range []struct {
		name   string
		failed bool
	}{{"a", false}, {"b", true}, {"c", true}} {
		r := s.Begin(1)
		r.Object(pods, "ns", step.name)
		if step.failed {
			r.Failed()
		} else {
			r.Done(false)
		}
	}
	for _, name := range []string{"a", "b", "c"} {
		if !affects(t, s, 1, name) {
			t.Errorf("an event on %s is lost", name)
		}
	}
}

// TestLimitsLoseNothing: a key with too many references is bound to the whole resource, and to
// single objects again as soon as it reads fewer.
func TestLimitsLoseNothing(t *testing.T) {
	s := NewStore[int](Limits{PerKey: 5})
	reconcile := func(n int) {
		r := s.Begin(1)
		for i := range n {
			r.Object(pods, "ns", fmt.Sprint(i))
		}
		r.Object(nodes, "", "n")
		r.Done(false)
	}
	reconcile(20)
	if got := s.Stats(); got.References != 2 || got.Coarse != 1 {
		t.Errorf("20 reads: %+v, want one reference to all pods, and one to the node", got)
	}
	if !affects(t, s, 1, "19") || !affects(t, s, 1, "another") {
		t.Error("an event on a pod is lost")
	}
	reconcile(3)
	if got := s.Stats(); got.References != 4 || got.Coarse != 0 {
		t.Errorf("3 reads: %+v, want 3 references to pods and one to the node", got)
	}
	for i := range 100 {
		r := s.Begin(1)
		for j := range 4 {
			r.Object(pods, "ns", fmt.Sprint(i, "-", j))
		}
		r.Failed()
	}
	if got := s.Stats().References; got > 5*maxKept+2 {
		t.Errorf("100 failed reconciles leave %d references", got)
	}
	if !affects(t, s, 1, "99-3") {
		t.Error("an event on what the last reconcile has read is lost")
	}
}

// TestTotalLimit: the references of all keys are bounded, and no event is lost.
func TestTotalLimit(t *testing.T) {
	s := NewStore[int](Limits{Total: 100})
	for key := range 50 {
		r := s.Begin(key)
		for i := range 10 {
			r.Object(pods, "ns", fmt.Sprint(key, "-", i))
		}
		r.Done(false)
	}
	if got := s.Stats(); got.References > 150 {
		t.Errorf("%d references, want at most 100 and one for each key", got.References)
	}
	for key := range 50 {
		if !affects(t, s, key, fmt.Sprint(key, "-", 9)) {
			t.Errorf("an event for key %d is lost", key)
		}
	}
}

// TestIdleKeysAreBounded: names that come and go leave no more than the limit.
func TestIdleKeysAreBounded(t *testing.T) {
	s := NewStore[int](Limits{Idle: 3})
	for key := range 10 {
		r := s.Begin(key)
		r.Object(pods, "ns", "config")
		r.Done(key > 1) // 0 and 1 are not idle
	}
	want := []int{0, 1, 7, 8, 9}
	got := slices.Sorted(slices.Values(s.Affected(pods, thing(t, pods, "ns", "config", "", nil), nil)))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("keys that are left (-want +got):\n%s", diff)
	}
	r := s.Begin(8)
	r.Object(pods, "ns", "config")
	r.Done(false)
	if got := s.Stats(); got.Idle != 2 || got.Keys != 5 {
		t.Errorf("after an idle key found something: %+v", got)
	}
}

// TestNothingIsNotAReference: a selector that matches nothing needs no event.
func TestNothingIsNotAReference(t *testing.T) {
	s := NewStore[int](Limits{})
	r := s.Begin(1)
	r.Selected(pods, "ns", labels.Nothing())
	r.Done(false)
	if got := s.Stats(); got != (Stats{}) {
		t.Errorf("references: %+v", got)
	}
}

// TestBytes compares the estimate of the memory with the heap.
func TestBytes(t *testing.T) {
	const keys, perKey = 5_000, 4
	before := heaptest.Used()
	s := NewStore[object.Ref](Limits{})
	for key := range keys {
		r := s.Begin(object.Ref{GVK: nodes.GVK, Namespace: "namespace", Name: fmt.Sprint(key)})
		for i := range perKey {
			r.Object(pods, "namespace", fmt.Sprint(key, "-", i))
		}
		r.Done(false)
	}
	used := int(heaptest.Used() - before)
	estimate := s.Stats().Bytes
	if ratio := float64(estimate) / float64(used); ratio < .6 || ratio > 1.6 {
		t.Errorf("the estimate is %d bytes, the heap has %d", estimate, used)
	}
	t.Logf("%d bytes for each reference, estimate %d", used/keys/perKey, estimate/keys/perKey)
	runtime.KeepAlive(s)
}

// BenchmarkAffected is the cost of an event that maps to one key; it does not grow with the number
// of keys.
func BenchmarkAffected(b *testing.B) {
	for _, keys := range []int{1_000, 100_000} {
		b.Run(fmt.Sprintf("%d keys", keys), func(b *testing.B) {
			s := NewStore[int](Limits{})
			for key := range keys {
				own := fmt.Sprint(key)
				r := s.Begin(key)
				r.Object(pods, "ns", own)
				r.Selected(pods, "ns", labels.SelectorFromSet(labels.Set{"colour": own}))
				r.Indexed(pods, byNode, own)
				r.Done(false)
			}
			set := map[string]string{"node": "7", "colour": "7"}
			old := thing(b, pods, "ns", "7", "", set)
			current := thing(b, pods, "ns", "7", "", set)
			b.ReportAllocs()
			for b.Loop() {
				if got := s.Affected(pods, old, current); len(got) != 1 {
					b.Fatal(got)
				}
			}
		})
	}
}

// BenchmarkReconcile is the cost of recording the same ten reads again.
func BenchmarkReconcile(b *testing.B) {
	s := NewStore[int](Limits{})
	names := make([]string, 10)
	for i := range names {
		names[i] = fmt.Sprint(i)
	}
	b.ReportAllocs()
	for b.Loop() {
		r := s.Begin(1)
		for _, name := range names {
			r.Object(pods, "ns", name)
		}
		r.Done(false)
	}
}
