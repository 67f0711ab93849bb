package integration

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/test/kit"
)

// TestMassDeletionIsHeld has a hook that leaves out most children: nothing is deleted, and the
// parent reports how to permit it. Fewer deletions pass, and so does the deletion of the parent.
func TestMassDeletionIsHeld(t *testing.T) {
	k := start(t)
	finalize := k.Hook(
		func(r kit.Request) any { return map[string]any{"finalized": len(r.Children["ConfigMap.v1"]) == 0} })
	run(t, k, kit.Composite{DeletionLimit: "50%", Finalize: finalize.URL})
	var pages []string
	for i := range 4 {
		pages = append(pages, page(fmt.Sprintf("page-%d", i), "text: one"))
	}
	k.Apply(parent("web", pages...))
	await(k, "v1/ConfigMap", "page-3", "data.text", "one")
	mark := k.Settled(settled)

	k.Apply(parent("web", page("page-0", "text: two")))
	k.AwaitFault("Web", "web", "DeletionsHeld", "the answer would delete 3 of 4 children, expected at most 50%")
	if diff := cmp.Diff([]string{}, k.ChildWrites(mark)); diff != "" {
		t.Errorf("writes to children (-want +got):\n%s", diff)
	}
	generation := k.Get("Web", "web").GetGeneration()
	k.Patch("Web", "web", fmt.Sprintf("metadata: {annotations: {hookloop.dev/allow-deletions: '%d/3'}}", generation))
	await(k, "v1/ConfigMap", "page-0", "data.text", "two")
	k.Eventually("three children are gone", func() error { return gone(k, "page-1", "page-2", "page-3") })

	k.Apply(parent("web"))
	k.AwaitFault("Web", "web", "DeletionsHeld", "the answer would delete 1 of 1 children")
	k.Delete("Web", "web")
	k.Eventually("the parent and its child are gone", func() error {
		if k.Find("Web", "web") != nil {
			return fmt.Errorf("the parent is there")
		}
		return gone(k, "page-0")
	})
}

func gone(k *kit.Kit, names ...string) error {
	for _, name := range names {
		if k.Find("v1/ConfigMap", name) != nil {
			return fmt.Errorf("%s is there", name)
		}
	}
	return nil
}
