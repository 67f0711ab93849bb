package overlay

import (
	"context"
	"net/http"
	"os"
	"slices"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/filewatch"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/manifest"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"
)

// Source provides declared controllers.
type Source interface {
	// Follow calls replace with all controllers at the start and after each change, until ctx ends.
	Follow(ctx context.Context, replace func([]*unstructured.Unstructured) error) error
}

// Declared feeds an [Overlay] from a [Source]. It implements server.Declared. Make one with [From].
type Declared struct {
	overlay *Overlay
	source  Source
}

// From makes an overlay with the controllers of a source.
func From(s Source) (*Declared, error) {
	o, err := New()
	if err != nil {
		return nil, err
	}
	return &Declared{o, s}, nil
}

// Wrap implements server.Declared.
func (d *Declared) Wrap(next http.RoundTripper) http.RoundTripper { return d.overlay.Wrap(next) }

// Follow implements server.Declared.
func (d *Declared) Follow(ctx context.Context, known func()) error {
	return d.source.Follow(ctx, func(controllers []*unstructured.Unstructured) error {
		defer known()
		return d.overlay.Replace(ctx, controllers)
	})
}

// Files reads controllers from files and folders, and again when they change; "-" is standard input
// and is read once. Other objects in the files are ignored.
//
// If the files are wrong when the process starts, Follow returns the error. Later, it logs the
// error and keeps the controllers as they were.
func Files(paths ...string) Source { return files{paths} }

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
	return filewatch.Watch(ctx, filewatch.Config{Paths: f.paths, Changed: changed},
		func() { changed(nil) }) // they may have changed before the watch began
}

// stdin returns true if the controllers come from standard input, which cannot change.
func (f files) stdin() bool { return slices.Contains(f.paths, "-") }

func (f files) read(replace func([]*unstructured.Unstructured) error) error {
	set, err := manifest.Read(os.Stdin, f.paths...)
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
