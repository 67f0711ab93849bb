package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/internal/pipeline"
	"github.com/hookloop/hookloop/engine/internal/supervisor"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/filewatch"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/manifest"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/overlay"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
)

// Declared is a source of declared controllers outside of the cluster.
type Declared interface {
	// Follow calls replace with all controllers, at the start and after each change, until ctx is
	// done. The error of replace has the API server's reasons for refusing a controller; the others
	// are taken. An error of Follow ends the process.
	Follow(ctx context.Context, replace func([]*unstructured.Unstructured) error) error
}

// Observer is notified of syncs and of the conditions of controllers. It must not block.
type Observer = supervisor.Observer

// Sync describes a sync to an Observer.
type Sync = pipeline.Sync

// Write is one write of a Sync.
type Write = pipeline.Write

// RestartAnnotation on a controller restarts it when its value changes, and all parents are synced.
const RestartAnnotation = supervisor.RestartAnnotation

// Files returns the controllers of files and folders, which are read again when they change; "-" is
// standard input, which is read once. Other objects in them are passed over. If the files are wrong
// when the process starts, it ends; later, the controllers stay as they were, and the log has the
// fault.
func Files(paths ...string) Declared { return files{paths} }

type files struct{ paths []string }

// Follow implements Declared.
func (f files) Follow(ctx context.Context, replace func([]*unstructured.Unstructured) error) error {
	if err := f.read(replace); err != nil {
		return err
	}
	if f.stdin() {
		<-ctx.Done()
		return nil
	}
	log := klog.FromContext(ctx)
	changed := func(paths []string) {
		if err := f.read(replace); err != nil {
			log.Error(err, "the changed files are not used; the controllers stay as they were")
		} else if len(paths) > 0 {
			log.Info("the controllers were read again", "changed", paths)
		}
	}
	return filewatch.Watch(ctx, filewatch.Settings{Paths: f.paths, Changed: changed},
		func() { changed(nil) }) // they may have changed before the watch began
}

// stdin reports whether the controllers come from standard input, which does not change.
func (f files) stdin() bool { return slices.Contains(f.paths, "-") }

func (f files) read(replace func([]*unstructured.Unstructured) error) error {
	set, err := manifests.Read(os.Stdin, f.paths...)
	if err != nil {
		return err
	}
	controllers, err := set.Controllers()
	if err != nil {
		return err
	}
	var all []*unstructured.Unstructured
	for _, c := range controllers {
		body, err := c.Map()
		if err != nil {
			return err
		}
		all = append(all, &unstructured.Unstructured{Object: body})
	}
	return replace(all)
}

// follow follows the source of controllers, if there is one, and returns when their first list is
// known.
func (p *process) follow(ctx context.Context, group *errgroup.Group) error {
	if p.overlay == nil {
		return nil
	}
	first := make(chan struct{})
	ended := make(chan error, 1)
	known := false
	group.Go(func() error {
		err := p.Declared.Follow(ctx, func(controllers []*unstructured.Unstructured) error {
			err := p.overlay.Replace(ctx, controllers)
			if !known {
				known = true
				close(first)
			}
			return err
		})
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

// openOverlay makes the API server of this process serve the controllers of Config.Declared.
func (p *process) openOverlay() error {
	if p.Declared == nil {
		return nil
	}
	if p.ControllersOnly {
		return errors.New("Config.Declared: ControllersOnly runs no declared controllers, expected one of them")
	}
	var err error
	if p.overlay, err = overlay.New(); err != nil {
		return fmt.Errorf("controllers outside of the cluster: %w", err)
	}
	p.rest.Wrap(p.overlay.Wrap)
	return nil
}

// logOnly returns a function that reports whether Events about a kind are for the log alone: those
// about controllers that the cluster does not have.
func (p *process) logOnly() func(schema.GroupVersionKind) bool {
	if p.overlay == nil {
		return nil
	}
	return func(k schema.GroupVersionKind) bool { return k.Group == v1alpha1.GroupVersion.Group }
}
