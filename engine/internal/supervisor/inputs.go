package supervisor

import (
	"context"
	"strings"
	"time"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// missingInputs returns the message about the input resources that the API server does not serve;
// empty for none.
func (c *config) missingInputs() string { return strings.Join(c.found.problems, "; ") }

// noteInputs records an Event if input resources are missing for longer than missingGrace. Before
// that it returns the rest of the time.
func (s *Supervisor) noteInputs(ctx context.Context, key object.Ref, c *config) time.Duration {
	problem := c.missingInputs()
	if problem == "" {
		s.missing.forget(key)
		return 0
	}
	wait, due := s.missing.note(key, problem)
	if due {
		s.Events.Warning(ctx, c.object, v1alpha1.ReasonInputNotFound, problem)
	}
	return wait
}

// withInputs adds the missing input resources to the condition of a running controller.
func (c *config) withInputs(ready hook.Condition) hook.Condition {
	problem := c.missingInputs()
	if problem == "" || ready.Status != metav1.ConditionTrue {
		return ready
	}
	if ready.Reason == v1alpha1.ReasonRunning {
		ready.Reason = v1alpha1.ReasonInputNotFound
	}
	ready.Message += "; " + problem
	return ready
}
