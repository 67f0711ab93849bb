package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/hookloop/hookloop/engine"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// ErrLeaseLost reports that another replica may be leading: the process stops immediately and must
// be started again.
var ErrLeaseLost = fmt.Errorf("the leader lease was lost: %w", engine.ErrStopNow)

// The lease's times, client-go's recommendation. Another replica takes over leaseDuration after the
// last renewal that it saw, at the earliest; the fence lets nothing through from renewDeadline
// after the beginning of the last renewal on.
// The elector looks at the lease every retryPeriod to 2.2 times that. So a replica that waits reads
// it when the last read is readPeriod old, and when it has run out: a free lease has a holder soon.
// A leader renews it every renewPeriod.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	renewPeriod   = 2 * time.Second
	readPeriod    = 400 * time.Millisecond
	retryPeriod   = 200 * time.Millisecond
)

const podNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// lead waits for the lease, runs work under it and gives it back after work has returned, so that
// the next leader never works beside this one. Work's context ends with ctx or with the lease; in
// the second case the error is ErrLeaseLost. The fence is open as long as the lease is known to be
// held. If another replica leads, standBy is called; it must not block for long.
func (l LeaderElection) lead(
	ctx context.Context,
	lock resourcelock.Interface,
	fence *engine.Fence,
	standBy func(),
	work func(context.Context) error,
) error {
	held, release := context.WithCancel(context.WithoutCancel(ctx))
	defer release()
	defer fence.Revoke()
	lock = &fencedLock{Interface: lock, fence: fence, lost: release}
	worked := make(chan error, 1)
	var begun turn
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, Name: l.ID, ReleaseOnCancel: true,
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) {
				if begun.take(toWork) {
					worked <- l.work(ctx, leading, work)
					release()
				}
			},
			OnStoppedLeading: func() {},
			OnNewLeader: func(identity string) {
				if identity != "" && identity != lock.Identity() {
					standBy()
				}
			},
		},
	})
	if err != nil {
		return fmt.Errorf("leader election: %w", err)
	}
	// Once work has begun it sees ctx itself, and the lease is kept until it has returned.
	defer context.AfterFunc(ctx, func() {
		if begun.take(toLeave) {
			release()
		}
	})()
	elector.Run(held)
	if begun.take(toLeave) || begun.is(toLeave) {
		return nil
	}
	return <-worked
}

// turn is taken once: to work, or to leave without having worked.
type turn struct{ taken atomic.Int32 }

const (
	toWork int32 = iota + 1
	toLeave
)

func (t *turn) take(what int32) bool { return t.taken.CompareAndSwap(0, what) }

func (t *turn) is(what int32) bool { return t.taken.Load() == what }

// work runs work until ctx or leading ends.
func (l LeaderElection) work(ctx, leading context.Context, work func(context.Context) error) error {
	klog.FromContext(ctx).Info("leading", "lease", l.ID)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(leading, func() { cancel(ErrLeaseLost) })()
	err := work(ctx)
	if errors.Is(context.Cause(ctx), ErrLeaseLost) {
		return errors.Join(ErrLeaseLost, err)
	}
	return err
}

func (l LeaderElection) lock(config *rest.Config) (resourcelock.Interface, error) {
	namespace, err := l.namespace()
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("leader election: name of this host: %w", err)
	}
	identity := host + "_" + uuid.NewString()
	config = rest.CopyConfig(config)
	config.RateLimiter = nil // a busy engine must not delay the renewal
	lock, err := resourcelock.NewFromKubeconfig(l.ResourceLock, namespace, l.ID,
		resourcelock.ResourceLockConfig{Identity: identity}, config, renewDeadline)
	if err != nil {
		return nil, fmt.Errorf("leader election: lock %s/%s: %w", namespace, l.ID, err)
	}
	return lock, nil
}

// namespace is the one that was asked for, else the Pod's.
func (l LeaderElection) namespace() (string, error) {
	if l.Namespace != "" {
		return l.Namespace, nil
	}
	namespace, err := podNamespace()
	if err != nil {
		return "", fmt.Errorf("--leader-election-namespace is empty, expected a namespace outside of a Pod: %w", err)
	}
	return namespace, nil
}

func podNamespace() (string, error) {
	data, err := os.ReadFile(podNamespaceFile)
	return strings.TrimSpace(string(data)), err
}

// home is the namespace of what the process keeps in the cluster: that of its lease or of its Pod,
// else the one that kubectl would use.
func (c *Config) home() string {
	if namespace, err := c.LeaderElection.namespace(); err == nil {
		return namespace
	}
	namespace, _, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: c.Kubeconfig}, &clientcmd.ConfigOverrides{}).Namespace()
	if err != nil {
		return metav1.NamespaceDefault
	}
	return namespace
}
