package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hookloop/hookloop/test/bench/wire"
	"github.com/hookloop/hookloop/test/serve"
)

// restart is the start of an engine among objects that have converged.
type restart struct {
	// Ready is the time from the start of the process until it is ready, First until the first sync
	// has ended, and All until the engine rests, and has synced all parents.
	Ready time.Duration `json:"readyNs"`
	First time.Duration `json:"firstSyncNs"`
	All   time.Duration `json:"allSyncedNs"`
	// CPU is the engine's, and Syncs and Writes are counted until All.
	CPU    time.Duration  `json:"engineCPUNs"`
	Syncs  int            `json:"syncs"`
	Writes map[string]int `json:"apiWrites"`
	memory
}

// failover is the death of a leader.
type failover struct {
	// Leading and Waiting are the memory of the leader, and of the replica that waits to lead.
	Leading memory `json:"leading"`
	Waiting memory `json:"waiting"`
	// Free is the time from the death of the leader until its lease has run out. Taken, Asked and
	// First are the times from there until the next leader has the lease, asks its hook for the first
	// time, and has ended the first sync.
	Free  time.Duration `json:"leaseFreeNs"`
	Taken time.Duration `json:"leaseTakenNs"`
	Asked time.Duration `json:"firstAskedNs"`
	First time.Duration `json:"firstSyncNs"`
	// Writes are those of the next leader until it rests.
	Writes map[string]int `json:"apiWrites"`
}

// electing are the flags of a replica.
var electing = []string{"--leader-election", "--leader-election-namespace=default"}

// restart replaces the engine, and waits until the new one has synced all parents.
func (s *stage) restart(ctx context.Context, parents int) (r restart, err error) {
	if err := s.engine.Stop(stopGrace); err != nil {
		return r, err
	}
	audit, err := s.cluster.Mark()
	if err != nil {
		return r, err
	}
	before := s.proxy.Count()
	begun := time.Now()
	if err := s.startEngine(ctx); err != nil {
		return r, err
	}
	r.Ready = time.Since(begun)
	if err := s.firstSync(ctx, s.engine, before); err != nil {
		return r, err
	}
	r.First = time.Since(begun)
	r.Syncs, err = s.allSynced(ctx, parents)
	if err != nil {
		return r, err
	}
	r.All = time.Since(begun)
	var now reading
	if err := s.processes(&now); err != nil {
		return r, err
	}
	r.CPU = now.engine
	s.progress("  restart: ready after %s, first sync after %s, all after %s", ms(r.Ready), ms(r.First), ms(r.All))
	r.Writes, err = s.writes(audit)
	if err != nil {
		return r, err
	}
	r.memory, err = s.memory(ctx, 0)
	return r, err
}

// firstSync waits until an engine has asked the hook, and then until a sync has ended. Before,
// metrics would cost the start time.
func (s *stage) firstSync(ctx context.Context, e *serve.Engine, before wire.Count) error {
	if err := s.asked(ctx, before); err != nil {
		return err
	}
	return poll(ctx, "a sync has ended", func(ctx context.Context) error {
		n, err := s.syncs(ctx, e)
		if err == nil && n == 0 {
			err = errors.New("none has ended")
		}
		return err
	})
}

// allSynced waits until the engine rests and has synced at least n times.
func (s *stage) allSynced(ctx context.Context, n int) (syncs int, err error) {
	err = poll(ctx, "all parents are synced", func(ctx context.Context) error {
		if err := s.rests(ctx); err != nil {
			return err
		}
		syncs, err = s.syncs(ctx, s.engine)
		if err == nil && syncs < n {
			err = fmt.Errorf("%d of %d", syncs, n)
		}
		return err
	})
	return syncs, err
}

// syncs returns the number of syncs of an engine.
func (s *stage) syncs(ctx context.Context, e *serve.Engine) (int, error) {
	samples, err := scrape(ctx, e)
	return int(samples.Sum("hookloop_sync_duration_seconds_count")), err
}

// failover kills a leader, and measures the next one.
func (s *stage) failover(ctx context.Context) (f failover, err error) {
	if err := s.engine.Stop(stopGrace); err != nil {
		return f, err
	}
	before := s.proxy.Count()
	leader, err := s.replica(ctx)
	if err != nil {
		return f, err
	}
	s.engine = leader
	if err := s.firstSync(ctx, leader, before); err != nil {
		return f, err
	}
	if err := s.rests(ctx); err != nil {
		return f, err
	}
	profiles := s.pprof
	next, err := s.replica(ctx)
	if err != nil {
		return f, err
	}
	if err := pause(ctx, restedFor); err != nil {
		return f, errors.Join(err, next.Stop(stopGrace))
	}
	f.Leading, err = s.memoryOf(ctx, leader, profiles)
	if err != nil {
		return f, errors.Join(err, next.Stop(stopGrace))
	}
	f.Waiting, err = s.memoryOf(ctx, next, s.pprof)
	if err != nil {
		return f, errors.Join(err, leader.Stop(stopGrace))
	}
	audit, err := s.cluster.Mark()
	if killed := leader.Kill(); err != nil || killed != nil {
		return f, errors.Join(err, killed)
	}
	if err := f.takeOver(ctx, s); err != nil {
		return f, err
	}
	s.progress("  failover: lease taken %s after it was free, hook asked %s, first sync %s",
		ms(f.Taken), ms(f.Asked), ms(f.First))
	if err := s.rests(ctx); err != nil {
		return f, err
	}
	f.Writes, err = s.writes(audit)
	return f, err
}

// memoryOf reads the memory of an engine with the address of its profiles. It is the measured one
// from then on.
func (s *stage) memoryOf(ctx context.Context, e *serve.Engine, profiles string) (memory, error) {
	before := s.pprof
	defer func() { s.pprof = before }()
	s.engine = e
	s.pprof = profiles
	return s.memory(ctx, 0)
}

// takeOver waits until the measured replica has replaced the leader that has just died.
func (f *failover) takeOver(ctx context.Context, s *stage) error {
	died := time.Now()
	before := s.proxy.Count()
	lease, err := s.lease(ctx)
	if err != nil {
		return err
	}
	free := lease.RenewTime.Add(time.Duration(*lease.LeaseDurationSeconds) * time.Second)
	if err := s.asked(ctx, before); err != nil {
		return err
	}
	f.Free, f.Asked = free.Sub(died), time.Since(free)
	if err := s.firstSync(ctx, s.engine, before); err != nil {
		return err
	}
	f.First = time.Since(free)
	lease, err = s.lease(ctx)
	if err != nil {
		return err
	}
	f.Taken = lease.AcquireTime.Sub(free)
	return nil
}

// replica starts an engine that takes part in the election.
func (s *stage) replica(ctx context.Context) (*serve.Engine, error) {
	e, err := s.serve(ctx, electing...)
	if err != nil && e != nil {
		err = errors.Join(err, e.Stop(stopGrace))
	}
	return e, err
}

// lease returns the lease of the leader.
func (s *stage) lease(ctx context.Context) (*coordinationv1.LeaseSpec, error) {
	lease, err := s.typed.CoordinationV1().Leases("default").Get(ctx, "metacontroller", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if l := lease.Spec; l.RenewTime == nil || l.AcquireTime == nil || l.LeaseDurationSeconds == nil {
		return nil, fmt.Errorf("the lease lacks renewTime, acquireTime or a duration: %+v", l)
	}
	return &lease.Spec, nil
}
