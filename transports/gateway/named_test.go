package gateway

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/hook/wraptest"
	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	"github.com/hookloop/hookloop/transports/fallback"
)

// TestASessionIsAskedForTheHookByItsName: a worker that serves the hook, and a session that
// intercepts it, also if the hook has a fallback.
func TestASessionIsAskedForTheHookByItsName(t *testing.T) {
	alone := func(h *testGateway) hook.Opener {
		return func(s hook.Config) (*hook.Opened, error) { return h.Open(s, "hello", "shop", time.Minute), nil }
	}
	composed := func(h *testGateway) hook.Opener {
		return (&fallback.Transport{
			Preferred: fallback.Side{Name: "grpc", Open: alone(h)},
			Fallback: fallback.Side{Name: "webhook", Open: func(hook.Config) (*hook.Opened, error) {
				webhook := wraptest.Full()
				webhook.Named = ""
				return webhook, nil
			}},
		}).Open
	}
	for what, opener := range map[string]func(*testGateway) hook.Opener{"alone": alone, "with a fallback": composed} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newTestGateway(t)
				s := settingsOf("web", make(chan hook.Trigger, 10))
				s.Field = json.RawMessage(`{"grpc":{},"webhook":{}}`)
				opened, err := h.Openers(hook.Openers{"grpc": opener(h)})["grpc"](s)
				if err != nil {
					t.Fatal(err)
				}
				worker := h.attach("worker", serves("hello"))
				laptop := h.attach("laptop", intercepting("blue"))
				for parent, asked := range map[string]*testHook{"red": worker, "blue": laptop} {
					h.answerOf(opened, parent)
					if len(asked.calls) == 0 {
						t.Fatalf("the session that answers for %s was not asked", parent)
					}
					request := (<-asked.calls).Request.(*compositev1.SyncRequest)
					if got := request.GetMeta().GetHook(); got != "shop" {
						t.Errorf("about %s: asked for the hook %q, want shop", parent, got)
					}
				}
				if err := opened.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
