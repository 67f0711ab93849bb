package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/test/kit"
)

// TestEngineIsKilledBetweenTwoWrites kills an engine after it has created some of ten children, and
// starts it again. It creates the others, each once, and writes none of the existing ones.
func TestEngineIsKilledBetweenTwoWrites(t *testing.T) {
	parallel(t)
	for _, k := range []int{1, 5, 8} {
		t.Run(fmt.Sprintf("after write %d of 10", k), func(t *testing.T) { killedAfter(t, k) })
	}
}

func killedAfter(t *testing.T, writes int) {
	k := start(t)
	k.CRD("Web", "Namespaced")
	// The limit of five requests a second spreads the writes, so that the kill comes between two of
	// them.
	engine, labels := ownEngine(k, "--client-go-qps=5", "--client-go-burst=1")
	k.Run(kit.Composite{Parent: "webs", Children: []string{"v1/configmaps InPlace"}, Sync: mirror(t), Labels: labels})
	var children, creates []string
	for i := range 10 {
		name := fmt.Sprintf("page-%d", i)
		children = append(children, page(name, "text: one"))
		creates = append(creates, "create configmaps "+name)
	}
	mark := k.Mark()
	k.Apply(parent("web", children...))
	k.Eventually("some children are made", func() error {
		if n := len(k.ChildWrites(mark)); n < writes {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
	if err := engine.Kill(); err != nil {
		t.Fatal(err)
	}
	if n := len(k.ChildWrites(mark)); n == 10 {
		t.Fatal("the kill came too late: all children are made")
	}
	if err := engine.Restart(); err != nil {
		t.Fatal(err)
	}
	await(k, "Web", "web", "status.observedGeneration", "1")
	awaitSync(k, "web")
	if diff := cmp.Diff(creates, sorted(completed(k.ChildWrites(mark)))); diff != "" {
		t.Errorf("all writes of both engines to children (-want +got):\n%s", strings.TrimSpace(diff))
	}
}

// completed returns writes without the mark of the one that was in flight at the kill: the audit
// log has it with status 504, because its client was gone. The API server completed it unless the
// next engine had to send it again.
func completed(writes []string) []string {
	cut := slices.IndexFunc(writes, func(w string) bool { return strings.HasSuffix(w, " 504") })
	if cut < 0 {
		return writes
	}
	whole := strings.TrimSuffix(writes[cut], " 504")
	if slices.Contains(writes, whole) {
		return slices.Delete(slices.Clone(writes), cut, cut+1)
	}
	writes = slices.Clone(writes)
	writes[cut] = whole
	return writes
}
