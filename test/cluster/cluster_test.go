package cluster_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/hookloop/hookloop/test/cluster"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

func TestMain(m *testing.M) { cluster.Main(m) }

func TestServiceAccountHasNoRights(t *testing.T) {
	c := cluster.Start(t)
	config, err := c.ServiceAccount(t.Context(), "default", "nobody")
	if err != nil {
		t.Fatal(err)
	}
	_, err = kubernetes.NewForConfigOrDie(config).CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("listing Secrets = %v, want Forbidden", err)
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
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
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
