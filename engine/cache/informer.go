package cache

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookloop/hookloop/engine/object"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	clientcache "k8s.io/client-go/tools/cache"
)

// informer is one resource under watch.
type informer struct {
	resource object.Resource
	store    *store
	users    int // guarded by the Cache
	cancel   context.CancelFunc
	stopped  chan struct{}

	// failed is closed when it turns out, before the first list is in, that the resource cannot be watched; err says why from then on.
	failed chan struct{}
	once   sync.Once
	err    error
	// trouble is the last error before the first list is in.
	trouble atomic.Pointer[error]
}

// start begins to watch a resource.
func start(ctx context.Context, config *rest.Config, r object.Resource) (*informer, error) {
	ctx, cancel := context.WithCancel(ctx)
	i := &informer{resource: r, store: newStore(r), cancel: cancel, stopped: make(chan struct{}), failed: make(chan struct{})}
	client, err := clientFor(config, r, func(err error) { i.trouble.Store(&err) })
	if err != nil {
		cancel()
		return nil, fmt.Errorf("client for %s: %w", r, err)
	}
	reflector := clientcache.NewReflectorWithOptions(i.listWatch(client), &object.Object{}, i.store, clientcache.ReflectorOptions{
		Name: r.String(), TypeDescription: r.String(),
		Backoff: &wait.Backoff{Duration: 100 * time.Millisecond, Cap: 10 * time.Second, Steps: 8, Factor: 2, Jitter: 0.5},
	})
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
}

// broken says whether the resource could not be watched.
func (i *informer) broken() bool {
	select {
	case <-i.failed:
		return true
	default:
		return false
	}
}

// listWatch lists and watches the resource as raw objects.
func (i *informer) listWatch(client rest.Interface) *clientcache.ListWatch {
	return &clientcache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			answer := request(client, i.resource, o).Do(ctx)
			if err := answer.Error(); err != nil { // unlike Raw's, it carries the reason that the server gives
				return nil, i.note(err)
			}
			data, err := answer.Raw()
			if err != nil {
				return nil, i.note(err)
			}
			return decodeList(i.resource.GVK, data)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.Watch = true
			w, err := request(client, i.resource, o).Watch(ctx)
			return w, i.note(err)
		},
	}
}

func request(client rest.Interface, r object.Resource, o metav1.ListOptions) *rest.Request {
	req := client.Get().Resource(r.Plural).SpecificallyVersionedParams(&o, metav1.ParameterCodec, metav1.Unversioned)
	if o.TimeoutSeconds != nil {
		req = req.Timeout(time.Duration(*o.TimeoutSeconds) * time.Second)
	}
	return req
}

// note remembers an error that no retry heals while nothing is known of the resource, and passes it on.
func (i *informer) note(err error) error {
	if err == nil {
		return nil
	}
	final := apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
	select {
	case <-i.store.primed:
		return err
	default:
	}
	i.trouble.Store(&err)
	if final {
		i.once.Do(func() {
			i.err = &UnwatchableError{Resource: i.resource, Err: err}
			close(i.failed)
		})
	}
	return err
}
