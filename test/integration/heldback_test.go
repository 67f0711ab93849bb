package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hookloop/hookloop/test/kit"
)

// TestChangesHeldBack: a child of the default method stays unchanged when its hook changes it. The
// parent reports this once, until a user deletes the child.
func TestChangesHeldBack(t *testing.T) {
	k := start(t)
	run(t, k, kit.Composite{Children: []string{"v1/configmaps"}, Resync: 1})
	awaitHeld := func(part string) {
		t.Helper()
		k.Eventually("ChangesHeldBack: "+part, func() error {
			message, _ := kit.Condition(k.Get("Web", "web"), "ChangesHeldBack")["message"].(string)
			if part == "" && message != "" || !strings.Contains(message, part) {
				return fmt.Errorf("it is %q", message)
			}
			return nil
		})
	}
	k.Apply(parent("web", page("page", "text: one")))
	await(k, "v1/ConfigMap", "page", "data.text", "one")
	k.Apply(parent("web", page("page", "text: two")))
	awaitHeld(`ConfigMap.v1 "` + k.Namespace + `/page": data.text;`)
	if got := field(k, "v1/ConfigMap", "page", "data.text"); got != "one" {
		t.Errorf("the child has %q", got)
	}
	k.Settled(3 * time.Second / 2) // more than a resync period
	k.Delete("v1/ConfigMap", "page")
	await(k, "v1/ConfigMap", "page", "data.text", "two")
	awaitHeld("")
}
