package integration

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"

	"github.com/hookloop/hookloop/test/kit"
	"github.com/hookloop/hookloop/test/serve"
)

// TestHookComesBack stops a webhook that all parents need. Occasional probes replace the parents'
// calls, and when the hook is back, all parents are synced.
func TestHookComesBack(t *testing.T) {
	const parents = 40
	k := start(t)
	k.CRD("Web", "Namespaced")
	engine, labels := ownEngine(k)
	hook := k.Hook(kit.Mirror)
	k.Run(kit.Composite{Parent: "webs", Children: []string{"v1/configmaps InPlace"}, Sync: hook.URL, Labels: labels})
	name := func(i int) string { return fmt.Sprintf("web-%02d", i) }
	apply := func(text string) {
		for i := range parents {
			k.Apply(parent(name(i), page(name(i), "text: "+text)))
		}
	}
	synced := func(text string) {
		k.Eventually("all children are "+text, func() error {
			for i := range parents {
				o, err := k.Lookup("v1/ConfigMap", name(i))
				if err != nil {
					return err
				}
				if got := o.Object["data"].(map[string]any)["text"]; got != text {
					return fmt.Errorf("%s is %v", name(i), got)
				}
			}
			return nil
		})
	}
	apply("one")
	synced("one")
	hook.Stop()
	apply("two")
	const probes = 4
	k.Eventually("the hook is probed", func() error {
		if n := missed(k, engine); n < parents+probes {
			return fmt.Errorf("it was asked %d times", n)
		}
		return nil
	})
	before := missed(k, engine)
	k.Eventually("the hook is probed on", func() error {
		if n := missed(k, engine); n < before+probes {
			return fmt.Errorf("it was asked %d times", n-before)
		}
		return nil
	})
	if n := missed(k, engine); n > 2*parents {
		t.Errorf("a hook that is down was asked %d times about %d parents", n, parents)
	} else {
		t.Logf("a hook that is down was asked %d times about %d parents", n, parents)
	}
	hook.Start()
	synced("two")
}

var missedCalls = regexp.MustCompile(`metacontroller_sync_requests_total\{code="HookUnreachable"[^}]*\} (\d+)`)

// missed returns the number of questions that did not reach a hook.
func missed(k *kit.Kit, e *serve.Engine) int {
	k.Helper()
	text, err := serve.Fetch(k.Context(), "http://"+e.Metrics+"/metrics")
	if err != nil {
		k.Fatal(err)
	}
	total := 0
	for _, match := range missedCalls.FindAllStringSubmatch(text, -1) {
		n, err := strconv.Atoi(match[1])
		if err != nil {
			k.Fatal(err)
		}
		total += n
	}
	return total
}
