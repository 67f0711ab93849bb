package integration

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/hookloop/hookloop/test/kit"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// seenBy are the requests of a hook about each parent, without resource versions.
type seenBy struct {
	mu       sync.Mutex // guards requests
	requests map[string][]string
}

// answer notes a request, and answers what the parent's spec holds, with a status.
func (s *seenBy) answer(r kit.Request) any {
	seen, err := json.Marshal([]any{unversioned(r.Parent.Object), unversioned(map[string]any{"c": r.Children})})
	if err != nil {
		return kit.Answer{Code: 500, Body: err.Error()}
	}
	s.mu.Lock()
	s.requests[r.Parent.GetName()] = append(s.requests[r.Parent.GetName()], string(seen))
	s.mu.Unlock()
	answer := map[string]any{"status": map[string]any{"children": len(r.Children["ConfigMap.v1"])}}
	children, _, _ := unstructured.NestedSlice(r.Parent.Object, "spec", "answer", "children")
	answer["children"] = children
	return answer
}

func (s *seenBy) of(parent string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.requests[parent]...)
}

// unversioned returns the JSON of a value without resource versions.
func unversioned(value any) any {
	switch v := value.(type) {
	case map[string]any:
		rest := map[string]any{}
		for key, item := range v {
			if key != "resourceVersion" {
				rest[key] = unversioned(item)
			}
		}
		return rest
	case map[string]map[string]any:
		rest := map[string]any{}
		for key, item := range v {
			rest[key] = unversioned(item)
		}
		return rest
	}
	return value
}

// TestNoQuestionWithoutAChange creates and changes a parent with three children, and changes what a
// hook does not see: then it is not asked. No question is the same as the one before.
func TestNoQuestionWithoutAChange(t *testing.T) {
	k := start(t)
	seen := &seenBy{requests: map[string][]string{}}
	k.CRD("Web", "Namespaced")
	k.Run(kit.Composite{Parent: "webs", Children: []string{"v1/configmaps InPlace"}, Sync: k.Hook(seen.answer).URL})
	asked := func(name, about string) {
		k.Helper()
		k.Eventually(fmt.Sprintf("the hook is asked about %s with %s", name, about), func() error {
			all := seen.of(name)
			if len(all) == 0 || !strings.Contains(all[len(all)-1], about) {
				return fmt.Errorf("it was asked %d times", len(all))
			}
			return nil
		})
	}
	settled := func(round string) { // another parent comes behind the first one on all watches
		k.Helper()
		k.Apply(parent("after-"+round, page("last-"+round, "text: one")))
		asked("after-"+round, `"children":1`)
	}
	k.Apply(parent("web", page("a", "text: one"), page("b", "text: one"), page("c", "text: one")))
	asked("web", `"children":3`)
	settled("build")
	k.Patch("Web", "web", "{spec: {answer: {children: ["+
		strings.Join([]string{page("a", "text: two"), page("b", "text: two"), page("c", "text: two")}, ", ")+"]}}}")
	asked("web", `"text":"two"`)
	before := 0
	for round, quiet := 0, 0; quiet < 3; round++ { // until all events of the round have come
		settled(fmt.Sprint("update-", round))
		quiet++
		if len(seen.of("web")) != before {
			before = len(seen.of("web"))
			quiet = 0
		}
	}
	const forgotten = "{metadata: {managedFields: [{}]}}"
	k.Patch("v1/ConfigMap", "b", forgotten)
	k.Patch("Web", "web", forgotten)
	settled("managers")
	if after := len(seen.of("web")); after != before {
		t.Errorf("%d questions after changes of managedFields alone", after-before)
	}
	k.Patch("Web", "web", "{metadata: {annotations: {touched: again}}}")
	asked("web", `"touched":"again"`)

	all := seen.of("web")
	var again []int
	for i := 1; i < len(all); i++ {
		if all[i] == all[i-1] {
			again = append(again, i+1)
		}
	}
	if len(again) > 0 {
		t.Errorf("questions %d of %d are the one before again:\n%s", again, len(all), all[again[0]-1])
	}
}
