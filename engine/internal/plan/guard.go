package plan

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// AllowDeletionsAnnotation on a parent accepts an answer that exceeds its DeletionLimit: "3/120"
// allows 120 deletions while the parent is at generation 3.
const AllowDeletionsAnnotation = "hookloop.dev/allow-deletions"

// DeletionLimit is the largest number of children that one answer may delete. Nil sets no limit.
type DeletionLimit intstr.IntOrString

// exceeded reports whether a number of deletions is above the limit.
func (l *DeletionLimit) exceeded(deletions, observed int) bool {
	switch {
	case l == nil:
		return false
	case l.Type == intstr.Int:
		return deletions > int(l.IntVal)
	}
	percent, err := strconv.Atoi(strings.TrimSuffix(l.StrVal, "%"))
	return err != nil || deletions*100 > percent*observed // one that cannot be read allows nothing
}

// String returns the limit as it was given.
func (l *DeletionLimit) String() string { return (*intstr.IntOrString)(l).String() }

// DeletionLimitError reports that an answer would delete more children than the limit allows.
// Nothing of it is written.
type DeletionLimitError struct {
	Limit               *DeletionLimit
	Deletions, Observed int
	// Generation is the parent's.
	Generation int64
}

func (e *DeletionLimitError) Error() string {
	return fmt.Sprintf("the answer would delete %d of %d children, expected at most %s (deletionLimit): "+
		"nothing of it is written; if it is meant, annotate the parent with %s=%d/%d, or raise the limit",
		e.Deletions, e.Observed, e.Limit, AllowDeletionsAnnotation, e.Generation, e.Deletions)
}

// Guard returns a *DeletionLimitError if the answer behind a plan deletes more than the limit. A
// parent that departs is never held up, and neither are outputs that have lost their input.
func Guard(limit *DeletionLimit, observed *Observed, result Result) error {
	detached := observed.Key.Part != "" && observed.Input == nil
	if limit == nil || result.Undesired == 0 || observed.Finalizing || observed.Parent.Deleting() || detached {
		return nil
	}
	present := 0
	for _, d := range observed.Scope.ChildKinds {
		for _, o := range observed.Children.Of(d.Resource.GVK) {
			if !o.Deleting() {
				present++
			}
		}
	}
	if !limit.exceeded(result.Undesired, present) || allowed(observed.Parent, result.Undesired) {
		return nil
	}
	return &DeletionLimitError{
		Limit: limit, Deletions: result.Undesired, Observed: present, Generation: observed.Parent.Generation(),
	}
}

// allowed reports whether the parent's annotation allows a number of deletions at its present
// generation.
func allowed(parent *object.Object, deletions int) bool {
	at, count, ok := strings.Cut(parent.Annotations()[AllowDeletionsAnnotation], "/")
	if !ok {
		return false
	}
	generation, err := strconv.ParseInt(at, 10, 64)
	if err != nil || generation != parent.Generation() {
		return false
	}
	most, err := strconv.Atoi(count)
	return err == nil && deletions <= most
}
