package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/kit"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// revision is the kind of the engine's records.
const revision = "metacontroller.k8s.io/v1alpha1/ControllerRevision"

// balls returns a parent that wants n Balls of one colour.
func balls(n int, colour string) string {
	var children []string
	for i := range n {
		children = append(children, fmt.Sprintf(
			"{apiVersion: $GROUP/v1, kind: Ball, metadata: {name: ball-%d}, spec: {colour: %s}}", i, colour))
	}
	return parent("web", children...)
}

// colours returns the colours of the existing Balls: "blue red red".
func colours(k *kit.Kit) string {
	k.Helper()
	var all []string
	for _, o := range k.List("Ball") {
		colour, _, _ := unstructured.NestedString(o.Object, "spec", "colour")
		all = append(all, colour)
	}
	return strings.Join(all, " ")
}

func awaitColours(k *kit.Kit, want string) {
	k.Helper()
	k.Eventually("the Balls are "+want, func() error {
		if got := colours(k); got != want {
			return fmt.Errorf("they are %s", got)
		}
		return nil
	})
}

// awaitUpdated waits for the parent's condition Updated.
func awaitUpdated(k *kit.Kit, reason, part string) {
	k.Helper()
	k.Eventually(fmt.Sprintf("Updated is %s: %s", reason, part), func() error {
		c := kit.Condition(k.Get("Web", "web"), "Updated")
		message, _ := c["message"].(string)
		if c["reason"] != reason || !strings.Contains(message, part) || c["lastTransitionTime"] == nil {
			return fmt.Errorf("it is %v", c)
		}
		return nil
	})
}

// ready sets a Ball's condition, for its generation.
func ready(k *kit.Kit, name, status string) {
	k.Helper()
	generation := k.Get("Ball", name).GetGeneration()
	k.Patch("Ball", name,
		fmt.Sprintf("status: {observedGeneration: %d, conditions: [{type: Ready, status: '%s'}]}", generation, status),
		"status")
}

// ballWrites returns the engine's writes to Balls since a mark.
func ballWrites(k *kit.Kit, since cluster.Mark) []string {
	k.Helper()
	lines := []string{}
	for _, w := range k.Writes(since) {
		if w.Resource == "balls" {
			lines = append(lines, w.Verb+" "+w.Name)
		}
	}
	return lines
}

func runBalls(k *kit.Kit, c kit.Composite) {
	k.Helper()
	k.CRD("Ball", "Namespaced")
	if c.Sync == "" {
		k.Fatal("no hook")
	}
	c.Parent = "webs"
	k.CRD("Web", "Namespaced")
	k.Run(c)
}

// TestRollingUpdate moves five children one at a time, pauses at a failing check, continues after a
// kill of the engine, restores a lost child at its own revision, and rolls back. Run it with -v to
// read it as a story.
func TestRollingUpdate(t *testing.T) {
	k := start(t)
	engine, labels := ownEngine(k)
	runBalls(k, kit.Composite{
		Children: []string{"$GROUP/v1/balls RollingInPlace"}, Sync: mirror(t), Labels: labels,
		Checks: []any{map[string]any{"type": "Ready", "status": "True"}},
	})
	logStep := func(what string) { t.Logf("%-42s %s", colours(k), what) }

	k.Apply(balls(5, "red"))
	awaitColours(k, "red red red red red")
	awaitUpdated(k, "OnLatestRevision", "")
	logStep("five children are created together: there is nothing to update")
	for i := range 5 {
		ready(k, fmt.Sprint("ball-", i), "True")
	}

	mark := k.Mark()
	k.Apply(balls(5, "blue"))
	awaitColours(k, "blue red red red red")
	awaitUpdated(k, "RolloutWaiting", `Ball "ball-0" has status.observedGeneration 1, expected 2`)
	logStep("the first child moves; its own controller has not seen it yet")
	ready(k, "ball-0", "False")
	awaitUpdated(k, "RolloutWaiting", `Ball "ball-0" has condition Ready "False", expected "True"`)
	logStep("the first child fails its check: the rollout pauses")
	ready(k, "ball-0", "True")
	awaitColours(k, "blue blue red red red")
	logStep("the check passes: the second child moves")

	if err := engine.Kill(); err != nil {
		t.Fatal(err)
	}
	ready(k, "ball-1", "True")
	logStep("the engine is killed; the second child passes its check meanwhile")
	if err := engine.Restart(); err != nil {
		t.Fatal(err)
	}
	awaitColours(k, "blue blue blue red red")
	logStep("the engine is back: the third child moves")

	k.Delete("Ball", "ball-4")
	awaitColours(k, "blue blue blue red red")
	logStep("the last child was lost and is back, at its own revision")
	want := []string{"update ball-0", "update ball-1", "update ball-2", "create ball-4"}
	awaitLines(k, "writes to children", want, func() []string { return ballWrites(k, mark) })

	k.Apply(balls(5, "red"))
	awaitUpdated(k, "RolloutWaiting", `Ball "ball-4" has no condition Ready`)
	logStep("rolled back: the lost child has not passed its check yet")
	for i, after := range []string{"red blue blue red red", "red red blue red red", "red red red red red"} {
		ready(k, []string{"ball-4", "ball-0", "ball-1"}[i], "True")
		awaitColours(k, after)
		logStep("one child moves back")
	}
	awaitUpdated(k, "OnLatestRevision", "")
	awaitRevisions(k, 1)
	logStep("done")
	k.Settled(time.Second)
}

