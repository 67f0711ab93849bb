// Package integration tests the complete engine on a real control plane: API server, etcd and
// controller manager as in production, with RBAC, and with the audit log as the record of all
// writes.
//
// It holds no unit tests; those are beside the code. All tests of the package share one cluster
// (package test/cluster), one engine in this process and one hook in another. Therefore each test
// has its own namespace, names and API group. "make controlplane build" builds the programs first.
package integration

import (
	"os"
	"testing"

	"github.com/hookloop/hookloop/test/cluster"
)

// TestMain runs the tests, or a hook in a child process of theirs.
func TestMain(m *testing.M) {
	if os.Getenv(asHook) != "" {
		mirrorMain()
		return
	}
	if os.Getenv(asNamedHooks) != "" {
		namedMain()
		return
	}
	cluster.Main(tests{m})
}
