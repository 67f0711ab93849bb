package supervisor

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// notices hold the reports of the transports about one controller's hooks. It is safe for
// concurrent use.
type notices struct {
	changed func()
	// intercepts is called with the number of intercepts; it may be nil.
	intercepts func(int)

	mu sync.Mutex // guards the fields below
	// served has the operations that each declared hook serves, if the hook reports them.
	served      map[hook.Op][]hook.Op
	intercepted []string
	// answering has the transport that answers for each declared hook that has several.
	answering map[hook.Op]hook.Answering
}

// of returns the observer of one declared hook.
func (n *notices) of(op hook.Op) hook.Observer { return observer{n, op} }

type observer struct {
	*notices
	op hook.Op
}

// Serves records the operations that the hook serves.
func (o observer) Serves(ops []hook.Op) {
	o.mu.Lock()
	same := o.served[o.op] != nil && slices.Equal(o.served[o.op], ops)
	if !same {
		o.served[o.op] = append([]hook.Op{}, ops...)
	}
	o.mu.Unlock()
	if !same {
		o.changed()
	}
}

// Intercepted records who answers for parents in place of the hooks.
func (o observer) Intercepted(by []string) {
	o.mu.Lock()
	same := slices.Equal(o.intercepted, by)
	o.intercepted = by
	o.mu.Unlock()
	if o.intercepts != nil {
		o.intercepts(len(by))
	}
	if !same {
		o.changed()
	}
}

// conditions returns the conditions of the declaring object beside Ready. HooksMatch is absent
// while no hook reports its operations, Intercepted until there was an intercept, and Fallback
// until a hook has several transports. has reports whether the object has a condition.
func (n *notices) conditions(d *declared, has func(condition string) bool) []hook.Condition {
	n.mu.Lock()
	defer n.mu.Unlock()
	var out []hook.Condition
	if len(n.served) > 0 {
		out = append(out, n.match(d))
	}
	if len(n.answering) > 0 || has(v1alpha1.ConditionFallback) {
		out = append(out, fallback(n.answering))
	}
	switch {
	case len(n.intercepted) > 0:
		out = append(out, hook.Condition{
			Type: v1alpha1.ConditionIntercepted, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonIntercepted,
			Message: "answered in place of the controller's hooks by " + strings.Join(n.intercepted, "; "),
		})
	case has(v1alpha1.ConditionIntercepted):
		out = append(out, hook.Condition{
			Type:    v1alpha1.ConditionIntercepted,
			Status:  metav1.ConditionFalse,
			Reason:  v1alpha1.ReasonNotIntercepted,
			Message: "the controller's hooks answer for all parents",
		})
	}
	return out
}

// match compares the declared hooks with what they serve. The caller holds mu.
func (n *notices) match(d *declared) hook.Condition {
	var unserved, undeclared []string
	for _, op := range d.kind.Operations {
		if ops := n.served[op]; d.hooks[op] != nil && ops != nil && !slices.Contains(ops, op) {
			unserved = append(unserved,
				fmt.Sprintf("spec.hooks.%s is declared, but its hook has no function for it%s", op, consequence[op].unserved))
		}
		if d.hooks[op] == nil && n.servedByAny(op) {
			undeclared = append(
				undeclared,
				fmt.Sprintf("the hook has a function for %s, but spec.hooks.%s is not declared%s", op, op,
					consequence[op].undeclared),
			)
		}
	}
	c := hook.Condition{
		Type:    v1alpha1.ConditionHooksMatch,
		Status:  metav1.ConditionFalse,
		Reason:  v1alpha1.ReasonNotServed,
		Message: strings.Join(append(unserved, undeclared...), "; "),
	}
	switch {
	case len(unserved) > 0:
	case len(undeclared) > 0:
		c.Reason = v1alpha1.ReasonNotDeclared
	default:
		c.Status = metav1.ConditionTrue
		c.Reason = v1alpha1.ReasonMatch
		c.Message = "the hooks serve what is " +
			"declared, and nothing else"
	}
	return c
}

// consequence is the effect of a difference.
var consequence = map[hook.Op]struct{ unserved, undeclared string }{
	hook.Finalize: {
		unserved:   ": parents that are deleted will hang in Terminating",
		undeclared: ": parents are deleted without it being called",
	},
	hook.Tombstone: {
		unserved:   ": the outputs of inputs that are gone stay",
		undeclared: ": the outputs of an input that is gone are deleted without it being called",
	},
}

func (n *notices) servedByAny(op hook.Op) bool {
	for _, ops := range n.served {
		if slices.Contains(ops, op) {
			return true
		}
	}
	return false
}
