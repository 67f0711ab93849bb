package integration

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/internal/proc"
	"github.com/hookloop/hookloop/sdk/go/hook"
	"github.com/hookloop/hookloop/test/kit"
)

// asNamedHooks is an environment variable that turns the test program into one hook program with
// two composite hooks, named blog and shop.
const asNamedHooks = "HOOKLOOP_TEST_NAMED_HOOKS"

// namedMain serves both hooks. Each puts its name into the status of its parents.
func namedMain() {
	by := func(name string) hook.Hook {
		return hook.Named(name, hook.Composite{
			Sync: func(context.Context, *hook.SyncRequest) (*hook.SyncResponse, error) {
				return &hook.SyncResponse{Status: map[string]string{"by": name}}, nil
			},
		})
	}
	hook.Main(by("blog"), by("shop"))
}

// TestOneProcessServesTwoControllers: the field grpc.hook selects the hook. A name that the process
// does not have is a condition of the parents, which lists the names.
func TestOneProcessServesTwoControllers(t *testing.T) {
	for _, mode := range []string{"grpc", "stream"} {
		t.Run(mode, func(t *testing.T) {
			first := start(t)
			process := first.Process(proc.Spec{
				Name: "named", Path: os.Args[0], Args: []string{"--listen", "127.0.0.1:0"}, Env: []string{asNamedHooks + "=yes"},
			})
			address := mode + ":" + listening(first, process)
			declare := func(t *testing.T, k *kit.Kit, name string) {
				t.Helper()
				run(t, k, kit.Composite{Sync: address + " hook " + name})
				k.Object("Web", "web").Set("spec.text", "one").Apply()
			}
			second := kit.New(t)
			third := kit.New(t)
			declare(t, first, "blog")
			declare(t, second, "shop")
			declare(t, third, "blgo")
			await(first, "Web", "web", "status.by", "blog")
			await(second, "Web", "web", "status.by", "shop")
			third.Eventually("the condition lists the hooks of the process", func() error {
				c := kit.Condition(third.Get("Web", "web"), "Synced")
				message, _ := c["message"].(string)
				if c["status"] != "False" ||
					!strings.Contains(message, `this server has no composite hook \"blgo\"; it has \"blog\", \"shop\"`) {
					return fmt.Errorf("it is %v", c)
				}
				return nil
			})
			t.Logf("the condition is %v", kit.Condition(third.Get("Web", "web"), "Synced"))
		})
	}
}
