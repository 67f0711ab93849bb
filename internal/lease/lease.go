// Package lease elects one leader among replicas by a Lease of coordination.k8s.io, with the
// protocol of client-go's leader election: replicas of both exclude each other.
//
// client-go's package links the informers and clients of all API groups, a sixth of the engine's
// build. This package holds no fence: a caller that must not write after its lease has ended wraps
// the Lock. A Lock and an Elector are used by one goroutine at a time. The tests run on a clock
// that moves when all replicas wait, with an API server that fails; test/integration uses a real
// one.
package lease

import (
	"context"
	"errors"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	client "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

// Record is the content of a Lease.
type Record struct {
	// Holder is the identity of the leader; empty if the Lease was released.
	Holder string
	// Duration is the time for which the Lease excludes others after they have seen it change.
	Duration time.Duration
	// Acquired and Renewed are times of the holder's clock. Other replicas see only that they
	// change.
	Acquired, Renewed time.Time
	// Transitions counts the changes of the holder.
	Transitions int32
}

// equal reports whether both records are the same at the precision of a Lease.
func (r Record) equal(other Record) bool {
	return r.Holder == other.Holder && r.Duration == other.Duration && r.Transitions == other.Transitions &&
		r.Acquired.Equal(other.Acquired) && r.Renewed.Equal(other.Renewed)
}

// Lock reads and writes one Lease.
type Lock interface {
	// Get reads the Lease. The error is NotFound if there is none.
	Get(ctx context.Context) (Record, error)
	// Create creates the Lease.
	Create(ctx context.Context, r Record) error
	// Update replaces the content of the Lease as it was last read or written. The error is Conflict
	// if it has changed since.
	Update(ctx context.Context, r Record) error
}

// object is a Lease of the API server.
type object struct {
	client client.LeaseInterface
	name   string
	// known is the Lease as it was last read or written.
	known *coordinationv1.Lease
}

// NewLock returns the Lease with a name. It makes no request.
func NewLock(c client.LeaseInterface, name string) Lock { return &object{client: c, name: name} }

// Get implements Lock.
func (o *object) Get(ctx context.Context) (Record, error) {
	found, err := o.client.Get(ctx, o.name, metav1.GetOptions{})
	if err != nil {
		return Record{}, err
	}
	o.known = found
	return recordOf(&found.Spec), nil
}

// Create implements Lock.
func (o *object) Create(ctx context.Context, r Record) error {
	created := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: o.name}}
	r.write(&created.Spec)
	created, err := o.client.Create(ctx, created, metav1.CreateOptions{})
	if err == nil {
		o.known = created
	}
	return err
}

// Update implements Lock. It keeps the fields of the Lease that are not part of a Record.
func (o *object) Update(ctx context.Context, r Record) error {
	if o.known == nil {
		return errors.New("the Lease has not been read")
	}
	next := o.known.DeepCopy()
	r.write(&next.Spec)
	updated, err := o.client.Update(ctx, next, metav1.UpdateOptions{})
	if err == nil {
		o.known = updated
	}
	return err
}

// recordOf returns the content of a Lease. Fields that are missing are zero.
func recordOf(s *coordinationv1.LeaseSpec) Record {
	var r Record
	if s.HolderIdentity != nil {
		r.Holder = *s.HolderIdentity
	}
	if s.LeaseDurationSeconds != nil {
		r.Duration = time.Duration(*s.LeaseDurationSeconds) * time.Second
	}
	if s.AcquireTime != nil {
		r.Acquired = s.AcquireTime.Time
	}
	if s.RenewTime != nil {
		r.Renewed = s.RenewTime.Time
	}
	if s.LeaseTransitions != nil {
		r.Transitions = *s.LeaseTransitions
	}
	return r
}

func (r Record) write(s *coordinationv1.LeaseSpec) {
	s.HolderIdentity = &r.Holder
	s.LeaseDurationSeconds = new(int32(r.Duration / time.Second)) //nolint:gosec // seconds of a few minutes
	s.AcquireTime, s.RenewTime = new(metav1.NewMicroTime(r.Acquired)), new(metav1.NewMicroTime(r.Renewed))
	s.LeaseTransitions = &r.Transitions
}
