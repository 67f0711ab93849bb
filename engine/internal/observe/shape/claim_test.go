package shape

import (
	"fmt"
	"testing"

	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/watch/viewtest"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/labels"
)

const (
	deleting = `,"deletionTimestamp":"2026-01-01T00:00:00Z"`
	matching = `,"labels":{"app":"web"}`
	other    = `,"labels":{"app":"db"}`
	ours     = `,"ownerReferences":[{"apiVersion":"v1","kind":"P","name":"p","uid":"p-uid","controller":true}]`
	theirs   = `,"ownerReferences":[{"apiVersion":"v1","kind":"Q","name":"q","uid":"q-uid","controller":true}]`
	attached = `,"annotations":{"metacontroller.k8s.io/decorator-controller":"d"}`
	mapped   = `,"annotations":{"metacontroller.k8s.io/map-controller":"m"}`
	keyed    = `,"annotations":{"metacontroller.k8s.io/map-key":"ConfigMap/shop/a"}`
	labelled = `,"labels":{"app":"web","metacontroller.k8s.io/map-key":"00000000000000000000000000000000"}`
	plain    = `,"ownerReferences":[{"apiVersion":"v1","kind":"P","name":"p","uid":"p-uid"}]`
)

func parse(t *testing.T, format string, args ...any) *object.Object {
	t.Helper()
	o, err := object.Decode(fmt.Appendf(nil, format, args...))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func parent(t *testing.T, more string) *object.Object {
	return parse(t, `{"apiVersion":"v1","kind":"P","metadata":{"name":"p","namespace":"shop","uid":"p-uid"%s}}`, more)
}

func TestClassify(t *testing.T) {
	tests := []struct {
		name, parent, child string
		departing           bool
		want                relation
	}{
		{"owned and selected", "", ours + matching, false, owned},
		{"owned and no longer selected", "", ours + other, false, released},
		{"owned, without labels", "", ours, false, released},
		{"owned, no longer selected and being deleted", "", ours + other + deleting, false, owned},
		{"owned, no longer selected, the parent being deleted", deleting, ours + other, false, owned},
		{"owned and being deleted", "", ours + matching + deleting, false, owned},
		{"an orphan that is selected", "", matching, false, adoptable},
		{"an orphan that names the parent as an owner, not as the controller", "", plain + matching, false, adoptable},
		{"an orphan that is not selected", "", other, false, unrelated},
		{"an orphan that is being deleted", "", matching + deleting, false, unrelated},
		{"an orphan, the parent being deleted", deleting, matching, false, unrelated},
		{"an orphan, the parent no longer selected", "", matching, true, unrelated},
		{"owned, the parent no longer selected", "", ours + other, true, released},
		{"a decorator's attachment, owned and selected", "", ours + matching + attached, false, unrelated},
		{"a decorator's attachment, owned and not selected", "", ours + attached, false, unrelated},
		{"a decorator's attachment that is an orphan", "", matching + attached, false, unrelated},
		{"a map controller's output", "", ours + matching + mapped, false, unrelated},
		{"one with its map key alone", "", ours + matching + keyed, false, unrelated},
		{"one with its label alone", "", ours + labelled, false, unrelated},
		{"another controller's, selected", "", theirs + matching, false, unrelated},
		{"another controller's, not selected", "", theirs + other, false, unrelated},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			child := parse(t,
				`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"shop","uid":"c-uid"%s}}`,
				test.child)
			c := Claimer{Parent: parent(t, test.parent), Departing: test.departing}
			got := c.classify(child, labels.SelectorFromSet(labels.Set{"app": "web"}))
			if got != test.want {
				t.Errorf("classify = %d, want %d", got, test.want)
			}
		})
	}
}

