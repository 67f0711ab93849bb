// Package kit helps to write integration tests: it applies, reads, changes and deletes objects on a
// real API server, waits for a condition, and reads from the audit log what an engine has written.
//
//	k := kit.New(t)
//	k.CRD("Web", "Namespaced")
//	hook := k.Hook(kit.Mirror)
//	k.Run(kit.Composite{Parent: "webs", Children: []string{"v1/configmaps"}, Sync: hook.URL})
//	k.Object("Web", "web").Set("spec.answer.status.phase", "up").Apply()
//	k.AwaitSynced("Web", "web")
//
// Each Kit has its own namespace and API group, so that tests can run in parallel on one cluster
// (package cluster). The package's TestMain must call [cluster.Main].
//
// Most methods end the test when the API server refuses a request. Call them only from the test's
// own goroutine.
package kit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/hookloop/hookloop/test/cluster"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// UserAgent distinguishes the kit's own writes from the engine's in the audit log.
const UserAgent = "hookloop-test"

// Deadline is how long Eventually waits. It is long, because tests share the machine with others.
const Deadline = 2 * time.Minute

// Kit gives one test access to the cluster. Make it with [New].
type Kit struct {
	testing.TB
	Cluster *cluster.Cluster
	// Namespace and Group belong to the test; Name is a short unique name.
	Namespace, Group, Name string

	client dynamic.Interface
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

// New makes a Kit on the shared cluster, and creates its namespace.
func New(t testing.TB) *Kit {
	t.Helper()
	c := cluster.Start(t)
	config := rest.CopyConfig(c.Admin())
	config.UserAgent = UserAgent
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	documents, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("t%06x", rand.N(1<<24)) //nolint:gosec // a name needs no secret
	k := &Kit{
		TB: t, Cluster: c, Namespace: name, Group: name + ".example.com", Name: name,
		client: client, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(documents)),
	}
	k.Apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: $NS}")
	return k
}

// Expand replaces $NS, $GROUP and $NAME in a text with the kit's namespace, group and name.
func (k *Kit) Expand(text string) string {
	return strings.NewReplacer("$NS", k.Namespace, "$GROUP", k.Group, "$NAME", k.Name).Replace(text)
}

// The time between two tries of a condition grows from minPoll to maxPoll, because many tests wait at
// the same time and share the processors with the API server.
const (
	minPoll = 25 * time.Millisecond
	maxPoll = 100 * time.Millisecond
)

// Eventually waits until condition returns nil. After [Deadline] it fails the test with the last
// error. A condition should read objects with [Kit.Lookup] or [Kit.Find], because [Kit.Get] ends the
// test when the object does not exist.
func (k *Kit) Eventually(what string, condition func() error) {
	k.Helper()
	k.EventuallyWithin(Deadline, what, condition)
}

// EventuallyWithin is Eventually with another deadline, for slow operations.
func (k *Kit) EventuallyWithin(limit time.Duration, what string, condition func() error) {
	k.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	begun := time.Now()
	tick := time.NewTicker(minPoll)
	defer tick.Stop()
	for {
		err := condition()
		if err == nil {
			return
		}
		tick.Reset(min(max(time.Since(begun)/10, minPoll), maxPoll))
		select {
		case <-tick.C:
		case <-ctx.Done():
			k.Fatalf("%s: not within %s: %v", what, limit, err)
		}
	}
}
