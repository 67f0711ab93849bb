package plan

import (
	"strings"

	"github.com/hookloop/hookloop/engine/internal/plan/merge"
)

// Difference is a difference between two objects at one field.
type Difference struct {
	// Path is the path of the field: spec.replicas.
	Path          string
	Before, After any
}

// FindDifference returns the difference between two objects at a path, or the first one below it.
// It returns false if they do not differ there.
func FindDifference(before, after map[string]any, path string) (d Difference, found bool) {
	merge.Differences(before, after, func(at string, old, wanted any) {
		if !found && (at == path || strings.HasPrefix(at, path+".")) {
			d = Difference{Path: at, Before: old, After: wanted}
			found = true
		}
	})
	return d, found
}
