package server

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Declared has declared controllers that the cluster does not have.
type Declared interface {
	// Wrap returns the transport of clients that see the controllers.
	Wrap(next http.RoundTripper) http.RoundTripper
	// Follow follows the source of the controllers until ctx is done. It calls known when the first
	// list is in. An error ends the process.
	Follow(ctx context.Context, known func()) error
}

// follow follows the source of controllers, if there is one, and returns when their first list is
// known.
func (p *process) follow(ctx context.Context, group *errgroup.Group) error {
	if p.Declared == nil {
		return nil
	}
	first := make(chan struct{})
	ended := make(chan error, 1)
	var once sync.Once
	group.Go(func() error {
		err := p.Declared.Follow(ctx, func() { once.Do(func() { close(first) }) })
		ended <- err
		return err
	})
	select {
	case <-first:
		return nil
	case <-ctx.Done():
		return nil
	case err := <-ended:
		if err == nil && ctx.Err() == nil {
			err = errors.New("Config.Declared: it ended without controllers")
		}
		return err
	}
}

// openOverlay makes the clients of this process see the controllers of Config.Declared.
func (p *process) openOverlay() error {
	if p.Declared == nil {
		return nil
	}
	if p.ControllersOnly {
		return errors.New("Config.Declared: ControllersOnly runs no declared controllers, expected one of them")
	}
	p.rest.Wrap(p.Declared.Wrap)
	return nil
}

// logOnly returns a function that reports whether Events about a kind are for the log alone.
func (p *process) logOnly() func(schema.GroupVersionKind) bool {
	if p.Declared == nil {
		return nil
	}
	return func(k schema.GroupVersionKind) bool { return k.Group == v1alpha1.GroupVersion.Group }
}
