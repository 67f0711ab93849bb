package integration

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/sdk/go/hook"
	"github.com/hookloop/hookloop/test/kit"
	"github.com/hookloop/hookloop/test/serve"
	"golang.org/x/time/rate"
)

// awaitFallback waits until the CompositeController's condition Fallback has a reason.
func awaitFallback(k *kit.Kit, reason string) (message string) {
	k.Helper()
	return awaitFallbackOf(k, kit.CompositeController, reason)
}

// awaitFallbackOf does the same for a controller of this kind, with the kit's name.
func awaitFallbackOf(k *kit.Kit, kind, reason string) (message string) {
	k.Helper()
	k.Eventually("the condition Fallback has the reason "+reason, func() error {
		c := kit.Condition(k.Get(kind, k.Name), v1alpha1.ConditionFallback)
		if c["reason"] != reason {
			return fmt.Errorf("the condition is %v", c)
		}
		message, _ = c["message"].(string)
		return nil
	})
	return message
}

// edits are edits of parents at a constant rate. Each sets the text of the parent's child to the
// number of the edit.
type edits struct {
	*kit.Kit
	parents int
	stop    context.CancelFunc
	stopped chan struct{}

	mu   sync.Mutex // guards made
	made []time.Time
}

// startEdits edits parents in turn until halt is called.
func startEdits(k *kit.Kit, parents int, perSecond rate.Limit) *edits {
	ctx, stop := context.WithCancel(k.Context())
	e := &edits{Kit: k, parents: parents, stop: stop, stopped: make(chan struct{})}
	limit := rate.NewLimiter(perSecond, 1)
	go func() {
		defer close(e.stopped)
		for limit.Wait(ctx) == nil {
			e.edit()
		}
	}()
	k.Cleanup(e.halt)
	return e
}

func (e *edits) halt() {
	e.stop()
	<-e.stopped
}

func (e *edits) name(n int) string { return fmt.Sprintf("web-%02d", n%e.parents) }

func (e *edits) edit() {
	e.mu.Lock()
	n := len(e.made)
	e.made = append(e.made, time.Now())
	e.mu.Unlock()
	e.Apply(parent(e.name(n), page(e.name(n), fmt.Sprintf("text: '%d'", n))))
}

// count returns the number of edits so far.
func (e *edits) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.made)
}

// awaitAll waits until every parent's child shows its last edit.
func (e *edits) awaitAll() {
	e.Helper()
	made := e.count()
	for n := made - e.parents; n < made; n++ {
		await(e.Kit, "v1/ConfigMap", e.name(n), "data.text", strconv.Itoa(n))
	}
}

// judge checks that no child was deleted, none was written twice for one edit, and none went back
// to an earlier edit. It returns the longest time between an edit and a child that shows it or a
// later one, and when that edit was made.
func (e *edits) judge(history *kit.History) (longest time.Duration, edited time.Time) {
	e.Helper()
	shown := map[string]int{}
	pending := map[string][]int{}
	for n := range e.count() {
		pending[e.name(n)] = append(pending[e.name(n)], n)
	}
	for _, v := range history.Versions() {
		data, _ := v.Object["data"].(map[string]any)
		text, numbered := data["text"].(string)
		if !numbered {
			continue // not a child
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			e.Fatal(err)
		}
		name := v.GetName()
		if before, seen := shown[name]; v.Deleted || seen && n <= before {
			e.Errorf("%s shows edit %d after %d (deleted: %t)", name, n, before, v.Deleted)
		}
		shown[name] = n
		for len(pending[name]) > 0 && pending[name][0] <= n {
			if made := e.made[pending[name][0]]; v.Seen.Sub(made) > longest {
				longest = v.Seen.Sub(made)
				edited = made
			}
			pending[name] = pending[name][1:]
		}
	}
	return longest, edited
}

