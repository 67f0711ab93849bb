package view

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/types"
)

// TestOwnerReachesItsNamespaceOnly has objects of two namespaces name the same owner. Only the owner
// that is cluster-scoped, or in their namespace, owns them.
func TestOwnerReachesItsNamespaceOnly(t *testing.T) {
	s := NewStore(things)
	s.Replace(nil, "1")
	s.Put(thing(t, "shop", "mine", "u", 2))
	s.Put(thing(t, "evil", "forged", "u", 3))
	v, err := s.View()
	if err != nil {
		t.Fatal(err)
	}
	for owner, want := range map[Owner][]string{
		{UID: "u", Namespace: "shop"}:  {"mine"},
		{UID: "u", Namespace: "evil"}:  {"forged"},
		{UID: "u", Namespace: "other"}: nil,
		{UID: "u"}:                     {"forged", "mine"},
	} {
		if got := names(v.OwnedBy(owner)); !slices.Equal(got, want) {
			t.Errorf("%+v owns %v, want %v", owner, got, want)
		}
	}
}

// TestOwnedByEqualsAScan has random objects come, change their owner and go in several namespaces,
// and compares every owner's objects with those that a scan of the store finds.
func TestOwnedByEqualsAScan(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	s := NewStore(things)
	s.Replace(nil, "1")
	v, err := s.View()
	if err != nil {
		t.Fatal(err)
	}
	for step := range 3000 {
		o := thing(t, pick("a", "b", "c"), fmt.Sprint("n", random.IntN(12)), pick("", "u", "w"), step+2)
		if random.IntN(3) == 0 {
			s.Delete(o)
		} else {
			s.Put(o)
		}
		for _, uid := range []types.UID{"u", "w"} {
			for _, namespace := range []string{"", "a", "b", "c"} {
				owner := Owner{UID: uid, Namespace: namespace}
				owned := func(o *object.Object) bool {
					return o.ControllerRef() != nil && o.ControllerRef().UID == uid && owner.Reaches(o.Namespace())
				}
				want := names(v.List("").Where(owned))
				if got := names(v.OwnedBy(owner)); !slices.Equal(got, want) {
					t.Fatalf("step %d: %+v owns %v, want %v", step, owner, got, want)
				}
			}
		}
	}
}
