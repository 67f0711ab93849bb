package filewatch

import (
	"context"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/google/go-cmp/cmp"
)

// TestOverflow reports all paths when the kernel has dropped events, and continues.
func TestOverflow(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	faults := make(chan error, 1)
	faults <- fsnotify.ErrEventOverflow
	var got []string
	w := &watch{
		Config: Config{Paths: []string{"b", "a"}, Changed: func(paths []string) {
			got = paths
			cancel()
		}},
		notify: &fsnotify.Watcher{Errors: faults}, check: time.Hour,
	}
	if err := w.run(ctx); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b"}, got); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}