// TestGRPCHookIsKilled kills a gRPC hook under 20 edits a second: its webhook answers until some
// time after the gRPC hook is back. No child is deleted or written twice.
func TestGRPCHookIsKilled(t *testing.T) {
	parallel(t)
	for name, prefix := range map[string]string{"over a stream": "stream:", "over unary calls": "grpc:"} {
		t.Run(name, func(t *testing.T) {
			const parents = 20
			k := start(t)
			engine, labels := ownEngine(k)
			mirror := mirrorProcess(k, "")
			webhook := k.Hook(kit.Mirror)
			run(t, k, kit.Composite{Sync: prefix + mirror.address + " or " + webhook.URL, Labels: labels})
			awaitFallback(k, v1alpha1.ReasonGRPC)
			history := k.History("v1/ConfigMap")
			mark := k.Mark()
			e := startEdits(k, parents, 20)
			await(k, "v1/ConfigMap", e.name(parents-1), "metadata.name", e.name(parents-1))

			if err := mirror.Kill(); err != nil {
				t.Fatal(err)
			}
			killed := time.Now()
			if message := awaitFallback(k, v1alpha1.ReasonWebhook); !strings.Contains(message, "is answered by webhook") {
				t.Errorf("the condition's message is %q", message)
			}
			t.Logf("the webhook answered %s after the gRPC hook was killed", time.Since(killed).Round(time.Millisecond))
			before := e.count()
			k.Eventually("edits go on", func() error {
				if n := e.count(); n < before+3*parents {
					return fmt.Errorf("%d edits", n-before)
				}
				return nil
			})
			if n := webhook.Asked(e.name(0)); n == 0 {
				t.Error("the webhook was not asked")
			}
			again := mirrorProcess(k, mirror.address)
			restarted := time.Now()
			awaitFallback(k, v1alpha1.ReasonGRPC)
			t.Logf("the gRPC hook answered %s after it was started again at %s",
				time.Since(restarted).Round(time.Millisecond), again.address)
			webhook.Stop() // it is not needed any more
			e.halt()
			e.awaitAll()
			k.Settled(time.Second)

			longest, edited := e.judge(history)
			t.Logf("%d edits of %d parents; the longest time between an edit and its child was %s, of an edit %s after the kill",
				e.count(), parents, longest.Round(time.Millisecond), edited.Sub(killed).Round(time.Millisecond))
			for _, w := range k.ChildWrites(mark) {
				if strings.HasPrefix(w, "delete configmaps ") {
					t.Errorf("the audit log has %q", w)
				}
			}
			if diff := cmp.Diff([]string{"0"}, metric(k, engine, `hookloop_fallback_active{`)); diff != "" {
				t.Errorf("the metric (-want +got):\n%s", diff)
			}
			k.AwaitControllerEvent("FallbackAnswers")
			k.AwaitControllerEvent("FallbackEnded")
		})
	}
}

// metric returns the values of the series that begin with a text.
func metric(k *kit.Kit, e *serve.Engine, prefix string) (values []string) {
	k.Helper()
	text, err := serve.Fetch(k.Context(), "http://"+e.Metrics+"/metrics")
	if err != nil {
		k.Fatal(err)
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, prefix) {
			_, value, _ := strings.Cut(line, "} ")
			values = append(values, strings.TrimSpace(value))
		}
	}
	return values
}

// TestFallbackAnswersOtherwise has a webhook with other children than the gRPC hook, which stops
// and starts several times: the child follows the side that answers, and does not flap.
func TestFallbackAnswersOtherwise(t *testing.T) {
	k := start(t)
	engine, labels := ownEngine(k)
	mirror := mirrorProcess(k, "")
	webhook := k.Hook(func(kit.Request) any {
		return map[string]any{"children": []any{configMap("page", "webhook")}}
	})
	run(t, k, kit.Composite{Sync: "stream:" + mirror.address + " or " + webhook.URL, Labels: labels})
	history := k.History("v1/ConfigMap")
	k.Apply(parent("web", page("page", "text: grpc")))
	await(k, "v1/ConfigMap", "page", "data.text", "grpc")
	process := mirror.Process
	for range 3 {
		before := returns(engine)
		if err := process.Kill(); err != nil {
			t.Fatal(err)
		}
		k.Patch("Web", "web", "metadata: {annotations: {edit: '"+k.Get("Web", "web").GetResourceVersion()+"'}}")
		await(k, "v1/ConfigMap", "page", "data.text", "webhook")
		process = mirrorProcess(k, mirror.address).Process
		asked := webhook.Asked("web")
		k.Patch("Web", "web", "metadata: {annotations: {edit: '"+k.Get("Web", "web").GetResourceVersion()+"'}}")
		k.Eventually("the webhook goes on", func() error {
			if webhook.Asked("web") == asked && returns(engine) == before {
				return fmt.Errorf("it was asked %d times", asked)
			}
			return nil
		})
	}
	awaitFallback(k, v1alpha1.ReasonGRPC)
	await(k, "v1/ConfigMap", "page", "data.text", "grpc")
	var texts []string
	for _, v := range history.Versions() {
		if v.GetName() == "page" {
			texts = append(texts, v.Object["data"].(map[string]any)["text"].(string))
		}
	}
	want := []string{"grpc"}
	for range max(1, min(len(texts)/2, returns(engine))) {
		want = append(want, "webhook", "grpc")
	}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Errorf("states of the child (-want +got):\n%s", diff)
	}
}

