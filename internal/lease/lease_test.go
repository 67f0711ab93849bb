package lease_test

import (
	"testing"
	"time"

	"github.com/hookloop/hookloop/internal/lease"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/kubernetes/typed/coordination/v1/fake"
	clienttesting "k8s.io/client-go/testing"
)

// TestLockKeepsOtherFields: fields that a Record does not have stay in the Lease, and a Record
// survives a write and a read.
func TestLockKeepsOtherFields(t *testing.T) {
	tracker := clienttesting.NewObjectTracker(scheme.Scheme, scheme.Codecs.UniversalDecoder())
	recorded := &clienttesting.Fake{}
	recorded.AddReactor("*", "*", clienttesting.ObjectReaction(tracker))
	client := (&fake.FakeCoordinationV1{Fake: recorded}).Leases("default")
	ctx := t.Context()

	lock := lease.NewLock(client, "test")
	if _, err := lock.Get(ctx); !apierrors.IsNotFound(err) {
		t.Fatalf("Get of a missing Lease: %v, want NotFound", err)
	}
	if err := lock.Update(ctx, lease.Record{}); err == nil {
		t.Error("Update of a Lease that was not read: no error")
	}
	now := time.Now().Truncate(time.Microsecond)
	want := lease.Record{Holder: "a", Duration: 15 * time.Second, Acquired: now, Renewed: now.Add(1), Transitions: 3}
	if err := lock.Create(ctx, want); err != nil {
		t.Fatal(err)
	}
	strategy := coordinationv1.OldestEmulationVersion
	found, err := client.Get(ctx, "test", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found.Labels, found.Spec.Strategy = map[string]string{"team": "blue"}, &strategy
	if _, err := client.Update(ctx, found, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	got, err := lock.Get(ctx)
	if err != nil || got.Holder != want.Holder || got.Duration != want.Duration || got.Transitions != want.Transitions ||
		!got.Acquired.Equal(want.Acquired) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	want.Holder = "b"
	if err := lock.Update(ctx, want); err != nil {
		t.Fatal(err)
	}
	found, err = client.Get(ctx, "test", metav1.GetOptions{})
	if err != nil || found.Labels["team"] != "blue" || found.Spec.Strategy == nil || *found.Spec.HolderIdentity != "b" {
		t.Errorf("after an update the Lease is %+v, %v, want label, strategy and holder b", found, err)
	}
}
