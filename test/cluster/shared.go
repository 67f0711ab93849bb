package cluster

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
)

// shared holds the cluster that the tests of this binary use together.
var shared struct {
	once    sync.Once
	cluster *Cluster
	err     error
}

// Start returns the cluster that all tests of a package share. The first call starts it. The
// package's TestMain must call [Main], which stops it.
func Start(t testing.TB) *Cluster {
	t.Helper()
	shared.once.Do(func() { shared.cluster, shared.err = New(context.Background(), Options{}) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.cluster
}

// Main runs the tests of a package, stops the shared cluster and exits. Call it from TestMain with
// the *testing.M.
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
