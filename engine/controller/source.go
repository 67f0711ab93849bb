package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hookloop/hookloop/engine/internal/host"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/sleep"
	"k8s.io/klog/v2"
)

// Source adds keys to a controller that do not come from a watch of Kubernetes objects. Use
// [SourceFunc], [Channel], [Ticker], [NewWebhook] or [Triggers] to make one, and [Controller.Source]
// to add it. It runs while the controller runs. If it fails or panics, it is started again after a
// second.
type Source interface {
	run(ctx context.Context, s *sourcing) error
}

// Enqueue adds a key to the queue of a controller. The reason is shown in traces. It may be called
// from several goroutines.
type Enqueue func(key Key, reason string)

// checkedSource is a Source with faults that are known before it runs.
type checkedSource interface{ check() error }

// checkSources returns the faults of sources.
func checkSources(all []Source) error {
	var faults []error
	for i, s := range all {
		if checked, ok := s.(checkedSource); ok {
			if err := checked.check(); err != nil {
				faults = append(faults, fmt.Errorf("source %d: %w", i, err))
			}
		} else if isNil(s) {
			faults = append(faults, fmt.Errorf("source %d is nil", i))
		}
	}
	return errors.Join(faults...)
}

// sourcing is what a running controller gives to a source.
type sourcing struct {
	ctx        context.Context //nolint:containedctx // of the source's run, for its logger
	controller string
	host       *host.Host
	// primary is the controller's resource.
	primary object.Resource
	reader  Reader
	enqueue Enqueue
	// trigger enqueues the objects that match; nil matches all.
	trigger func(match func(*object.Object) bool, p queue.Priority, reason string) (int, error)
}

func (s *sourcing) log() klog.Logger { return klog.FromContext(s.ctx) }

// SourceFunc is a function that is a [Source]. It should run until ctx is done.
type SourceFunc func(ctx context.Context, r Reader, enqueue Enqueue) error

func (f SourceFunc) run(ctx context.Context, s *sourcing) error { return f(ctx, s.reader, s.enqueue) }

// Channel returns a [Source] that enqueues each key that it receives from a channel, until the channel
// is closed.
func Channel(keys <-chan Key) Source {
	return SourceFunc(func(ctx context.Context, _ Reader, enqueue Enqueue) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case key, open := <-keys:
				if !open {
					<-ctx.Done()
					return nil
				}
				enqueue(key, "channel")
			}
		}
	})
}

// ticker is the Source of Ticker.
type ticker struct {
	period time.Duration
	keys   func(ctx context.Context, r Reader) ([]Key, error)
}

// Ticker returns a [Source] that calls a function once per period and enqueues the keys that it
// returns. The period must be greater than 0.
func Ticker(period time.Duration, keys func(ctx context.Context, r Reader) ([]Key, error)) Source {
	return &ticker{period, keys}
}

// check implements checkedSource.
func (t *ticker) check() error {
	switch {
	case t.period <= 0:
		return fmt.Errorf("ticker: the period is %s, expected more than 0", t.period)
	case t.keys == nil:
		return errors.New("ticker: the function is nil")
	}
	return nil
}

func (t *ticker) run(ctx context.Context, s *sourcing) error {
	for sleep.For(ctx.Done(), s.host.Clock, t.period) {
		keys, err := t.keys(ctx, s.reader)
		if err != nil {
			return err
		}
		for _, key := range keys {
			s.enqueue(key, "ticker")
		}
	}
	return nil
}
