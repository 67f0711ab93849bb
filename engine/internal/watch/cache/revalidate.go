package cache

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/hookloop/hookloop/internal/sleep"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// revalidateTimeout is the time that a view has to show the state at Revalidate, counted from its
	// first list. It is much more than a working watch needs (shortWatch).
	revalidateTimeout = 10 * time.Second
	// revalidateRetry is the wait before a failed request for the present state is sent again.
	revalidateRetry = 200 * time.Millisecond
	// shortWatch is the timeout of a watch in seconds while a view is revalidated. The API server
	// sends a bookmark 2 seconds before a watch times out, and otherwise about one in a minute, so
	// that a resource without changes shows the present state after 1 to 2 seconds.
	shortWatch = 3
	// metadataOnly asks the API server for lists without bodies.
	metadataOnly = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"
)

// Revalidate is for a process that begins to write after another one: its views may lack writes of
// that process. From now on, Acquire returns a handle of a resource that is watched already only
// when its view shows the state at the time of this call, or a later one. If the view does not
// within 10 seconds, Acquire lists the resource anew. Handles that exist keep their views.
// Revalidate does not wait.
func (c *Cache) Revalidate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.consistent = true
	for _, i := range c.informers {
		p := &proof{done: make(chan struct{})}
		i.proof = p
		c.proofs.Go(func() {
			defer close(p.done)
			p.current = i.prove()
		})
	}
}

// proof is the check whether a view shows the state at a call of Revalidate.
type proof struct {
	// done is closed at the end of the check; current is its result from then on.
	done    chan struct{}
	current bool
}

// failed reports whether the check has ended without success. A nil proof has not.
func (p *proof) failed() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.done:
		return !p.current
	default:
		return false
	}
}

// wait returns at the end of the check, or with the error of a context. A nil proof has none.
func (p *proof) wait(ctx, root context.Context) error {
	if p == nil {
		return nil
	}
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-root.Done():
		return root.Err()
	}
}

// prove reports whether the view shows the present state within revalidateTimeout.
func (i *informer) prove() bool {
	select {
	case <-i.store.primed:
	case <-i.failed:
		return false
	case <-i.root.Done():
		return false
	}
	ctx, cancel := context.WithCancel(i.root)
	defer cancel()
	timer := i.config.Clock.AfterFunc(revalidateTimeout, cancel)
	defer timer.Stop()
	version, err := i.present(ctx)
	if err != nil || version == "0" { // an API server without versions, of which each view is at least 0
		return false
	}
	v, err := i.store.objects.View()
	if err != nil {
		return false
	}
	if v.AtLeast(version) {
		return true
	}
	i.open.shorten()
	defer i.open.lengthen()
	for {
		changed := i.store.progress.next() // before the look, so that no change is missed
		if v.AtLeast(version) {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// present returns the resource version of the present state. It is from a list without a resource
// version, which the API server answers consistently.
func (i *informer) present(ctx context.Context) (string, error) {
	for {
		version, err := i.requestPresent(ctx)
		if err == nil || refused(err) {
			return version, err
		}
		if !sleep.For(ctx.Done(), i.config.Clock, revalidateRetry) {
			return "", err
		}
	}
}

func (i *informer) requestPresent(ctx context.Context) (string, error) {
	answer := request(i.client, i.resource, metav1.ListOptions{Limit: 1}).SetHeader("Accept", metadataOnly).Do(ctx)
	if err := answer.Error(); err != nil {
		return "", err
	}
	data, err := answer.Raw()
	if err != nil {
		return "", err
	}
	var l struct {
		Metadata metav1.ListMeta `json:"metadata"`
	}
	if err := json.Unmarshal(data, &l); err != nil {
		return "", fmt.Errorf("list of %s: %w", i.resource, err)
	}
	return l.Metadata.ResourceVersion, nil
}

// openWatch is the watch of an informer that is open. The zero value has none. It is safe for
// concurrent use.
type openWatch struct {
	mu sync.Mutex // guards the fields below
	// short makes new watches short.
	short bool
	watch watch.Interface
}

// options returns the options of the next watch. A watch that brings a list keeps its timeout.
func (o *openWatch) options(options metav1.ListOptions) (_ metav1.ListOptions, short bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.short && options.SendInitialEvents == nil {
		timeout := int64(shortWatch)
		options.TimeoutSeconds = &timeout
	}
	return options, o.short
}

// opened records a watch. One that was requested before watches became short is ended.
func (o *openWatch) opened(w watch.Interface, short bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.watch = w
	if o.short && !short {
		w.Stop()
	}
}

// shorten ends the present watch. The reflector continues it at its last resource version by a
// short one.
func (o *openWatch) shorten() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.short = true
	if o.watch != nil {
		o.watch.Stop()
	}
}

// lengthen makes new watches long again.
func (o *openWatch) lengthen() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.short = false
}
