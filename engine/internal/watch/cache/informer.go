package cache

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/sleep"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	clientcache "k8s.io/client-go/tools/cache"
)

// backoff are the waits of a reflector between its tries. The reflector resets them only after two
// minutes without a failure, so that the longest one is what a watch may be late when the API
// server is back: it is short. Its jitter spreads the watches.
var backoff = wait.Backoff{Duration: 100 * time.Millisecond, Cap: time.Second, Steps: 6, Factor: 2, Jitter: 0.5}

// refusalWait is the least time between two tries of a request that the API server refuses, such as
// one without permission.
const refusalWait = 2 * time.Second

// informer is one resource under watch.
type informer struct {
	resource object.Resource
	config   *Config
	store    *store
	health   *health
	users    int             // guarded by the Cache
	proof    *proof          // guarded by the Cache; nil without a check of the view
	root     context.Context //nolint:containedctx // bounds the watch, which outlives the call that starts it
	cancel   context.CancelFunc
	client   rest.Interface
	open     openWatch
	// consistent makes the first list one that is not answered from an old state.
	consistent bool
	stopped    chan struct{}

	// failed is closed when it turns out, before the first list is in, that the resource cannot be
	// watched; err is why.
	failed chan struct{}
	once   sync.Once
	err    error
}

// start begins to watch a resource.
func start(ctx context.Context, s *Config, r object.Resource, consistent bool) (*informer, error) {
	ctx, cancel := context.WithCancel(ctx)
	h := newHealth(r, s.Clock, s.StaleAfter)
	i := &informer{
		resource:   r,
		config:     s,
		store:      newStore(r, h),
		health:     h,
		root:       ctx,
		cancel:     cancel,
		consistent: consistent,
		stopped:    make(chan struct{}),
		failed:     make(chan struct{}),
	}
	var err error
	i.client, err = clientFor(s, r, h.failed)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("client for %s: %w", r, err)
	}
	h.follow(func(error) { i.store.progress.wake() })
	waits := backoff
	reflector := clientcache.NewReflectorWithOptions(
		i.listWatch(),
		&object.Object{},
		i.store,
		clientcache.ReflectorOptions{
			Name: r.String(), TypeDescription: r.String(), Backoff: &waits,
		},
	)
	go func() {
		defer close(i.stopped)
		reflector.RunWithContext(ctx)
	}()
	return i, nil
}

// stop ends the watch and waits for it.
func (i *informer) stop() {
	i.cancel()
	<-i.stopped
	i.health.close()
}

// broken reports whether the resource could not be watched.
func (i *informer) broken() bool {
	select {
	case <-i.failed:
		return true
	default:
		return false
	}
}

// listWatch lists and watches the resource as raw objects.
func (i *informer) listWatch() *clientcache.ListWatch {
	return &clientcache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			l, err := i.list(ctx, o)
			if err != nil {
				return nil, i.note(ctx, err)
			}
			return l, nil
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.Watch = true
			o, short := i.open.options(o)
			w, err := request(i.client, i.resource, o).Watch(ctx)
			if err != nil && ctx.Err() != nil {
				// An older API server answers with the first event. The reflector logs no fault for io.EOF.
				return nil, io.EOF
			}
			if err != nil {
				return nil, i.note(ctx, err)
			}
			i.open.opened(w, short)
			if o.SendInitialEvents == nil { // else the list that it brings counts
				i.health.accepted()
			}
			return w, nil
		},
	}
}

func (i *informer) list(ctx context.Context, o metav1.ListOptions) (*list, error) {
	if i.consistent && o.ResourceVersion == "0" { // any state that the API server has in its cache
		o.ResourceVersion = ""
	}
	answer := request(i.client, i.resource, o).Do(ctx)
	if err := answer.Error(); err != nil { // unlike Raw's, it carries the reason that the server gives
		return nil, err
	}
	data, err := answer.Raw()
	if err != nil {
		return nil, err
	}
	return decodeList(i.resource.GVK, data)
}

func request(client rest.Interface, r object.Resource, o metav1.ListOptions) *rest.Request {
	req := client.Get().Resource(r.Plural).SpecificallyVersionedParams(&o, metav1.ParameterCodec, metav1.Unversioned)
	if o.TimeoutSeconds != nil {
		req = req.Timeout(time.Duration(*o.TimeoutSeconds) * time.Second)
	}
	return req
}

// note records a failed request and returns its error. One that no retry heals ends the watch if
// nothing is known of the resource yet; later it may heal, but is not hurried.
func (i *informer) note(ctx context.Context, err error) error {
	if ctx.Err() != nil { // the watch is being stopped
		return err
	}
	i.health.failed(err)
	if !refused(err) {
		return err
	}
	if i.store.isPrimed() {
		i.pause(ctx)
		return err
	}
	i.once.Do(func() {
		i.err = &UnwatchableError{Resource: i.resource, Err: err}
		close(i.failed)
	})
	return err
}

// refused reports whether the API server does not let the resource be listed or watched.
func refused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) ||
		apierrors.IsMethodNotSupported(err)
}

// pause waits before a refused request is tried again.
func (i *informer) pause(ctx context.Context) {
	jitter := rand.N(refusalWait / 2) //nolint:gosec // jitter needs no secret
	sleep.For(ctx.Done(), i.config.Clock, refusalWait+jitter)
}
