package integration

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/hookloop/hookloop/engine/actor"
	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/test/kit"
	corev1 "k8s.io/api/core/v1"
)

// volumes declares the actor of volumes. slow is called in the action of a slow one.
func volumes(slow func()) *actor.Declaration[*volume] {
	return actor.New("volume", tierActor[*volume]{prefix: "vol-", slow: slow}).Owns(actor.TypeOf[*corev1.ConfigMap]())
}

// TestActorFaults reports every fault on the object, which heals when the fault is gone.
func TestActorFaults(t *testing.T) {
	t.Parallel()
	k := kit.New(t)
	actorCRD(k, "Volume")
	running := runActors(k, volumes(nil))

	k.Apply(volumeNamed("panics", "", "", "panic"))
	k.Apply(volumeNamed("fails", "", "", "action"))
	k.Apply(volumeNamed("a", "b", "", ""))
	k.Apply(volumeNamed("b", "a", "", ""))
	k.Apply(volumeNamed("copy", "", "s", ""))
	k.Apply(volumeNamed("endless", "", "", "finalize"))
	awaitActor(k, "Volume", "panics", actor.ConditionSynced, "False", "panic: as the test asks for")
	awaitActorEvent(k, "panics", "ObservePanicked", "panic: as the test asks for")
	awaitActor(k, "Volume", "fails", actor.ConditionSynced, "False", "the disk is full")
	awaitActorEvent(k, "fails", "BreakFailed", "the disk is full")
	awaitActor(k, "Volume", "a", actor.ConditionDependenciesMet, "False",
		k.Expand(`dependencies of Volume.$GROUP/v1 form a circle: "$NS/a" → "$NS/b" → "$NS/a"`))
	awaitActor(k, "Volume", "copy", actor.ConditionDependenciesMet, "False",
		k.Expand(`Snapshot.$GROUP/v1 "$NS/s": the API server does not serve the kind`))
	awaitActor(k, "Volume", "endless", actor.ConditionSynced, "True", "")
	wantActions(t, running, `hookloop_action_total{action="Break",actor="volume",result="error"}`)
	wantActions(t, running, k.Expand(
		`hookloop_object_condition{condition="Synced",kind="Volume.$GROUP/v1",name="fails",namespace="$NS"} 0`))

	for _, name := range []string{"panics", "fails"} {
		k.Patch("Volume", name, `{"spec":{"fault":""}}`)
		awaitActor(k, "Volume", name, actor.ConditionSynced, "True", "")
	}
	k.Patch("Volume", "b", `{"after":""}`)
	makeReady(k, "vol-b", "true")
	awaitActor(k, "Volume", "a", actor.ConditionDependenciesMet, "True", "1")
	actorCRD(k, "Snapshot")
	awaitActor(k, "Volume", "copy", actor.ConditionDependenciesMet, "False", "does not exist")
	k.Delete("Volume", "endless")
	awaitActor(k, "Volume", "endless", actor.ConditionSynced, "False", "has named no time (RequeueAfter)")
	k.Patch("Volume", "endless", `{"spec":{"fault":""}}`)
	awaitGone(k, "Volume", "endless")
}

// TestBusyActorLeavesRoom has an object with actions without end, and one worker: another object
// gets its turn.
func TestBusyActorLeavesRoom(t *testing.T) {
	t.Parallel()
	k := kit.New(t)
	actorCRD(k, "Volume")
	running := runActors(k, volumes(nil).Actions(3).Controller(func(c *controller.Controller[*volume]) { c.Workers(1) }))
	k.Apply(volumeNamed("busy", "", "", "busy"))
	k.Eventually("the busy volume has taken more steps than one reconcile allows", func() error {
		if o := k.Find("v1/ConfigMap", "vol-busy"); o == nil || !strings.Contains(fmt.Sprint(o.Object["data"]), ".....") {
			return errors.New("it has not")
		}
		return nil
	})
	k.Apply(volumeNamed("other", "", "", ""))
	awaitActor(k, "Volume", "other", actor.ConditionSynced, "True", "")
	awaitActor(k, "Volume", "busy", actor.ConditionSynced, "False", "3 actions in one reconcile")
	wantActions(t, running, `hookloop_action_total{action="Step",actor="volume",result="success"}`)
	k.Patch("Volume", "busy", `{"spec":{"fault":""}}`)
	awaitActor(k, "Volume", "busy", actor.ConditionSynced, "True", "")
}

// TestActorOfAnObjectThatIsDeletedInMidAction lets the action end. It creates nothing then, and
// Finalize follows.
func TestActorOfAnObjectThatIsDeletedInMidAction(t *testing.T) {
	t.Parallel()
	k := kit.New(t)
	actorCRD(k, "Volume")
	started := make(chan struct{})
	release := make(chan struct{})
	free := sync.OnceFunc(func() { close(release) })
	running := runActors(k, volumes(func() {
		close(started)
		<-release
	}))
	defer free() // before the actors are stopped, which wait for the action
	since := k.Mark()
	k.Apply(volumeNamed("slow", "", "", "slow"))
	<-started
	k.Delete("Volume", "slow")
	free()
	awaitGone(k, "Volume", "slow")
	wantOrder(k, since, "create configmaps")
	wantActions(t, running, `hookloop_action_total{action="CreateConfig",actor="volume",result="deleted"} 1`)
	wantActions(t, running, `hookloop_action_total{action="Finalize",actor="volume",result="success"}`)
}

// wantActions expects a line, or its beginning, in the metrics.
func wantActions(t *testing.T, a *actors, line string) {
	t.Helper()
	families, err := a.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			fmt.Fprintf(&text, "%s{%s} %v\n", f.GetName(), strings.Join(labels, ","),
				m.GetCounter().GetValue()+m.GetGauge().GetValue())
		}
	}
	if !strings.Contains(text.String(), line) {
		t.Errorf("metrics have no %s:\n%s", line, &text)
	}
}

// awaitActorEvent waits for an Event about an object with a text in its message.
func awaitActorEvent(k *kit.Kit, name, reason, part string) {
	k.Helper()
	k.Eventually(name+" has the Event "+reason, func() error {
		messages := k.Events(name, reason)
		if !strings.Contains(strings.Join(messages, "\n"), part) {
			return fmt.Errorf("its Events are %q, want %q", messages, part)
		}
		return nil
	})
}
