package integration

import (
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/test/kit"
)

// TestGRPCHookHangs suspends a gRPC hook under 20 edits a second: its connections stay open, and
// nothing answers. Its webhook answers within the hook's timeout, until some time after the gRPC
// hook continues. No child is deleted, written twice or goes back to an earlier edit.
func TestGRPCHookHangs(t *testing.T) {
	parallel(t)
	for name, prefix := range map[string]string{"over a stream": "stream:", "over unary calls": "grpc:"} {
		t.Run(name, func(t *testing.T) {
			const parents = 20
			k := start(t)
			_, labels := ownEngine(k)
			mirror := mirrorProcess(k, "")
			webhook := k.Hook(kit.Mirror)
			run(t, k, kit.Composite{
				Sync: prefix + mirror.address + " or " + webhook.URL, Labels: labels, Timeout: "2s",
			})
			history := k.History("v1/ConfigMap")
			e := startEdits(k, parents, 20)
			await(k, "v1/ConfigMap", e.name(parents-1), "metadata.name", e.name(parents-1))

			if err := mirror.Pause(); err != nil {
				t.Fatal(err)
			}
			paused := time.Now()
			awaitFallback(k, v1alpha1.ReasonWebhook)
			t.Logf("the webhook answered %s after the gRPC hook was suspended", time.Since(paused).Round(time.Millisecond))
			if err := mirror.Resume(); err != nil {
				t.Fatal(err)
			}
			awaitFallback(k, v1alpha1.ReasonGRPC)
			webhook.Stop() // it is not needed any more
			e.halt()
			e.awaitAll()
			k.Settled(time.Second)

			longest, edited := e.judge(history)
			t.Logf("%d edits of %d parents; the longest time between an edit and its child was %s, of an edit %s after the "+
				"suspension", e.count(), parents, longest.Round(time.Millisecond), edited.Sub(paused).Round(time.Millisecond))
		})
	}
}
