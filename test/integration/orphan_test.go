package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/hookloop/hookloop/test/kit"
)

// TestObjectOfAnEarlierParent has a child with a name that an object of an earlier parent of the
// same name has. Its owner reference has a version that is not served, so that Kubernetes' garbage
// collector cannot decide either. The parent's message names both. When the parent is older than a
// minute, the next sync deletes the object and creates the child.
func TestObjectOfAnEarlierParent(t *testing.T) {
	k := start(t)
	run(t, k, kit.Composite{})
	k.Apply(`
apiVersion: v1
kind: ConfigMap
metadata:
  name: page
  namespace: $NS
  ownerReferences:
  - apiVersion: $GROUP/v0
    kind: Web
    name: web
    uid: before
    controller: true
data:
  text: theirs
`)
	k.Apply(parent("web", page("page", "text: ours")))
	k.AwaitFault("Web", "web", "ChildNameTaken",
		`is controlled by an earlier Web "web" with the UID before, not by the present one`)
	if got := field(k, "v1/ConfigMap", "page", "data.text"); got != "theirs" {
		t.Errorf("the object of the earlier parent has the text %q, want it unchanged", got)
	}

	created := k.Get("Web", "web").GetCreationTimestamp()
	k.Eventually("the parent is older than a minute", func() error {
		if age := time.Since(created.Time); age <= time.Minute {
			return fmt.Errorf("it is %s old", age)
		}
		return nil
	})
	k.Patch("Web", "web", "spec: {answer: {status: {round: now}}}") // do not wait for the backoff
	await(k, "v1/ConfigMap", "page", "data.text", "ours")
}
