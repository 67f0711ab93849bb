package shape

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/internal/watch/viewtest"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var configMaps = object.Resource{
	GVK: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Plural: "configmaps", Namespaced: true,
}

// configMap is an object of the namespace shop.
func configMap(t *testing.T, name string, version int, metadata string) *object.Object {
	t.Helper()
	return parse(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"shop",`+
		`"resourceVersion":"%d"%s}}`, name, version, metadata)
}

// stores is a reader of one store.
type stores struct{ *view.Store }

func (s stores) View(object.Resource) (view.View, error) { return s.Store.View() }

// claimed lists what a Claimer decides, in an order that two results can be compared by.
func claimed(t *testing.T, c *Claimer, reader view.Reader, snapshot *OwnedSnapshot) []string {
	t.Helper()
	claims, err := c.Children(Input{Reader: reader, Owned: snapshot}, []plan.ChildKind{{Resource: configMaps}})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, o := range claims.Children.Of(configMaps.GVK) {
		all = append(all, fmt.Sprint("child ", o.Name(), " ", o.ResourceVersion()))
	}
	for _, a := range claims.Actions {
		all = append(all, a.String()+" at "+a.ResourceVersion)
	}
	slices.Sort(all)
	return all
}

// TestSnapshotChangesNoDecision has random objects come, change and go under a parent, which is
// being deleted in the end. With a snapshot the decisions are the same as without one.
func TestSnapshotChangesNoDecision(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	store := view.NewStore(configMaps)
	store.Replace(nil, "1")
	snapshot := &OwnedSnapshot{}
	present := map[string]*object.Object{}
	for step := range 2000 {
		name := fmt.Sprint("c", random.IntN(12))
		if o := present[name]; o != nil && random.IntN(4) == 0 {
			store.Delete(o)
			delete(present, name)
		} else {
			metadata := pick(ours, ours, ours, theirs, "") + pick(matching, matching, matching, other) +
				pick("", "", "", deleting) + pick("", "", "", "", attached)
			present[name] = configMap(t, name, step+2, metadata)
			store.Put(present[name])
		}
		c := &Claimer{Parent: parent(t, ""), Departing: random.IntN(9) == 0}
		if step > 1500 {
			c.Parent = parent(t, deleting)
		}
		c.Selector = labels.SelectorFromSet(labels.Set{"app": pick("web", "web", "web", "web", "db")})
		want := claimed(t, c, stores{store}, nil)
		if diff := cmp.Diff(want, claimed(t, c, stores{store}, snapshot)); diff != "" {
			t.Fatalf("step %d: without a snapshot and with one (-without +with):\n%s", step, diff)
		}
	}
}

// TestSnapshotLooksAtNewObjectsOnly counts the objects that are classified in a second sync.
func TestSnapshotLooksAtNewObjectsOnly(t *testing.T) {
	store := view.NewStore(configMaps)
	store.Replace(nil, "1")
	for i := range 10 {
		store.Put(configMap(t, fmt.Sprint("c", i), 2, ours+matching))
	}
	snapshot := &OwnedSnapshot{}
	c := &Claimer{Parent: parent(t, ""), Selector: labels.SelectorFromSet(labels.Set{"app": "web"})}
	claimed(t, c, stores{store}, snapshot)
	store.Put(configMap(t, "c3", 3, ours+matching))
	v, err := store.View()
	if err != nil {
		t.Fatal(err)
	}
	owned := v.OwnedBy(view.Owner{UID: "p-uid", Namespace: "shop"})
	now := OwnedSnapshot{parent: "p-uid", selector: "app=web", owned: []view.List{owned}}
	if added := snapshot.added(now); len(added) != 1 || added[0].Name() != "c3" {
		t.Errorf("added = %v, want c3 alone", added)
	}
	now.parent = "another"
	if added := snapshot.added(now); len(added) != 10 {
		t.Errorf("added has %d objects for another parent of the name, want all 10", len(added))
	}
}

// TestChildrenOfAnUnknownView is an error: objects may be missing.
func TestChildrenOfAnUnknownView(t *testing.T) {
	w := viewtest.NewReader()
	w.Break(configMaps, view.Filling)
	c := &Claimer{Parent: parent(t, ""), Selector: labels.Everything()}
	if _, err := c.Children(Input{Reader: w}, []plan.ChildKind{{Resource: configMaps}}); err == nil {
		t.Error("Children = nil error, want the view's")
	}
}
