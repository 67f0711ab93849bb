package supervisor

import (
	"context"
	"fmt"

	"github.com/hookloop/hookloop/engine/object"
)

// warnWithoutStatus records, when a composite controller starts, that its parents have no status
// subresource (compatibility: Events).
func (s *Supervisor) warnWithoutStatus(ctx context.Context, o *object.Object, c *config) {
	for _, r := range c.found.parents {
		if c.kind.OwnsStatus && !r.HasStatus {
			s.Events.Warning(
				ctx,
				o,
				"SyncError",
				fmt.Sprintf("Sync error: parent resource %s does not have subresource 'Status' enabled: "+
					"the hook's status is lost, or each change of it is a new generation of the parent", r),
			)
		}
	}
}
