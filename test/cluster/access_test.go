package cluster_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hookloop/hookloop/test/cluster"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// TestIdentities checks the user and the groups of each configuration, and that only the admin has
// rights.
func TestIdentities(t *testing.T) {
	c := cluster.Start(t)
	user, err := c.User("jane", "readers")
	if err != nil {
		t.Fatal(err)
	}
	file, err := c.ServiceAccountKubeconfig(t.Context(), "default", "robot")
	if err != nil {
		t.Fatal(err)
	}
	account, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	jane := kubernetes.NewForConfigOrDie(user)
	robot := kubernetes.NewForConfigOrDie(account)
	for name, client := range map[string]kubernetes.Interface{
		`User "jane"`: jane, `User "system:serviceaccount:default:robot"`: robot,
	} {
		_, err := client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), name) {
			t.Errorf("listing = %v, want Forbidden for %s", err, name)
		}
	}
	if out, err := c.Kubectl(t.Context(), "create", "clusterrolebinding", "readers", "--clusterrole=view",
		"--group=readers"); err != nil {
		t.Fatal(out, err)
	}
	await(t.Context(), t, func(ctx context.Context) error { // the authorizer reads bindings from a cache
		_, err := jane.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
		return err
	})
}

func TestServiceAccountOfAMissingNamespace(t *testing.T) {
	_, err := cluster.Start(t).ServiceAccount(t.Context(), "nowhere", "robot")
	if !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "nowhere/robot") {
		t.Errorf("ServiceAccount = %v, want NotFound with its name", err)
	}
}

// TestGarbageIsCollected deletes an owner; kube-controller-manager deletes its dependent.
func TestGarbageIsCollected(t *testing.T) {
	awaitCollected(t.Context(), t, cluster.Start(t))
}

func awaitCollected(ctx context.Context, t *testing.T, c *cluster.Cluster) {
	t.Helper()
	maps := kubernetes.NewForConfigOrDie(c.Admin()).CoreV1().ConfigMaps("default")
	owner, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "owner-"}},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	dependent, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		GenerateName:    "dependent-",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := maps.Delete(ctx, owner.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await(ctx, t, func(ctx context.Context) error {
		_, err := maps.Get(ctx, dependent.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the dependent %s is still there: %w", dependent.Name, err)
	})
}

// await polls until condition returns nil, and fails after 30 seconds.
func await(ctx context.Context, t *testing.T, condition func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := condition(ctx)
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal(err)
		}
	}
}
