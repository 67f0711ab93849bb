package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/test/kit"
)

// TestSlowHookHoldsNobodyUp has a hook that takes a minute for more parents than there are workers.
// Meanwhile another parent and an edit of it are synced.
func TestSlowHookHoldsNobodyUp(t *testing.T) {
	k := start(t)
	hook := k.Hook(func(r kit.Request) any {
		if strings.HasPrefix(r.Parent.GetName(), "slow") {
			<-r.Gone
		}
		return kit.Mirror(r)
	})
	run(t, k, kit.Composite{Sync: hook.URL, Timeout: "60s"})
	const slow = 8
	for i := range slow {
		k.Apply(parent(fmt.Sprintf("slow-%d", i)))
	}
	k.Eventually("all slow parents are asked about", func() error {
		for i := range slow {
			if hook.Asked(fmt.Sprintf("slow-%d", i)) == 0 {
				return fmt.Errorf("slow-%d is not", i)
			}
		}
		return nil
	})
	k.Apply(parent("web", page("page", "text: one")))
	await(k, "v1/ConfigMap", "page", "data.text", "one")
	awaitSync(k, "web")
}
