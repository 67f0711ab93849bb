package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// holder returns the holder of the Lease, or "".
func (s *stage) holder(ctx context.Context) (string, error) {
	lease, err := s.typed.CoordinationV1().Leases(namespace).Get(ctx, leaseName, metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil {
		return "", err
	}
	return *lease.Spec.HolderIdentity, nil
}

// newHolder waits until another one holds the Lease, and returns its name.
func (s *stage) newHolder(ctx context.Context, old string) (name string, err error) {
	err = poll(ctx, "another one leads", func(ctx context.Context) error {
		name, err = s.holder(ctx)
		if err != nil {
			return err
		}
		if name == "" || name == old {
			return fmt.Errorf("the holder of the Lease is %q", name)
		}
		return nil
	})
	return name, err
}

// lostLease pauses the leader until another one leads and has worked, and continues it. Then a
// client changes children until the old leader has ended, and the new leader repairs them: the old
// one may not write.
func (s *stage) lostLease(ctx context.Context) (bool, string, error) {
	sites, err := s.group(ctx, "lease")
	if err != nil {
		return false, "", err
	}
	old, holder, err := s.twoReplicas(ctx)
	if err != nil {
		return false, "", err
	}
	if err := old.Pause(); err != nil {
		return false, "", err
	}
	if _, err := s.newHolder(ctx, holder); err != nil {
		return false, "", err
	}
	if err := s.editTheme(ctx, "lease-theme"); err != nil {
		return false, "", err
	}
	if _, err := s.world.await(ctx, s.count()); err != nil {
		return false, "", fmt.Errorf("under the new leader: %w", err)
	}
	mark, err := s.cluster.Mark()
	if err != nil {
		return false, "", err
	}
	if err := old.Resume(); err != nil {
		return false, "", err
	}
	if err := s.editUntilEnd(ctx, old, sites); err != nil {
		return false, "", err
	}
	accepted, refused, err := s.writes(mark, old.user)
	if err != nil {
		return false, "", err
	}
	right, text := verdict(accepted, refused, "the old leader writes beside the new one")
	return right, text, s.restart(ctx, nil)
}

// twoReplicas restarts the program with two replicas, and returns the one that leads.
func (s *stage) twoReplicas(ctx context.Context) (leader *replica, holder string, err error) {
	if err := s.killAll(); err != nil {
		return nil, "", err
	}
	if err := s.startHook(ctx); err != nil {
		return nil, "", err
	}
	leader, err = s.start(ctx, s.program.name+"-1", nil, election()...)
	if err != nil {
		return nil, "", err
	}
	holder, err = s.newHolder(ctx, "")
	if err != nil {
		return nil, "", err
	}
	if _, err := s.start(ctx, s.program.name+"-2", nil, election()...); err != nil {
		return nil, "", err
	}
	// The leader works.
	if err := s.editTheme(ctx, "lease-theme"); err != nil {
		return nil, "", err
	}
	_, err = s.world.await(ctx, s.count())
	return leader, holder, err
}

// editUntilEnd changes pages, one at a time, each after the last one is right again, until a
// process has ended.
func (s *stage) editUntilEnd(ctx context.Context, r *replica, sites []string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, waitTimeout, errors.New("the old leader does not end"))
	defer cancel()
	for round := 0; ; round++ {
		select {
		case <-r.Done():
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		default:
		}
		name := sites[round%len(sites)]
		edit := object{"data": object{"index.html": fmt.Sprint("a client's, ", round)}}
		if err := s.edit(ctx, configMaps, name, edit); err != nil {
			return err
		}
		if _, err := s.world.await(ctx, s.count()); err != nil {
			return err
		}
		// A person is not faster.
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}
