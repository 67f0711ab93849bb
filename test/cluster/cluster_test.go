package cluster_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hookloop/hookloop/test/cluster"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// TestMain runs the tests. In the child process of TestProcessesDieWithTheirParent it runs a
// cluster.
func TestMain(m *testing.M) {
	if os.Getenv(parentEnv) != "" {
		beParent()
	}
	cluster.Main(m)
}

// TestStart logs the duration of a start.
func TestStart(t *testing.T) {
	started := time.Now()
	c, err := cluster.New(t.Context(), cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("ready after %s", time.Since(started).Round(10*time.Millisecond))
	dir := filepath.Dir(c.Kubeconfig())
	for range 2 {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder %s after Stop: %v, want that it is removed", dir, err)
	}
}

func TestAuditLogShowsWrites(t *testing.T) {
	c := cluster.Start(t)
	mark, err := c.Mark()
	if err != nil {
		t.Fatal(err)
	}
	create(t, c, "audited")
	writes, err := c.Writes(mark)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range writes {
		if w.Verb == "create" && w.Resource == "configmaps" && w.Name == "audited" && w.Code == 201 && w.User == "admin" {
			return
		}
	}
	t.Errorf("the create is not among the writes: %v", writes)
}

func TestDataOutlivesTheAPIServer(t *testing.T) {
	c := cluster.Start(t)
	create(t, c, "kept")
	if err := c.APIServer.Restart(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if err := c.AwaitAPIServer(ctx); err != nil {
		t.Fatal(err)
	}
	out, err := c.Kubectl(ctx, "get", "configmap", "kept", "-o", "name")
	if err != nil || strings.TrimSpace(out) != "configmap/kept" {
		t.Errorf("kubectl get = %q, %v", out, err)
	}
}

func create(t *testing.T, c *cluster.Cluster, name string) {
	t.Helper()
	client := kubernetes.NewForConfigOrDie(c.Admin())
	_, err := client.CoreV1().ConfigMaps("default").Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}
