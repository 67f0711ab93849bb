package supervisor

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/internal/engine/pipeline"
	"k8s.io/apimachinery/pkg/types"
)

// TestReplacedParentsAreForgotten has the hooks drop what they hold about a parent that was deleted
// and made anew between two syncs.
func TestReplacedParentsAreForgotten(t *testing.T) {
	var forgotten []types.UID
	i := &instance{hooks: []*hook.Opened{{}, {Forget: func(uid types.UID) { forgotten = append(forgotten, uid) }}}}
	h := &health{recorder: recorder{}, changed: func() {}, replaced: i.forget}
	for _, o := range []pipeline.Outcome{{UID: "new", Replaced: "old"}, {UID: "new"}} {
		h.Synced("composite/web", o)
	}
	if diff := cmp.Diff([]types.UID{"old"}, forgotten); diff != "" {
		t.Errorf("forgotten (-want +got):\n%s", diff)
	}
}