// TestRevisions has a parent keep its own revisions, whatever its selector, and adopt orphans of
// its kind.
func TestRevisions(t *testing.T) {
	ofKind, _ := labels.SelectorFromSet(labels.Set{"kind": "p"}).Requirements()
	const mine, stranger = `,"labels":{"app":"web","kind":"p"}`, `,"labels":{"app":"web","kind":"q"}`
	tests := []struct {
		name, revision string
		departing      bool
		kept, adopted  bool
	}{
		{"owned", ours + mine, false, true, false},
		{"owned and not selected", ours + other, false, true, false},
		{"owned and being deleted", ours + mine + deleting, false, false, false},
		{"an orphan that is selected", mine, false, true, true},
		{"an orphan that is not selected", other, false, false, false},
		{"an orphan of another kind of parent", stranger, false, false, false},
		{"an orphan that is being deleted", mine + deleting, false, false, false},
		{"an orphan, the parent departing", mine, true, false, false},
		{"an attachment of a decorator", ours + mine + attached, false, false, false},
		{"another parent's", theirs + mine, false, false, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := Claimer{
				Parent: parent(t, ""), Departing: test.departing, Selector: labels.SelectorFromSet(labels.Set{"app": "web"}),
			}
			reader := viewtest.NewReader(configMap(t, "r", 2, test.revision))
			kept, adopt, err := c.Revisions(Input{Reader: reader}, configMaps, "shop", ofKind)
			if err != nil || (kept.Len() == 1) != test.kept || (len(adopt) == 1) != test.adopted {
				t.Errorf("Revisions keeps %d and adopts %v, %v; want %v and %v", kept.Len(), adopt, err, test.kept, test.adopted)
			}
		})
	}
}

// forged returns an object of another namespace that names the parent as its controller, with the
// parent's UID, as anybody may write it who has rights in that namespace.
func forged(t *testing.T, metadata string) *object.Object {
	t.Helper()
	return parse(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"forged","namespace":"evil",`+
		`"uid":"f-uid","resourceVersion":"7"%s}}`, ours+metadata)
}

// TestForgedObjectsAreNobodysChildren has an object of another namespace claim to be a child, a
// revision and an attachment of the parent.
func TestForgedObjectsAreNobodysChildren(t *testing.T) {
	c := Claimer{Parent: parent(t, ""), Selector: labels.SelectorFromSet(labels.Set{"app": "web"})}
	reader := viewtest.NewReader(configMap(t, "c", 2, ours+matching), forged(t, matching))
	if got := claimed(t, &c, reader, nil); len(got) != 1 {
		t.Errorf("the parent claims %q, want its own child only", got)
	}
	kept, _, err := c.Revisions(Input{Reader: reader}, configMaps, "shop", nil)
	if err != nil || kept.Len() != 1 {
		t.Errorf("the parent keeps %d revisions, %v; want its own one", kept.Len(), err)
	}
	everything := func(*object.Object) bool { return true }
	set, err := Owned(Input{Reader: reader}, c.Parent, []plan.ChildKind{{Resource: configMaps}}, everything)
	if err != nil || set.Len() != 1 {
		t.Errorf("the parent owns %d objects, %v; want its own one", set.Len(), err)
	}
}

// TestForgedRevisionOfAClusterScopedParent keeps revisions of the namespace in which the engine
// writes them, although a cluster-scoped parent may own objects of any namespace.
func TestForgedRevisionOfAClusterScopedParent(t *testing.T) {
	p := parse(t, `{"apiVersion":"v1","kind":"P","metadata":{"name":"p","uid":"p-uid"}}`)
	c := Claimer{Parent: p, Selector: labels.SelectorFromSet(labels.Set{"app": "web"})}
	reader := viewtest.NewReader(configMap(t, "r", 2, ours+matching), forged(t, matching))
	kept, _, err := c.Revisions(Input{Reader: reader}, configMaps, "shop", nil)
	if err != nil || kept.Len() != 1 {
		t.Errorf("the parent keeps %d revisions, %v; want the one in shop", kept.Len(), err)
	}
}
