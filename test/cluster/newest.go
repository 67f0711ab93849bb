package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"k8s.io/client-go/discovery"
)

// kubernetes finds the version of Kubernetes in the control plane's go.mod.
var kubernetes = regexp.MustCompile(`(?m)^\s*k8s\.io/kubernetes v1\.(\d+)\.`)

// NeedNewest skips a test if the cluster runs an older Kubernetes than the newest that Hookloop
// supports. why tells the reader what the test needs. Tests of the engine itself should run on all
// versions.
func NeedNewest(t testing.TB, c *Cluster, why string) {
	t.Helper()
	newest, err := newestMinor()
	if err != nil {
		t.Fatal(err)
	}
	client, err := discovery.NewDiscoveryClientForConfig(c.Admin())
	if err != nil {
		t.Fatal(err)
	}
	version, err := client.ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if version.Minor != newest {
		t.Skipf("the control plane is Kubernetes %s.%s, expected 1.%s: %s", version.Major, version.Minor, newest, why)
	}
}

// newestMinor returns the minor version of Kubernetes in the control plane's go.mod.
func newestMinor() (string, error) {
	file := filepath.Join(Root(), "test", "controlplane", "go.mod")
	text, err := os.ReadFile(file) //nolint:gosec // a file of the repository
	if err != nil {
		return "", err
	}
	found := kubernetes.FindSubmatch(text)
	if found == nil {
		return "", fmt.Errorf("%s: no version of k8s.io/kubernetes", file)
	}
	return string(found[1]), nil
}