// returns is the number of times that the engine reports that the gRPC hook answers again. It is
// one, unless the machine is so slow that the hook was good for its time between two kills.
func returns(e *serve.Engine) int {
	n := 0
	for line := range strings.Lines(e.Output()) {
		if strings.Contains(line, "a transport answers for a hook") && strings.Contains(line, `"transport":"grpc"`) {
			n++
		}
	}
	return n
}

// TestCircuitNamesTransports has a webhook with other children than the gRPC hook, and a limit that
// one return of the gRPC hook exceeds: the parent's fault names both transports.
func TestCircuitNamesTransports(t *testing.T) {
	k := start(t)
	_, labels := ownEngine(k, "--rewrite-limit=1", "--rewrite-pause=1h")
	mirror := mirrorProcess(k, "")
	webhook := k.Hook(func(kit.Request) any {
		return map[string]any{"status": map[string]any{"by": "mirror"}, "children": []any{configMap("page", "webhook")}}
	})
	run(t, k, kit.Composite{Sync: "stream:" + mirror.address + " or " + webhook.URL, Labels: labels, Resync: 1})
	k.Apply(parent("web", page("page", "text: grpc")))
	await(k, "v1/ConfigMap", "page", "data.text", "grpc")
	k.Settled(2 * time.Second) // no event of the first sync is a cause of the next rewrite
	if err := mirror.Kill(); err != nil {
		t.Fatal(err)
	}
	await(k, "v1/ConfigMap", "page", "data.text", "webhook")
	mirrorProcess(k, mirror.address)
	k.AwaitFault("Web", "web", "CircuitOpen", `the hook was answered by ["webhook" "grpc`)
}

// TestNeitherTransportAnswers reports the reasons of both, and continues with the one that is
// started first.
func TestNeitherTransportAnswers(t *testing.T) {
	k := start(t)
	webhook := k.Hook(kit.Mirror)
	webhook.Stop()
	run(t, k, kit.Composite{Sync: "grpc:127.0.0.1:1 or " + webhook.URL})
	k.Apply(parent("web", page("page", "text: one")))
	k.AwaitFault("Web", "web", "HookUnreachable", "neither transport answers: grpc: Unavailable: ")
	k.AwaitFault("Web", "web", "HookUnreachable", "; webhook: dial tcp "+strings.Split(webhook.URL, "/")[2])
	webhook.Start()
	await(k, "v1/ConfigMap", "page", "data.text", "one")
	awaitFallback(k, v1alpha1.ReasonWebhook)
	k.AwaitSynced("Web", "web")
	table, err := k.Cluster.Kubectl(t.Context(), "get", "cc", k.Name)
	if err != nil || !strings.Contains(table, "ANSWERED BY") || !strings.Contains(table, "Webhook") {
		t.Errorf("kubectl get cc: got %v and\n%s\nwant the column ANSWERED BY with Webhook", err, table)
	}
	t.Log(table)
}

