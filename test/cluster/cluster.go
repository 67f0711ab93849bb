// Package cluster runs a real Kubernetes control plane on loopback for tests: etcd, the API server,
// the controller manager and kubectl.
//
//	func TestMain(m *testing.M) { cluster.Main(m) }
//
//	func TestX(t *testing.T) {
//		c := cluster.Start(t) // all tests of the package share it
//		client, err := kubernetes.NewForConfig(c.Admin())
//
// `make controlplane` builds the program. Set HOOKLOOP_CONTROLPLANE or KUBEBUILDER_ASSETS to use
// another one. A Cluster is safe for concurrent use.
package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hookloop/hookloop/internal/localplane"
	"k8s.io/client-go/rest"
)

// Cluster is a running control plane.
type Cluster = localplane.Cluster

// Write is a request in the audit log that changes something.
type Write = localplane.Write

// Mark is a position in the audit log.
type Mark = localplane.Mark

// Options configures a Cluster. The zero value works.
type Options struct {
	// Dir is the folder for the data ([localplane.Options]).
	Dir string
	// Program is a program of test/controlplane. If it is empty, New looks for one.
	Program string
	// CRDs are applied before New returns ([localplane.Options]).
	CRDs []string
}

// New starts a control plane and returns when it is ready. Most tests should share one with [Start].
func New(ctx context.Context, o Options) (*Cluster, error) {
	assets := localplane.One(o.Program)
	if o.Program == "" {
		var err error
		assets, err = localplane.Find(ctx, localplane.Search{Built: Built(), Complete: true})
		if err != nil {
			return nil, err
		}
	} else if _, err := os.Stat(o.Program); err != nil {
		return nil, fmt.Errorf("the program is missing (%w); build it with: make controlplane", err)
	}
	return localplane.New(ctx, localplane.Options{Dir: o.Dir, Assets: assets, CRDs: o.CRDs})
}

// Built returns the path of the control plane program that the Makefile builds.
func Built() string { return filepath.Join(Root(), ".cache", "bin", "controlplane") }

// Root returns the folder of the repository: the nearest folder above the working directory with a
// buf.gen.yaml. Use it for paths in tests, which run in the folder of their package.
func Root() string {
	dir, err := os.Getwd()
	if err != nil {
		panic(err) // the working directory of a test was removed
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "buf.gen.yaml")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			panic("no folder above the working directory is the repository; run tests and programs inside it")
		}
		dir = parent
	}
}

// FreePorts returns n TCP ports that are free on loopback.
func FreePorts(n int) ([]int, error) { return localplane.FreePorts(n) }

// WriteKubeconfig writes a client configuration as a kubeconfig file.
func WriteKubeconfig(config *rest.Config, file string) error {
	return localplane.WriteKubeconfig(config, file)
}