// awaitRevisions waits until a number of revisions exists.
func awaitRevisions(k *kit.Kit, want int) []unstructured.Unstructured {
	k.Helper()
	var found []unstructured.Unstructured
	k.Eventually(fmt.Sprintf("%d revisions are on record", want), func() error {
		found = k.List(revision)
		if len(found) != want {
			return fmt.Errorf("%d are", len(found))
		}
		return nil
	})
	return found
}

// TestRollingRecreate recreates one child after the other, in the hook's order. A null status
// counts as no status.
func TestRollingRecreate(t *testing.T) {
	k := start(t)
	runBalls(k, kit.Composite{Children: []string{"$GROUP/v1/balls RollingRecreate"}, Sync: mirror(t)})
	null := func(text string) string { return strings.Replace(text, "answer: {", "answer: {status: null, ", 1) }
	k.Apply(null(balls(3, "red")))
	awaitColours(k, "red red red")
	awaitUpdated(k, "OnLatestRevision", "")
	mark := k.Mark()
	k.Apply(null(balls(3, "blue")))
	awaitUpdated(k, "OnLatestRevision", "")
	awaitColours(k, "blue blue blue")
	k.Settled(time.Second)
	want := []string{"delete ball-0", "create ball-0", "delete ball-1", "create ball-1", "delete ball-2", "create ball-2"}
	if diff := cmp.Diff(want, ballWrites(k, mark)); diff != "" {
		t.Errorf("writes to children (-want +got):\n%s", diff)
	}
}

// TestRollingFollowsScale creates and deletes children immediately, even while the rollout waits.
func TestRollingFollowsScale(t *testing.T) {
	k := start(t)
	runBalls(k, kit.Composite{
		Children: []string{"$GROUP/v1/balls RollingInPlace"}, Sync: mirror(t), Checks: []any{map[string]any{"type": "Ready"}},
	})
	k.Apply(balls(3, "red"))
	awaitColours(k, "red red red")
	for i := range 3 {
		ready(k, fmt.Sprint("ball-", i), "True")
	}
	k.Apply(balls(5, "blue"))
	awaitColours(k, "red red red blue blue")
	awaitUpdated(k, "RolloutWaiting", `Ball "ball-3" has no condition Ready`)
	k.Apply(balls(2, "blue"))
	awaitColours(k, "blue red")
	awaitUpdated(k, "RolloutWaiting", `Ball "ball-0" has status.observedGeneration 1, expected 2`)
	ready(k, "ball-0", "False") // the check requires only the condition
	awaitColours(k, "blue blue")
	awaitUpdated(k, "OnLatestRevision", "")
}