// TestRejectionDoesNotFallBack has a gRPC hook that rejects a parent with INVALID_ARGUMENT: it did
// answer, so the webhook is not asked.
func TestRejectionDoesNotFallBack(t *testing.T) {
	k := start(t)
	webhook := k.Hook(kit.Mirror)
	run(t, k, kit.Composite{Sync: serveGRPC(t) + " or " + webhook.URL})
	k.Apply(parent("web", page("page", "text: one")))
	await(k, "v1/ConfigMap", "page", "data.text", "one")
	k.Patch("Web", "web", "spec: {refuse: it is too late}")
	k.AwaitFault("Web", "web", "HookRejected", "it is too late")
	k.Patch("Web", "web", "spec: {refuse: null, answer: {children: [null]}}")
	k.AwaitFault("Web", "web", "InvalidHookAnswer", "children[0]")
	if n := webhook.Asked("web"); n != 0 {
		t.Errorf("the webhook was asked %d times, want none", n)
	}
	awaitFallback(k, v1alpha1.ReasonGRPC)
}

// TestHalfServedFallback has a gRPC hook without a function for finalize, over each mode: the
// webhook answers that operation, and a deleted parent does not hang.
func TestHalfServedFallback(t *testing.T) {
	parallel(t)
	sync := func(_ context.Context, r *hook.SyncRequest) (*hook.SyncResponse, error) { return answerSDK(r) }
	for name, prefix := range map[string]string{"over a stream": "stream:", "over unary calls": "grpc:"} {
		t.Run(name, func(t *testing.T) {
			k := start(t)
			webhook := k.Hook(kit.Mirror)
			address, _ := serveSDK(t, hook.Composite{Sync: sync})
			both := prefix + address + " or " + webhook.URL
			run(t, k, kit.Composite{Sync: both, Finalize: both})
			k.Apply(parent("web", page("page", "text: one")))
			await(k, "v1/ConfigMap", "page", "data.text", "one")
			if n := webhook.Asked("web"); n != 0 {
				t.Errorf("the webhook was asked to sync %d times, want none", n)
			}
			k.Patch("Web", "web", "spec: {finally: {finalized: true}}")
			k.Delete("Web", "web")
			await(k, "Web", "web", "metadata.name", "")
			message := awaitFallback(k, v1alpha1.ReasonGRPCAndWebhook)
			if !strings.HasPrefix(message, "spec.hooks.finalize is answered by webhook: the hook ") {
				t.Errorf("the condition's message is %q", message)
			}
			if c := kit.Condition(k.Get(kit.CompositeController, k.Name), "HooksMatch"); c != nil && c["status"] != "True" {
				t.Errorf("the condition HooksMatch is %v, want True: the webhook serves finalize", c)
			}
		})
	}
}

// TestNoWorkerHasDialledIn has a webhook as the fallback of a hook that dials in: it answers until
// a worker is there.
func TestNoWorkerHasDialledIn(t *testing.T) {
	k := start(t)
	e := openEntrance(k)
	run(t, k, kit.Composite{Sync: "worker:" + k.Name + " or " + k.Hook(kit.Mirror).URL, Labels: e.labels})
	k.Apply(parent("web", page("page", "text: one")))
	await(k, "v1/ConfigMap", "page", "data.text", "one")
	awaitFallback(k, v1alpha1.ReasonWebhook)
	e.allow("serve", "hookworkers", k.Name)
	mirrorWith(k, "laptop", e.flags("--worker", k.Name)...)
	awaitFallback(k, v1alpha1.ReasonGRPC)
	await(k, "Web", "web", "status.by", "laptop")
}

// serveSDK serves a hook on the SDK until stop is called or the test ends, and returns its address.
func serveSDK(t *testing.T, h hook.Hook) (address string, stop func()) {
	t.Helper()
	at := make(chan net.Addr, 1)
	ended := make(chan error, 1)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	go func() {
		ended <- hook.Serve(ctx, hook.ServeOptions{Listen: "127.0.0.1:0", Listening: func(a net.Addr) { at <- a }}, h)
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return (<-at).String(), stop
}

// TestFallbackIsNoLongerDeclared removes the webhook from a hook: the condition has no stale
// answer.
func TestFallbackIsNoLongerDeclared(t *testing.T) {
	k := start(t)
	address := serveGRPC(t)
	c := kit.Composite{Sync: address + " or " + k.Hook(kit.Mirror).URL}
	run(t, k, c)
	awaitFallback(k, v1alpha1.ReasonGRPC)
	k.Patch(kit.CompositeController, k.Name, "spec: {hooks: {sync: {webhook: null}}}")
	awaitFallback(k, v1alpha1.ReasonNoFallback)
}
