// Package integration tests the whole on a real control plane: API server, etcd and controller
// manager as in production, with RBAC and the audit log as the witness of every write.
//
// It holds no unit tests; those stand beside the code. All tests of the package share one cluster
// (package test/cluster), one engine in this process and one hook in another, and so use
// namespaces, names and API groups of their own. "make controlplane build" builds the programs
// first.
package integration

import (
	"os"
	"testing"

	"github.com/hookloop/hookloop/test/cluster"
)

// TestMain runs the tests, or, as a process of theirs, a hook.
func TestMain(m *testing.M) {
	if os.Getenv(asHook) != "" {
		mirrorMain()
		return
	}
	cluster.Main(tests{m})
}