// TestRollingUnderClusterScope rolls children in two namespaces. The revisions of a cluster-scoped
// parent are in the namespace default.
func TestRollingUnderClusterScope(t *testing.T) {
	k := start(t)
	k.CRD("Ball", "Namespaced")
	k.CRD("Site", "Cluster")
	k.Run(kit.Composite{
		Parent:   "sites",
		Children: []string{"$GROUP/v1/balls RollingInPlace"},
		Sync:     mirror(t),
		Checks:   []any{map[string]any{"type": "Ready"}},
	})
	site := func(colour string) string {
		ball := "{apiVersion: $GROUP/v1, kind: Ball, metadata: {name: %s, namespace: %s}, spec: {colour: " + colour + "}}"
		return "apiVersion: $GROUP/v1\nkind: Site\nmetadata: {name: $NS}\nspec: {answer: {children: [" +
			fmt.Sprintf(ball, "ball-0",
				"$NS") + ", " + fmt.Sprintf(ball, "ball-0", "kube-public") + ", " + fmt.Sprintf(ball, "ball-1", "$NS") + "]}}"
	}
	t.Cleanup(func() { k.Delete("Site", k.Namespace) })
	k.Apply(site("red"))
	awaitColours(k, "red red")
	ready(k, "ball-0", "True")
	ready(k, "ball-1", "True")
	k.Apply(site("blue"))
	k.Eventually("the rollout waits for the second child", func() error {
		c := kit.Condition(k.Get("Site", k.Namespace), "Updated")
		if message, _ := c["message"].(string); message != `Ball "`+k.Namespace+`/ball-0" has status.observedGeneration 1, `+
			`expected 2` {
			return fmt.Errorf("its condition is %v", c)
		}
		return nil
	})
	awaitColours(k, "blue red")
}

// TestRevisionsAreAdopted recreates a parent with orphaned children and revisions. It continues the
// rollout of the earlier parent.
func TestRevisionsAreAdopted(t *testing.T) {
	k := start(t)
	engine, labels := ownEngine(k)
	runBalls(k, kit.Composite{
		Children: []string{"$GROUP/v1/balls RollingInPlace"}, Sync: mirror(t), Labels: labels, BySelector: true,
		Checks: []any{map[string]any{"type": "Ready"}},
	})
	selected := func(colour string) string {
		text := strings.ReplaceAll(balls(2, colour), "metadata: {name: ball", "metadata: {labels: {app: web}, name: ball")
		return strings.Replace(text, "spec: {answer", "spec: {selector: {matchLabels: {app: web}}, answer", 1)
	}
	k.Apply(selected("red"))
	awaitColours(k, "red red")
	k.Apply(selected("blue"))
	awaitUpdated(k, "RolloutWaiting", `Ball "ball-0" has no condition Ready`)
	if err := engine.Kill(); err != nil {
		t.Fatal(err)
	}
	// The garbage collector does this for "kubectl delete --cascade=orphan", as soon as it has
	// discovered the kinds.
	before := awaitRevisions(k, 2)
	for _, r := range before {
		k.Patch(revision, r.GetName(), "metadata: {ownerReferences: null}")
	}
	for _, name := range []string{"ball-0", "ball-1"} {
		k.Patch("Ball", name, "metadata: {ownerReferences: null}")
	}
	k.Delete("Web", "web")
	k.Apply(selected("blue"))
	if err := engine.Restart(); err != nil {
		t.Fatal(err)
	}
	awaitUpdated(k, "RolloutWaiting", `Ball "ball-0" has no condition Ready`)
	if got := colours(k); got != "blue red" {
		t.Errorf("the Balls are %s", got)
	}
	for i, r := range awaitRevisions(k, 2) {
		if r.GetUID() != before[i].GetUID() || len(r.GetOwnerReferences()) != 1 ||
			r.GetOwnerReferences()[0].UID != k.Get("Web", "web").GetUID() {
			t.Errorf("revision %s is not the one from before, adopted: %v", r.GetName(), r.GetOwnerReferences())
		}
	}
	ready(k, "ball-0", "True")
	awaitColours(k, "blue blue")
}
