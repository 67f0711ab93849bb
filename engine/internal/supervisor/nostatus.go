package supervisor

import (
	"context"
	"fmt"

	"github.com/hookloop/hookloop/engine/object"
)

// reportsStatus reports whether a map controller reports the status of parents of a resource. The
// status of other objects than custom resources belongs to their own controllers.
func (r *resources) reportsStatus(parent object.Resource) bool {
	return parent.HasStatus && r.custom(parent)
}

// warnWithoutStatus records, when a controller starts, that its parents have no status subresource
// (compatibility: Events).
func (s *Supervisor) warnWithoutStatus(ctx context.Context, o *object.Object, c *config) {
	for _, r := range c.found.parents {
		problem := ""
		switch {
		case c.kind.ByInput && !c.found.reportsStatus(r):
			problem = "is not a custom resource with subresource 'Status' enabled: its objects get no status, " +
				"and faults of their inputs are Events only"
		case c.kind.OwnsStatus && !r.HasStatus:
			problem = "does not have subresource 'Status' enabled: " +
				"the hook's status is lost, or each change of it is a new generation of the parent"
		}
		if problem != "" {
			s.Events.Warning(ctx, o, "SyncError", fmt.Sprintf("Sync error: parent resource %s %s", r, problem))
		}
	}
}
