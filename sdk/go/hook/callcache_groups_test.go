package hook

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
)

// TestGroupsOfOneParent decodes a large group call after call, while objects change, come and go,
// and the function changes its group: each group equals one that is decoded anew.
func TestGroupsOfOneParent(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	parent := Object{Namespace: "shop"}
	cache := &callCache{}
	serial := 0
	object := func() *hookv1.ObservedObject {
		serial++
		return &hookv1.ObservedObject{
			ApiVersion: "v1", Kind: "Page", Namespace: []string{"shop", "other"}[serial%2], Name: fmt.Sprint("page-", serial),
			ResourceVersion: fmt.Sprint(serial), Body: []byte(`{}`),
		}
	}
	var objects []*hookv1.ObservedObject
	for range 3 * minDecoded {
		objects = append(objects, object())
	}
	reused := 0
	for range 300 {
		objects = slices.Clone(objects) // messages of a request do not change
		switch i := random.IntN(len(objects)); random.IntN(7) {
		case 0:
			edited := object()
			edited.Name, edited.Namespace = objects[i].GetName(), objects[i].GetNamespace()
			objects[i] = edited
		case 1:
			objects[i] = object()
		case 2:
			objects = append(objects, object())
		case 3:
			objects = slices.Delete(objects, i, i+1)
		case 4:
			for i := range objects {
				objects[i] = object()
			}
		case 5:
			parent.Namespace = []string{"shop", "other"}[random.IntN(2)]
		}
		cache = cache.renewed()
		groups := []*hookv1.ObjectGroup{{ApiVersion: "v1", Kind: "Page", Objects: objects}}
		got, err := decodeGroups(withCallCache(context.Background(), cache), groups, parent)
		if err != nil {
			t.Fatal(err)
		}
		want, err := decodeGroup(objects, parent)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(Groups{"Page.v1": want}, got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		if len(cache.observed) > 0 && &cache.observed[0].messages[0] == &cache.decoded[0].messages[0] {
			reused++
		}
		for name := range maps.Keys(got["Page.v1"]) { // the function owns the group
			delete(got["Page.v1"], name)
			break
		}
	}
	if reused < 50 {
		t.Errorf("%d of 300 calls could use the group of the call before", reused)
	}
}

// TestGroupsThatAreNotKept decodes small groups, and groups of calls that are not a stream's.
func TestGroupsThatAreNotKept(t *testing.T) {
	for _, n := range []int{0, 1, minDecoded - 1, minDecoded} {
		var objects []*hookv1.ObservedObject
		for i := range n {
			objects = append(objects, &hookv1.ObservedObject{ApiVersion: "v1", Kind: "Page", Name: fmt.Sprint(i)})
		}
		for _, cache := range []*callCache{{}, callCacheOf(context.Background())} {
			group, err := cache.decode(0, objects, Object{})
			if err != nil || len(group) != n {
				t.Fatalf("%d objects: %d, %v", n, len(group), err)
			}
			if kept, want := len(cache.decoded) > 0, n == minDecoded && !cache.once; kept != want {
				t.Errorf("%d objects are kept: %v, want %v", n, kept, want)
			}
		}
	}
}
