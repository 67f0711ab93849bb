package integration

import (
	"context"
	"encoding/json"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hookloop/hookloop/sdk/go/hook"
	"github.com/hookloop/hookloop/test/kit"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// answerer is a mirror with richer answers: the parent's spec.answer (spec.finally while it is
// being deleted), in the fields of a webhook. If it requires related objects, it names those that
// it gets in the status. With spec.flip it requires them only while it gets none.
type answerer struct {
	address, version string
	asked            func(parent string) int
}

// eachAnswerer runs a story with a webhook of version v2, and a hook over gRPC with the Go SDK.
func eachAnswerer(t *testing.T, story func(t *testing.T, k *kit.Kit, h answerer)) {
	t.Helper()
	parallel(t)
	t.Run("webhook", func(t *testing.T) {
		k := start(t)
		h := k.Hook(answerJSON)
		story(t, k, answerer{address: h.URL, version: "v2", asked: h.Asked})
	})
	t.Run("gRPC", func(t *testing.T) {
		k := start(t)
		story(t, k, serveAnswerer(t))
	})
}

// runAnswerer starts a controller of Webs with all kinds of a website as children.
func runAnswerer(t *testing.T, k *kit.Kit, h answerer) {
	t.Helper()
	run(t, k, kit.Composite{
		Sync: h.address, Finalize: h.address, Version: h.version,
		Children: []string{"v1/configmaps InPlace", "apps/v1/deployments InPlace", "v1/services InPlace"},
	})
}

// again causes another sync of the parent, and waits until the engine no longer writes.
func (h answerer) again(k *kit.Kit, parent string) {
	k.Helper()
	before := h.asked(parent)
	k.Patch("Web", parent, "metadata: {annotations: {again: '"+k.Get("Web", parent).GetResourceVersion()+"'}}")
	k.Eventually("the hook is asked again", func() error {
		if h.asked(parent) == before {
			return errNotAsked
		}
		return nil
	})
	k.Settled(settled)
}

type notAsked struct{}

func (notAsked) Error() string { return "it is not asked" }

var errNotAsked error = notAsked{}

// answerJSON is the answerer as a webhook.
func answerJSON(r kit.Request) any {
	answer, _ := kit.Mirror(r).(map[string]any)
	answer = maps.Clone(answer)
	rules, _ := answer["requirements"].([]any)
	if len(rules) == 0 {
		return answer
	}
	var names []string
	for _, kind := range slices.Sorted(maps.Keys(r.Related)) {
		for name := range r.Related[kind] {
			names = append(names, name[strings.Index(name, "/")+1:])
		}
	}
	answer["status"] = seenStatus(names)
	if flip, _, _ := unstructured.NestedBool(r.Parent.Object, "spec", "flip"); flip && len(r.Related) > 0 {
		delete(answer, "requirements")
	}
	return answer
}

func seenStatus(names []string) map[string]any {
	slices.Sort(names)
	return map[string]any{"seen": strings.Join(names, " ")}
}

// answererParent holds the fields of a parent that the answerer reads.
type answererParent struct {
	Spec struct {
		Flip            bool
		Answer, Finally specAnswer
	}
}

type specAnswer struct {
	Status       map[string]any
	Children     []json.RawMessage
	Finalized    bool
	Conditions   []hook.Condition
	Events       []struct{ Type, Reason, Message string }
	Results      []struct{ Severity, Reason, Message string }
	Requirements []struct {
		APIVersion, Resource, Namespace, Name string
		Names                                 []string
	}
	ChildStates []struct {
		Kind, Name string
		Ready      *bool
		DependsOn  []hook.Dependency
	}
}

// serveAnswerer serves the answerer over gRPC until the test ends.
func serveAnswerer(t *testing.T) answerer {
	t.Helper()
	var mu sync.Mutex
	asked := map[string]int{}
	sync := func(_ context.Context, r *hook.SyncRequest) (*hook.SyncResponse, error) {
		mu.Lock()
		asked[r.Parent.Name]++
		mu.Unlock()
		return answerSDK(r)
	}
	at := make(chan net.Addr, 1)
	ended := make(chan error, 1)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	go func() {
		options := hook.ServeOptions{Listen: "127.0.0.1:0", Listening: func(a net.Addr) { at <- a }}
		ended <- hook.Serve(ctx, options, hook.Composite{Sync: sync, Finalize: sync})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return answerer{address: "grpc:" + (<-at).String(), asked: func(parent string) int {
		mu.Lock()
		defer mu.Unlock()
		return asked[parent]
	}}
}

// answerSDK is the answerer with the SDK's types.
func answerSDK(r *hook.SyncRequest) (*hook.SyncResponse, error) {
	var parent answererParent
	if err := json.Unmarshal(r.Parent.JSON, &parent); err != nil {
		return nil, err
	}
	a := parent.Spec.Answer
	if r.Finalizing {
		a = parent.Spec.Finally
	}
	response := &hook.SyncResponse{
		Status:     a.Status,
		Children:   a.desired(),
		Finalized:  a.Finalized,
		Conditions: a.Conditions,
	}
	for _, e := range a.Events {
		response.Events = append(response.Events,
			hook.Event{Type: hook.EventType(e.Type), Reason: e.Reason, Message: e.Message})
	}
	for _, result := range a.Results {
		response.Results = append(response.Results,
			hook.Result{Severity: hook.Severity(result.Severity), Reason: result.Reason, Message: result.Message})
	}
	if len(a.Requirements) == 0 {
		return response, nil
	}
	var names []string
	for _, group := range r.Related {
		names = slices.AppendSeq(names, maps.Keys(group.Objects))
	}
	response.Status = seenStatus(names)
	for _, rule := range a.Requirements {
		if !parent.Spec.Flip || len(r.Related) == 0 {
			response.Requirements = append(response.Requirements, hook.RelatedRule{
				APIVersion: rule.APIVersion, Resource: rule.Resource, Namespace: rule.Namespace, Names: rule.Names, Name: rule.Name,
			})
		}
	}
	return response, nil
}

// desired returns the children with their states.
func (a specAnswer) desired() []hook.Child {
	children := make([]hook.Child, len(a.Children))
	for i, raw := range a.Children {
		children[i].Object = raw
		var o unstructured.Unstructured
		if err := o.UnmarshalJSON(raw); err != nil {
			continue
		}
		for _, s := range a.ChildStates {
			if s.Kind == o.GetKind() && s.Name == o.GetName() {
				children[i].Ready = s.Ready
				children[i].DependsOn = s.DependsOn
			}
		}
	}
	return children
}
