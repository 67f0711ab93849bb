package supervisor

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestNoticesAreConditions(t *testing.T) {
	of := func(kind hook.ControllerKind, ops ...hook.Op) *declared {
		out := &declared{kind: kind.Descriptor(), hooks: map[hook.Op]*v1alpha1.Hook{}}
		for _, op := range ops {
			out.hooks[op] = &v1alpha1.Hook{}
		}
		return out
	}
	declaredOps := func(ops ...hook.Op) *declared { return of(hook.Composite, ops...) }
	match := func(reason, message string) hook.Condition {
		status := metav1.ConditionFalse
		if reason == "Match" {
			status = metav1.ConditionTrue
		}
		return hook.Condition{Type: "HooksMatch", Status: status, Reason: reason, Message: message}
	}
	for name, c := range map[string]struct {
		declared    *declared
		served      map[hook.Op][]hook.Op
		intercepted []string
		answering   map[hook.Op]hook.Answering
		before      string // a condition
		want        []hook.Condition
	}{
		"webhooks say nothing": {declared: declaredOps(hook.Sync)},
		"all is served, and nothing else": {
			declared: declaredOps(hook.Sync, hook.Finalize),
			served:   map[hook.Op][]hook.Op{hook.Sync: {hook.Sync, hook.Finalize}, hook.Finalize: {hook.Sync, hook.Finalize}},
			want:     []hook.Condition{match("Match", "the hooks serve what is declared, and nothing else")},
		},
		"finalize is served and not declared": {
			declared: declaredOps(hook.Sync), served: map[hook.Op][]hook.Op{hook.Sync: {hook.Sync, hook.Finalize}},
			want: []hook.Condition{match("NotDeclared",
				"the hook has a function for finalize, but spec.hooks.finalize is not declared: "+
					"parents are deleted without it being called")},
		},
		"finalize is declared and not served": {
			declared: declaredOps(hook.Sync, hook.Finalize), served: map[hook.Op][]hook.Op{hook.Sync: {hook.Sync},
				hook.Finalize: {hook.Sync}},
			want: []hook.Condition{match("NotServed", "spec.hooks.finalize is declared, but its hook has no function for it: "+
				"parents that are deleted will hang in Terminating")},
		},
		"customize is another program's, which says nothing": {
			declared: declaredOps(hook.Sync, hook.Customize), served: map[hook.Op][]hook.Op{hook.Sync: {hook.Sync}},
			want: []hook.Condition{match("Match", "the hooks serve what is declared, and nothing else")},
		},
		"tombstone is served and not declared": {
			declared: of(hook.Mapping, hook.Map), served: map[hook.Op][]hook.Op{hook.Map: {hook.Map, hook.Tombstone}},
			want: []hook.Condition{match("NotDeclared",
				"the hook has a function for tombstone, but spec.hooks.tombstone is not declared: "+
					"the outputs of an input that is gone are deleted without it being called")},
		},
		"an intercept": {
			declared: declaredOps(hook.Sync), intercepted: []string{"ann (name web)", "bob (all parents)"},
			want: []hook.Condition{{
				Type: "Intercepted", Status: metav1.ConditionTrue, Reason: "Intercepted",
				Message: "answered in place of the controller's hooks by ann (name web); bob (all parents)",
			}},
		},
		"no intercept any more": {
			declared: declaredOps(hook.Sync), before: "Intercepted",
			want: []hook.Condition{{Type: "Intercepted", Status: metav1.ConditionFalse, Reason: "NotIntercepted",
				Message: "the controller's hooks answer for all parents"}},
		},
		"gRPC answers": {
			declared: declaredOps(hook.Sync), answering: map[hook.Op]hook.Answering{hook.Sync: {Transport: "grpc"}},
			want: []hook.Condition{{Type: "Fallback", Status: metav1.ConditionFalse, Reason: "GRPC",
				Message: "the preferred transport answers"}},
		},
		"the webhook answers": {
			declared:  declaredOps(hook.Sync),
			answering: map[hook.Op]hook.Answering{hook.Sync: {Transport: "webhook", Cause: "connection refused"}},
			want: []hook.Condition{{Type: "Fallback", Status: metav1.ConditionTrue, Reason: "Webhook",
				Message: "spec.hooks.sync is answered by webhook: connection refused"}},
		},
		"the webhook answers one of two": {
			declared: declaredOps(hook.Sync, hook.Finalize),
			answering: map[hook.Op]hook.Answering{
				hook.Sync: {Transport: "grpc"}, hook.Finalize: {Transport: "webhook", Cause: "the hook does not serve it"},
			},
			want: []hook.Condition{{Type: "Fallback", Status: metav1.ConditionTrue, Reason: "GRPCAndWebhook",
				Message: "spec.hooks.finalize is answered by webhook: the hook does not serve it"}},
		},
		"no fallback is declared any more": {
			declared: declaredOps(hook.Sync), before: "Fallback",
			want: []hook.Condition{{Type: "Fallback", Status: metav1.ConditionFalse, Reason: "NoFallback",
				Message: "no hook has a fallback"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := &notices{changed: func() {}, served: map[hook.Op][]hook.Op{}}
			for op, ops := range c.served {
				n.of(op).Serves(ops)
			}
			n.of(hook.Sync).Intercepted(c.intercepted)
			for op, a := range c.answering {
				n.of(op).Answering(a)
			}
			has := func(condition string) bool { return condition == c.before }
			if diff := cmp.Diff(c.want, n.conditions(c.declared, has)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}
