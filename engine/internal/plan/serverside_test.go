package plan_test

import (
	"encoding/json"
	"testing"

	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// applied is a Pod that server-side apply wrote with a cpu of 1000m, which the server stores as 1.
const applied = `
apiVersion: v1
kind: Pod
metadata:
  name: a
  namespace: shop
  uid: a-uid
  resourceVersion: "1"
  ownerReferences:
  - {apiVersion: example.com/v1, kind: Shop, name: web, uid: shop-uid, controller: true, blockOwnerDeletion: true}
  managedFields:
  - manager: tester
    operation: Apply
    apiVersion: v1
    fieldsType: FieldsV1
    fieldsV1: {"f:spec": {"f:cpu": {}}, "f:metadata": {"f:ownerReferences": {'k:{"uid":"shop-uid"}': {}}}}
spec: {cpu: "1"}
`

const desiredPod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"cpu":"1000m"}}`

// serverSide plans one child under server-side apply.
type serverSide struct {
	t         *testing.T
	scope     plan.Scope
	converged *plan.Converged
}

func newServerSide(t *testing.T, scope string) *serverSide {
	return &serverSide{t: t, scope: scopeOf(t, parentOf(t, ""), scope), converged: plan.NewConverged(0)}
}

func (s *serverSide) plan(desired string, present ...*object.Object) plan.Result {
	s.t.Helper()
	children, err := read(s.scope, []json.RawMessage{json.RawMessage(desired)})
	if err != nil {
		s.t.Fatal(err)
	}
	result, err := plan.Make(plan.Input{
		Observed:  &plan.Observed{Scope: s.scope, Children: complete(s.scope, present...)},
		Converged: s.converged,
		Apply:     plan.Apply{ServerSide: true, Manager: "tester"},
	}, &plan.Desired{Children: children})
	if err != nil {
		s.t.Fatal(err)
	}
	s.converged = result.Converged
	return result
}

func (s *serverSide) answered(a plan.Action, answer *object.Object) {
	s.t.Helper()
	at, err := plan.AfterWrite(a, answer)
	if err != nil {
		s.t.Fatal(err)
	}
	s.converged.Set(a.Ref, at)
}

// verbs returns the verbs of a plan's actions.
func verbs(r plan.Result) []plan.Verb {
	out := []plan.Verb{}
	for _, a := range r.Actions {
		out = append(out, a.Verb)
	}
	return out
}

// changed returns a Pod as it is after a change of an undesired field.
func (s *serverSide) changed(o *object.Object, without ...string) *object.Object {
	s.t.Helper()
	body, err := o.Map()
	if err != nil {
		s.t.Fatal(err)
	}
	metadata := body["metadata"].(map[string]any)
	metadata["resourceVersion"] = o.ResourceVersion() + "0"
	body["status"] = map[string]any{"phase": "Running"}
	if record := o.Applied("tester"); record != nil && len(without) == 0 {
		var fields any
		if err := json.Unmarshal(record, &fields); err != nil {
			s.t.Fatal(err)
		}
		metadata["managedFields"] = []any{map[string]any{
			"manager": "tester", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields,
		}}
	}
	out, err := object.FromMap(body)
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// TestSparedChildOfAnOlderParentVersion leaves a child alone that a dry run has spared, when its
// status changes. Its owner reference names the version of the parent that the controller declared
// when the child was created.
func TestSparedChildOfAnOlderParentVersion(t *testing.T) {
	s := newServerSide(t, recreate)
	s.scope.Owner.GVK = schema.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "Shop"}
	s.scope.Owner.UID = types.UID("shop-uid")
	child := decodeYAML(t, applied)
	first := s.plan(desiredPod, child)
	if len(first.Actions) != 1 || first.Actions[0].Verb != plan.Delete || first.Actions[0].Body == nil {
		t.Fatalf("the first plan is %v, want a delete that asks first", first.Actions)
	}
	s.answered(first.Actions[0], child)
	if again := s.plan(desiredPod, s.changed(child)); len(again.Actions) > 0 || again.Unchanged != 1 {
		t.Errorf("after a change of its status the plan is %v", again.Actions)
	}
}

// TestLostClaimIsFinished loses the request that records a created child as applied. The next plan
// applies the child in place with every method, and deletes nothing for the server's notation of a
// value.
func TestLostClaimIsFinished(t *testing.T) {
	for _, scope := range []string{inPlace, recreate} {
		s := newServerSide(t, scope)
		t.Run(string(s.scope.ChildKinds[0].Method), func(t *testing.T) {
			s.t = t
			claimed := decodeYAML(t, applied)
			unclaimed := s.changed(claimed, "managedFields")
			create := s.plan(desiredPod).Actions[0]
			s.answered(create, unclaimed)
			next := s.plan(desiredPod, unclaimed)
			if got := verbs(next); len(got) != 1 || got[0] != plan.ServerSideApply || !next.Actions[0].Takeover {
				t.Fatalf("the next plan is %v, want an apply that takes over", next.Actions)
			}
			s.answered(next.Actions[0], claimed)
			if rest := s.plan(desiredPod, s.changed(claimed)); len(rest.Actions) > 0 {
				t.Errorf("after the claim the plan is %v", rest.Actions)
			}
			s.converged = plan.NewConverged(0) // a restart before the claim was finished
			after := s.plan(desiredPod, unclaimed)
			if a := after.Actions[0]; a.Verb == plan.Delete && a.Body == nil {
				t.Errorf("after a restart the plan is %v, want that nothing is deleted without a question", after.Actions)
			}
		})
	}
}
