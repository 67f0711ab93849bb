package supervisor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Answering records which of the hook's transports answers.
func (o observer) Answering(a hook.Answering) {
	o.mu.Lock()
	before, known := o.answering[o.op]
	if o.answering == nil {
		o.answering = map[hook.Op]hook.Answering{}
	}
	o.answering[o.op] = a
	o.mu.Unlock()
	if !known || before != a {
		o.changed()
	}
}

// fallback returns the condition Fallback. answering has the hooks with several transports.
func fallback(answering map[hook.Op]hook.Answering) hook.Condition {
	c := hook.Condition{Type: v1alpha1.ConditionFallback, Status: metav1.ConditionFalse}
	if len(answering) == 0 {
		c.Reason = v1alpha1.ReasonNoFallback
		c.Message = "no hook has a fallback"
		return c
	}
	var texts []string
	away := 0
	alone := v1alpha1.ReasonGRPC
	withWebhook := v1alpha1.ReasonGRPCAndWebhook
	for _, op := range slices.Sorted(maps.Keys(answering)) {
		if a := answering[op]; a.Cause != "" {
			away++
			texts = append(texts, fmt.Sprintf("spec.hooks.%s is answered by %s: %s", op, a.Transport, a.Cause))
		} else if a.Transport != "grpc" {
			alone = v1alpha1.ReasonTransport
			withWebhook = v1alpha1.ReasonTransportAndWebhook
		}
	}
	switch away {
	case 0:
		c.Reason = alone
		c.Message = "the preferred transport answers"
		return c
	case len(answering):
		c.Reason = v1alpha1.ReasonWebhook
	default:
		c.Reason = withWebhook
	}
	c.Status, c.Message = metav1.ConditionTrue, strings.Join(texts, "; ")
	return c
}
