package integration

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hookloop/hookloop/test/kit"
)

// TestForgedChild has a user of another namespace make an object whose controller reference names
// the parent with its UID. The hook must not see the object, and the engine must not write it.
func TestForgedChild(t *testing.T) {
	for _, version := range []string{"v1", "v2"} {
		t.Run(version, func(t *testing.T) {
			k := start(t)
			var mu sync.Mutex
			var seen []string // the children of each request
			h := k.Hook(func(r kit.Request) any {
				body, err := json.Marshal(r.Children)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, string(body))
				return kit.Mirror(r)
			})
			run(t, k, kit.Composite{Sync: h.URL, Version: version})
			k.Apply(parent("web", page("page", "text: one")))
			await(k, "v1/ConfigMap", "page", "data.text", "one")

			uid := string(k.Get("Web", "web").GetUID())
			k.Object("v1/Namespace", k.Namespace+"-evil").Apply()
			mark := k.Mark()
			k.Apply(`
apiVersion: v1
kind: ConfigMap
metadata:
  name: forged
  namespace: $NS-evil
  labels: {controller-uid: ` + uid + `}
  ownerReferences:
  - {apiVersion: $GROUP/v1, kind: Web, name: web, uid: ` + uid + `, controller: true}
data: {text: evil}`)

			// The next request comes after the event of the forged object, because both resources
			// are read from the same API server in this order.
			k.Apply(parent("web", page("page", "text: two")))
			await(k, "v1/ConfigMap", "page", "data.text", "two")
			k.Eventually("the hook sees the update of its child", func() error {
				mu.Lock()
				defer mu.Unlock()
				if slices.ContainsFunc(seen, func(c string) bool { return strings.Contains(c, `"text":"two"`) }) {
					return nil
				}
				return errors.New("not yet")
			})
			for _, children := range seen {
				if strings.Contains(children, "forged") {
					t.Fatalf("the hook was shown the forged object: %s", children)
				}
			}
			all, err := k.Cluster.Writes(mark)
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range all {
				if w.Name == "forged" && kit.IsEngine(w) {
					t.Errorf("the engine wrote the forged object: %s", w)
				}
			}
		})
	}
}
