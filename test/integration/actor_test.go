package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine"
	"github.com/hookloop/hookloop/engine/actor"
	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/kit"
	"github.com/prometheus/client_golang/prometheus"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

// actorCRD installs the CRD of a kind of the tests, with fields that name dependencies.
func actorCRD(k *kit.Kit, kind string) {
	k.Helper()
	k.Apply(strings.NewReplacer("KIND", kind, "LOWER", strings.ToLower(kind)).Replace(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: LOWERs.$GROUP}
spec:
  group: $GROUP
  scope: Namespaced
  names: {kind: KIND, plural: LOWERs, singular: LOWER}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        x-kubernetes-preserve-unknown-fields: true
`))
}

// actors are running actors of a test.
type actors struct {
	spans    *tracetest.InMemoryExporter
	registry *prometheus.Registry
	stop     func()
}

// runActors runs actors in a process part of their own until stop is called or the test ends.
func runActors(k *kit.Kit, declared ...controller.Declared) *actors {
	k.Helper()
	a := &actors{spans: tracetest.NewInMemoryExporter(), registry: prometheus.NewRegistry()}
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(a.spans))
	config := rest.CopyConfig(k.Cluster.Admin())
	config.UserAgent = "hookloop/actors"
	runner, err := engine.New(k.Context(), engine.Config{
		Rest:              config,
		ClientQPS:         -1,
		Controllers:       declared,
		ControllersOnly:   true,
		DiscoveryInterval: time.Second,
		Scheme:            actorScheme(k.Group),
		Workers:           2,
		Tracer:            provider.Tracer("test"),
		Sampled:           func(trace.TraceID) bool { return true },
		Registry:          a.registry,
	})
	if err != nil {
		k.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- runner.Run(ctx) }()
	a.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			k.Errorf("the engine of the actors ended with: %v", err)
		}
		runner.Close()
	})
	k.Cleanup(a.stop)
	k.Eventually("the actors run", func() error {
		if problems := runner.Problems(); len(problems) > 0 || !runner.Ready() {
			return fmt.Errorf("ready is %v, problems are %v", runner.Ready(), problems)
		}
		return nil
	})
	return a
}

// awaitActor waits until a condition of an object has a status, and a text in its message.
func awaitActor(k *kit.Kit, kind, name, condition, status, part string) {
	k.Helper()
	k.Eventually(fmt.Sprintf("%s %s: %s is %s", kind, name, condition, status), func() error {
		o, err := k.Lookup(kind, name)
		if err != nil {
			return err
		}
		c := kit.Condition(o, condition)
		if c["status"] != status || !strings.Contains(fmt.Sprint(c["message"]), part) {
			return fmt.Errorf("it is %v", c)
		}
		return nil
	})
}

// makeReady waits for the data plane of a tier, and makes it ready or not.
func makeReady(k *kit.Kit, name, ready string) {
	k.Helper()
	k.Eventually("the ConfigMap "+name, func() error {
		_, err := k.Lookup("v1/ConfigMap", name)
		return err
	})
	k.Patch("v1/ConfigMap", name, fmt.Sprintf(`{"data":{"ready":%q}}`, ready))
}

// startDatabase makes the kinds of a database and runs its actors.
func startDatabase(t *testing.T) (*kit.Kit, *actors) {
	t.Helper()
	t.Parallel()
	k := kit.New(t)
	for _, kind := range []string{"LogService", "DNGroup", "CNGroup", "MatrixOneCluster"} {
		actorCRD(k, kind)
	}
	return k, runActors(k, database()...)
}

const volumeManifest = `
apiVersion: $GROUP/v1
kind: Volume
metadata: {name: NAME, namespace: $NS}
after: "AFTER"
snapshot: "FROM"
spec: {fault: "FAULT", size: 1}
`

func volumeNamed(name, after, from, fault string) string {
	return strings.NewReplacer("NAME", name, "AFTER", after, "FROM", from, "FAULT", fault).Replace(volumeManifest)
}

// TestActorsInOrder makes a database: each tier starts when the ones below are ready, waits again
// when one is lost, and continues after a restart of the process. The teardown is in reverse order.
func TestActorsInOrder(t *testing.T) {
	k, running := startDatabase(t)
	since := k.Mark()
	k.Object("MatrixOneCluster", "mo").Set("spec.size", 3).Apply()
	awaitActor(k, "DNGroup", "mo", actor.ConditionDependenciesMet, "False",
		k.Expand(`LogService.$GROUP/v1 "$NS/mo": condition Ready is`))
	makeReady(k, "log-mo", "true")
	makeReady(k, "dn-mo", "true")
	awaitActor(k, "DNGroup", "mo", actor.ConditionDependenciesMet, "True", "1")
	makeReady(k, "cn-mo", "true")
	awaitActor(k, "MatrixOneCluster", "mo", "Ready", "True", "it runs")
	awaitActor(k, "MatrixOneCluster", "mo", actor.ConditionSynced, "True", "")
	wantOrder(k, since, "create configmaps", "log-mo", "dn-mo", "cn-mo")
	if got := fmt.Sprint(k.Get("v1/ConfigMap", "cn-mo").Object["data"]); !strings.Contains(got, "from:mo:6001") {
		t.Errorf("data of the CNGroup = %s, want the endpoint of the DNGroup", got)
	}
	deps := fmt.Sprint(k.Get("DNGroup", "mo").Object["deps"])
	parts := map[string]bool{k.Expand("namespace:$NS"): true, "size": false, "uid": false, "endpoint": false}
	for part, want := range parts {
		if strings.Contains(deps, part) != want {
			t.Errorf("deps = %s, want namespace and name only", deps)
		}
	}
	k.NoWrites(func() { k.Settled(settled) })

	k.Patch("v1/ConfigMap", "log-mo", `{"data":{"ready":"false"}}`)
	awaitActor(k, "CNGroup", "mo", actor.ConditionDependenciesMet, "False", "expected True: it starts")
	running.stop()
	runActors(k, database()...)
	k.Patch("v1/ConfigMap", "log-mo", `{"data":{"ready":"true"}}`)
	awaitActor(k, "CNGroup", "mo", actor.ConditionDependenciesMet, "True", "2")

	k.Delete("LogService", "mo")
	awaitActor(k, "LogService", "mo", actor.ConditionSynced, "False",
		k.Expand(`until its dependents are gone: DNGroup.$GROUP/v1 "$NS/mo", CNGroup.$GROUP/v1 "$NS/mo"`))
	since = k.Mark()
	k.Delete("MatrixOneCluster", "mo")
	for _, kind := range []string{"MatrixOneCluster", "LogService", "DNGroup", "CNGroup"} {
		awaitGone(k, kind, "mo")
	}
	wantOrder(k, since, "delete configmaps", "cn-mo", "dn-mo", "log-mo")
}

// wantOrder compares the order of successful writes with the expected one.
func wantOrder(k *kit.Kit, since cluster.Mark, what string, names ...string) {
	k.Helper()
	var got []string
	for _, w := range k.Writes(since) {
		if w.Verb+" "+w.Resource == what && w.Code < 300 {
			got = append(got, w.Name)
		}
	}
	if !slices.Equal(got, names) {
		k.Errorf("%s: got %v, want %v", what, got, names)
	}
}

func awaitGone(k *kit.Kit, kind, name string) {
	k.Helper()
	k.Eventually(kind+" "+name+" is gone", func() error {
		if o, err := k.Lookup(kind, name); err == nil {
			return fmt.Errorf("it exists with the condition %v", kit.Condition(o, actor.ConditionSynced))
		} else if !apierrors.IsNotFound(err) {
			return err
		}
		return nil
	})
}
