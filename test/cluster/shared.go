package cluster

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
)

// shared is the cluster of a test binary.
var shared struct {
	once    sync.Once
	cluster *Cluster
	err     error
}

// Start returns the cluster that all tests of a test binary share. The first call starts it. The
// package's TestMain must call Main, which stops it.
func Start(t testing.TB) *Cluster {
	t.Helper()
	shared.once.Do(func() { shared.cluster, shared.err = New(context.Background(), Options{}) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.cluster
}

// Main runs the tests of a package, a *testing.M, and stops the shared cluster. It does not return.
func Main(m interface{ Run() int }) {
	code := m.Run()
	if shared.cluster != nil {
		if err := shared.cluster.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}
