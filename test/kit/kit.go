// Package kit is a small language for integration tests: apply, read, change and delete objects,
// wait for a condition, and read from the audit log which writes an engine made.
//
// It holds no expectations of its own. Its data comes from the real API server of package cluster.
// A Kit belongs to one test; each has a namespace and an API group of its own, so that tests run in
// parallel. Its methods end the test if the API server refuses a request, so that only the test's
// own goroutine may call them. The tests beside the code run on a real cluster.
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

// Kit is the view that one test has of the cluster.
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

// Expand replaces $NS, $GROUP and $NAME in a text by the kit's names.
func (k *Kit) Expand(text string) string {
	return strings.NewReplacer("$NS", k.Namespace, "$GROUP", k.Group, "$NAME", k.Name).Replace(text)
}

// The time between two tries of a condition grows from minPoll to maxPoll: many tests wait at a
// time, and share the processors with the API server that answers them.
const (
	minPoll = 25 * time.Millisecond
	maxPoll = 100 * time.Millisecond
)

// Eventually waits until condition returns nil, and fails with its last error after Deadline. A
// condition reads objects with Lookup or Find, because Get ends the test if the object does not
// exist.
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
