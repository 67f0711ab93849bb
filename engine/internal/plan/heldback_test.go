package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine/internal/plan"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const onDelete = `children: [{apiVersion: v1, kind: Pod, resource: pods, method: OnDelete}]`

// heldBack returns the message of the condition ChangesHeldBack; empty if there is none.
func heldBack(r plan.Result) string {
	for _, c := range r.Conditions {
		if c.Type == plan.ChangesHeldBack && c.Status == metav1.ConditionTrue {
			return c.Message
		}
	}
	return ""
}

// TestOnDeleteReportsWhatItHoldsBack reports a field only if the hook wants it changed, before and
// after a restart.
func TestOnDeleteReportsWhatItHoldsBack(t *testing.T) {
	const cpu = `Pod.v1 "shop/a": spec.cpu; expected another updateStrategy, or the objects to be deleted`
	w := newCluster(t, onDelete)
	w.alter = obstinate
	look := func(what, item, want string) {
		t.Helper()
		for _, again := range []string{"", ", again"} {
			result := w.sync(item)
			if got := heldBack(result); got != want || len(result.Actions) > 0 || (result.HeldBack > 0) != (want != "") {
				t.Errorf("%s%s: held back is %q, want %q; actions %v, held %d",
					what, again, got, want, result.Actions, result.HeldBack)
			}
		}
		w.forget()
		if got := heldBack(w.sync(item)); got != want {
			t.Errorf("%s, after a restart: held back is %q, want %q", what, got, want)
		}
	}
	w.wantWrites("a new child", 1, pod)
	look("the server's notation", pod, "")
	w.meddle(podA, func(body map[string]any) { body["spec"].(map[string]any)["tty"] = false })
	look("drift", pod, "")
	look("a change by the hook beside drift", changed, cpu)
	w.meddle(podA, func(body map[string]any) { body["status"] = "Running" })
	look("the status changes", changed, cpu)
	w.meddle(podA, func(body map[string]any) { body["spec"].(map[string]any)["cpu"] = "2" })
	look("somebody makes the change", changed, "")
	w.meddle(podA, func(body map[string]any) { body["spec"].(map[string]any)["cpu"] = "1" })
	look("and takes it back", changed, cpu)
	look("the hook takes it back", pod, "")
}

// TestOnDeleteUnderServerSideApply has no record of values, and compares quantities.
func TestOnDeleteUnderServerSideApply(t *testing.T) {
	s := newServerSide(t, onDelete)
	child := decodeYAML(t, applied)
	if got := heldBack(s.plan(desiredPod, child)); got != "" {
		t.Errorf("the server's notation is held back: %q", got)
	}
	if got := heldBack(
		s.plan(strings.Replace(desiredPod, "1000m", "2000m", 1), child),
	); !strings.HasPrefix(
		got,
		`Pod.v1 "shop/a": spec.cpu;`,
	) {
		t.Errorf("held back is %q, want spec.cpu", got)
	}
}

// TestHeldBackIsBounded names only a few of many children and fields.
func TestHeldBackIsBounded(t *testing.T) {
	w := newCluster(t, onDelete)
	items := func(value int) (all []string) {
		for i := range 9 {
			var fields []string
			for f := range 9 {
				fields = append(fields, fmt.Sprintf(`"%s%d":%d`, strings.Repeat("f", 300), f, value))
			}
			all = append(all,
				fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p%d"},"spec":{%s}}`, i, strings.Join(fields, ",")))
		}
		return all
	}
	w.wantWrites("new children", 9, items(1)...)
	got := heldBack(w.sync(items(2)...))
	if strings.Count(got, `Pod.v1`) != 3 || strings.Count(got, "and 5 more") != 3 ||
		!strings.Contains(got, "; and 6 more objects;") ||
		len(got) > 1600 {
		t.Errorf("held back is %d bytes: %s", len(got), got)
	}
}
