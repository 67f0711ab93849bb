package memapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// watcher is one open watch. It reads the events of its collection at its own pace.
type watcher struct {
	server    *Server
	request   *request
	selection selection
	// timeout ends the watch; nil if it has no end.
	timeout <-chan time.Time
	timer   *time.Timer
	// signal has an element if there may be something new.
	signal chan struct{}

	// The fields below are guarded by the server's mutex.

	// initial are the frames that come before the events.
	initial bytes.Buffer
	// position is the number of the next event.
	position int
	// delivered is the resourceVersion of the last frame that was read.
	delivered uint64
	// bookmark asks for a bookmark.
	bookmark bool
	// dropped reports that the connection was dropped, or that the watch is closed.
	dropped bool
}

// open answers a watch.
func (s *Server) open(q *request) (*answer, error) {
	o, err := listOptions(q)
	if err != nil {
		return nil, err
	}
	selected, err := newSelection(q, o)
	if err != nil {
		return nil, err
	}
	w := &watcher{server: s, request: q, selection: selected, signal: make(chan struct{}, 1), delivered: s.version}
	if err := w.begin(o); err != nil {
		return nil, err
	}
	if o.TimeoutSeconds != nil && *o.TimeoutSeconds > 0 {
		w.timer = time.NewTimer(time.Duration(*o.TimeoutSeconds) * time.Second)
		w.timeout = w.timer.C
	}
	q.resource.store.watchers[w] = struct{}{}
	w.wake()
	return &answer{code: http.StatusOK, contentType: "application/json", watch: w}, nil
}

// begin decides where the watch begins.
func (w *watcher) begin(o *metav1.ListOptions) error {
	c := w.request.resource.store
	w.position = c.first + len(c.events)
	if o.ResourceVersion != "" && o.ResourceVersion != "0" {
		version, err := parseVersion(o.ResourceVersion)
		if err != nil {
			return err
		}
		if o.SendInitialEvents == nil {
			w.resume(version)
			return nil
		}
		if version > w.server.version {
			return tooLarge(version, w.server.version)
		}
	}
	if o.SendInitialEvents != nil && !*o.SendInitialEvents {
		return nil
	}
	for _, k := range keys(c.objects, w.selection.namespace) {
		if object := c.objects[k]; w.selection.matches(object) {
			w.frame(&w.initial, watch.Added, object)
		}
	}
	if o.SendInitialEvents != nil && o.AllowWatchBookmarks {
		w.writeBookmark(&w.initial, w.server.version, map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	return nil
}

// resume continues after a resourceVersion.
func (w *watcher) resume(version uint64) {
	c := w.request.resource.store
	if version < c.forgotten {
		w.gone(version, c.forgotten)
		return
	}
	w.position = c.first
	w.delivered = version
	for _, e := range c.events {
		if e.version > version {
			break
		}
		w.position++
	}
}

// gone ends the watch with the event that its position is too old.
func (w *watcher) gone(version, forgotten uint64) {
	w.initial.Reset()
	fmt.Fprintf(&w.initial, `{"type":"ERROR","object":%s}`+"\n", fail(expired(version, forgotten)).body)
	w.position = -1
}

// next waits for events and returns their frames. The error is io.EOF when the watch has ended.
func (w *watcher) next(ctx context.Context) ([]byte, error) {
	for {
		frames, err := w.take()
		if len(frames) > 0 || err != nil {
			return frames, err
		}
		select {
		case <-w.signal:
		case <-w.timeout:
			w.close()
			return nil, io.EOF
		case <-ctx.Done():
			w.close()
			return nil, ctx.Err()
		}
	}
}

// take returns the frames of the events that the client has not seen.
func (w *watcher) take() ([]byte, error) {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	c := w.request.resource.store
	if w.dropped {
		return nil, io.EOF
	}
	if c.held {
		return nil, nil
	}
	var out bytes.Buffer
	_, _ = w.initial.WriteTo(&out) // a Buffer never fails
	w.initial.Reset()
	switch {
	case w.position < 0:
		w.dropped = out.Len() == 0
		if w.dropped {
			return nil, io.EOF
		}
		return out.Bytes(), nil
	case w.position < c.first: // slower than the history is long
		w.gone(w.delivered, c.forgotten)
		_, _ = w.initial.WriteTo(&out)
		return out.Bytes(), nil
	}
	for _, e := range c.events[w.position-c.first:] {
		w.event(&out, e)
		w.delivered = e.version
		w.position++
	}
	if w.bookmark {
		w.bookmark = false
		w.delivered = w.server.version
		w.writeBookmark(&out, w.server.version, nil)
	}
	return out.Bytes(), nil
}

// event writes the frame of an event, from the view of the watch's selectors.
func (w *watcher) event(out *bytes.Buffer, e event) {
	before := w.selection.matches(e.old)
	after := w.selection.matches(e.now)
	switch {
	case before && after:
		w.frame(out, watch.Modified, e.now)
	case after:
		w.frame(out, watch.Added, e.now)
	case before:
		last := &stored{object: e.old.object.DeepCopy(), collection: e.old.collection}
		last.object.SetResourceVersion(strconv.FormatUint(e.version, 10))
		w.frame(out, watch.Deleted, last)
	}
}

func (w *watcher) frame(out *bytes.Buffer, kind watch.EventType, o *stored) {
	fmt.Fprintf(out, `{"type":%q,"object":%s}`+"\n", kind, w.server.present(w.request, o))
}

// writeBookmark writes a bookmark: an object of the watched kind with a resourceVersion only.
func (w *watcher) writeBookmark(out *bytes.Buffer, version uint64, annotations map[string]string) {
	apiVersion, kind := w.request.resource.gvk.ToAPIVersionAndKind()
	bookmark := metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiVersion, Kind: kind},
		ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.FormatUint(version, 10), Annotations: annotations},
	}
	raw, err := json.Marshal(&bookmark)
	if err == nil {
		fmt.Fprintf(out, `{"type":"BOOKMARK","object":%s}`+"\n", raw)
	}
}

// close ends the watch.
func (w *watcher) close() {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	w.drop()
}

// drop ends the watch; the caller holds the server's mutex.
func (w *watcher) drop() {
	w.dropped = true
	if w.timer != nil {
		w.timer.Stop()
	}
	delete(w.request.resource.store.watchers, w)
	w.wake()
}

func (w *watcher) wake() {
	select {
	case w.signal <- struct{}{}:
	default:
	}
}

// wake lets the watches look for events.
func (c *collection) wake() {
	for w := range c.watchers {
		w.wake()
	}
}

// dropWatches ends all watches of the collection.
func (c *collection) dropWatches() {
	for w := range c.watchers {
		w.drop()
	}
}
