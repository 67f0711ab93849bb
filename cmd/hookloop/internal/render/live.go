package render

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/hookloop/hookloop/engine/object"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"
)

// The resources that List leaves out: CRDs are stored at the start, and aggregated APIs are not
// served.
var (
	crdResource = schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
	apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
)

// live reads objects from a cluster, each resource once, when the engine first needs it
// (memapi.Source), and only in namespaces that the controllers can see. It sends nothing but GET
// requests. It is safe for concurrent use.
type live struct {
	client dynamic.Interface
	// scope limits which namespaces are read. It is set before the first List.
	scope scope
	// namespaced reports whether the objects of a resource have a namespace.
	namespaced func(schema.GroupVersionResource) bool
	// failed is closed after the first error.
	failed chan struct{}

	mu sync.Mutex // guards the fields below
	// objects are those that were read since the last reset.
	objects map[object.Ref]*unstructured.Unstructured
	notes   []string
	err     error
}

// newLive makes no request.
func newLive(config *rest.Config) (*live, error) {
	config = rest.CopyConfig(config)
	config.UserAgent = userAgent
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return readOnly{next} })
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &live{client: client, failed: make(chan struct{}), objects: map[object.Ref]*unstructured.Unstructured{}}, nil
}

// readOnly refuses all requests that could change a cluster.
type readOnly struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (r readOnly) RoundTrip(q *http.Request) (*http.Response, error) {
	if q.Method != http.MethodGet {
		return nil, fmt.Errorf("--live only reads, got %s %s", q.Method, q.URL.Path)
	}
	return r.next.RoundTrip(q)
}

// List implements memapi.Source.
func (l *live) List(ctx context.Context, r schema.GroupVersionResource) ([]*unstructured.Unstructured, error) {
	if r == crdResource || r == apiServices {
		return nil, nil
	}
	all, err := l.list(ctx, r)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, u := range all {
		l.objects[refOf(u)] = u.DeepCopy()
	}
	return all, nil
}

// list reads the objects of a resource within the scope. If a hook may ask for objects of other
// namespaces, it reads all of them, or only those of the scope if the user may not read all.
func (l *live) list(ctx context.Context, r schema.GroupVersionResource) ([]*unstructured.Unstructured, error) {
	confined := len(l.scope.namespaces) > 0 && l.namespaced(r)
	if !confined || l.scope.related {
		all, err := l.listIn(ctx, r, "")
		switch {
		case err == nil || ctx.Err() != nil: // then the engine has stopped
			return all, err
		case !confined || !apierrors.IsForbidden(err):
			return nil, l.fail(r.GroupResource(), "", err,
				"that right or, for namespaced parents, the parents in the files (-f): then their namespaces are enough")
		}
	}
	var all []*unstructured.Unstructured
	for _, namespace := range l.scope.namespaces {
		some, err := l.listIn(ctx, r, namespace)
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, err
		case err != nil:
			return nil, l.fail(r.GroupResource(), namespace, err, "that right")
		}
		all = append(all, some...)
	}
	if l.scope.related {
		l.notef("--live: no right to list %s in all namespaces: related objects are those of %s alone",
			r.GroupResource(), strings.Join(l.scope.namespaces, ", "))
	}
	return all, nil
}

// listIn reads all objects of a resource, of one namespace unless it is empty. A cluster that does
// not have the resource has no objects of it.
func (l *live) listIn(
	ctx context.Context, r schema.GroupVersionResource, namespace string,
) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return l.client.Resource(r).Namespace(namespace).List(ctx, o)
	})
	err := pages.EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
		u, ok := item.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("got %T, expected an object", item)
		}
		all = append(all, u)
		return nil
	})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return all, err
}

// fail keeps the first error, because the result would be wrong without the objects.
func (l *live) fail(r schema.GroupResource, namespace string, err error, expected string) error {
	where := "in all namespaces"
	if namespace != "" {
		where = "in namespace " + namespace
	}
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		err = fmt.Errorf("--live: no right to list %s %s: %w; expected %s", r, where, err, expected)
	} else {
		err = fmt.Errorf("--live: %s: %w", r, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
		close(l.failed)
	}
	return err
}

// notef adds a note to the result.
func (l *live) notef(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notes = append(l.notes, fmt.Sprintf(format, args...))
}

// noted returns the notes.
func (l *live) noted() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.notes)
}

// cause returns the first error.
func (l *live) cause() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// reset forgets the objects that were read so far.
func (l *live) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.objects)
}

// addTo adds the objects that were read since the last reset to a snapshot.
func (l *live) addTo(snapshot map[object.Ref]*unstructured.Unstructured) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.Copy(snapshot, l.objects)
}

// overlay returns an object of the cluster as the object of a file would change it: with other
// labels and annotations and another spec, but its own identity, finalizers, owners and status.
func overlay(present, file *unstructured.Unstructured) *unstructured.Unstructured {
	out := present.DeepCopy()
	for field := range out.Object {
		if field != "metadata" && field != "status" {
			delete(out.Object, field)
		}
	}
	for field, value := range file.DeepCopy().Object {
		if field != "metadata" {
			out.Object[field] = value
		}
	}
	out.SetLabels(union(present.GetLabels(), file.GetLabels()))
	out.SetAnnotations(union(present.GetAnnotations(), file.GetAnnotations()))
	return out
}

// union returns two maps as one; nil if both are empty. Values of the second win.
func union(a, b map[string]string) map[string]string {
	var out map[string]string
	for _, m := range []map[string]string{a, b} {
		for key, value := range m {
			if out == nil {
				out = map[string]string{}
			}
			out[key] = value
		}
	}
	return out
}
