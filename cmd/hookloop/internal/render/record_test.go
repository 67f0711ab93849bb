package render

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestConflicts shows a write that met a newer object only if no retry repairs it, and a conflict
// of field managers, which no retry repairs.
func TestConflicts(t *testing.T) {
	ref := object.Ref{GVK: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespace: "shop", Name: "a"}
	of := subject{"composite/web", hook.ParentKey(ref)}
	synced := func(result string, err error) engine.Sync {
		return engine.Sync{
			Controller: of.controller, Key: of.key, Ops: []hook.Op{hook.Sync}, Result: result, Err: err,
			Writes: []engine.Write{{Verb: "update", Ref: ref, Err: err}},
		}
	}
	newer := synced(stale, fmt.Errorf("update %s: the object has changed", ref))
	managers := synced("SyncFailed", &apierrors.StatusError{ErrStatus: metav1.Status{
		Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: "conflict with kubectl",
	}})
	for _, test := range []struct {
		name           string
		syncs          []engine.Sync
		done           bool
		writes, faults int
	}{
		{"a newer object", []engine.Sync{newer}, false, 0, 0},
		{"a newer object, and a retry", []engine.Sync{newer, newer, synced("changed", nil)}, true, 1, 0},
		{"a newer object, and another fault", []engine.Sync{newer, synced("HookFailed", errors.New("no"))}, true, 1, 1},
		{"a newer object again and again", []engine.Sync{newer, newer, newer, newer, newer, newer}, true, 1, 1},
		{"another field manager", []engine.Sync{managers}, true, 1, 1},
	} {
		r := newRecord()
		for _, s := range test.syncs {
			r.Synced(s)
		}
		if done := r.synced(map[string][]subject{of.controller: {of}}); done != test.done {
			t.Errorf("%s: the round is over: %t, want %t", test.name, done, test.done)
		}
		writes := r.writes()
		faults := r.faults()
		if len(writes) != test.writes || len(faults) != test.faults {
			t.Errorf("%s: got the writes %v and the faults %q, want %d and %d", test.name, writes, faults, test.writes,
				test.faults)
		}
		if test.faults > 0 && !strings.HasPrefix(faults[0], "composite/web shop/a: ") {
			t.Errorf("%s: the fault %q does not name the parent", test.name, faults[0])
		}
	}
}
