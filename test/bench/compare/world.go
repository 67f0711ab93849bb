package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/hookloop/hookloop/test/bench/compare/website"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

// The resources of the comparison.
var (
	websites    = website.GroupVersion.WithResource("websites")
	deployments = appsv1.SchemeGroupVersion.WithResource("deployments")
	services    = corev1.SchemeGroupVersion.WithResource("services")
	configMaps  = corev1.SchemeGroupVersion.WithResource("configmaps")
)

// world has the objects of the namespace, from watches of its own, and judges them: a Website is
// right if its children and its status are what the present Website and the present theme want.
type world struct {
	stop    context.CancelFunc
	factory dynamicinformer.DynamicSharedInformerFactory

	mu          sync.Mutex // guards the fields below
	sites       map[string]*website.Website
	deployments map[string]*appsv1.Deployment
	services    map[string]*corev1.Service
	configMaps  map[string]*corev1.ConfigMap
	// wrong has the fault of each Website that is not right.
	wrong map[string]string
	// awaited are the client's writes that no event has shown yet: versions by resource and name, 0
	// for a deletion.
	awaited map[objectID]int64
	// changed is closed at the next event; last is the time of the last one.
	changed chan struct{}
	last    time.Time
}

type objectID struct {
	resource schema.GroupVersionResource
	name     string
}

func newWorld() *world {
	return &world{
		sites: map[string]*website.Website{}, deployments: map[string]*appsv1.Deployment{},
		services: map[string]*corev1.Service{}, configMaps: map[string]*corev1.ConfigMap{},
		wrong: map[string]string{}, awaited: map[objectID]int64{}, changed: make(chan struct{}),
	}
}

// follow starts the watches.
func follow(client dynamic.Interface) (*world, error) {
	w := newWorld()
	var ctx context.Context
	ctx, w.stop = context.WithCancel(context.Background())
	w.factory = dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, namespace, nil)
	for _, resource := range []schema.GroupVersionResource{websites, deployments, services, configMaps} {
		_, err := w.factory.ForResource(resource).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { w.see(resource, o, false) },
			UpdateFunc: func(_, o any) { w.see(resource, o, false) },
			DeleteFunc: func(o any) { w.see(resource, o, true) },
		})
		if err != nil {
			return nil, err
		}
	}
	w.factory.Start(ctx.Done())
	w.factory.WaitForCacheSync(ctx.Done())
	return w, nil
}

func (w *world) close() {
	w.stop()
	w.factory.Shutdown()
}

// see records an event.
func (w *world) see(resource schema.GroupVersionResource, event any, deleted bool) {
	if unknown, ok := event.(cache.DeletedFinalStateUnknown); ok {
		event = unknown.Obj
	}
	o := event.(*unstructured.Unstructured)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch resource {
	case websites:
		put(w.sites, o, deleted)
	case deployments:
		put(w.deployments, o, deleted)
	case services:
		put(w.services, o, deleted)
	case configMaps:
		put(w.configMaps, o, deleted)
		w.judgeTheme(o.GetName())
	}
	w.judge(o.GetName())
	w.shown(objectID{resource, o.GetName()}, o.GetResourceVersion(), deleted)
	w.last = time.Now()
	close(w.changed)
	w.changed = make(chan struct{})
}

// put records an object under its name, decoded.
func put[T any](all map[string]*T, o *unstructured.Unstructured, deleted bool) {
	if deleted {
		delete(all, o.GetName())
		return
	}
	value := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, value); err != nil {
		panic(err) // the API server has validated the object
	}
	all[o.GetName()] = value
}

// shown removes a write that the event shows.
func (w *world) shown(id objectID, version string, deleted bool) {
	want, ok := w.awaited[id]
	if !ok {
		return
	}
	got, err := strconv.ParseInt(version, 10, 64)
	if deleted && want == 0 || want != 0 && (err != nil || got >= want) {
		delete(w.awaited, id)
	}
}

// wrote records a write by the client: await waits for its event.
func (w *world) wrote(resource schema.GroupVersionResource, o metav1.Object) error {
	version, err := strconv.ParseInt(o.GetResourceVersion(), 10, 64)
	if err != nil {
		return fmt.Errorf("resourceVersion: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.version(resource, o.GetName()) < version {
		w.awaited[objectID{resource, o.GetName()}] = version
	}
	return nil
}

// version returns the version of an object that the last event has shown.
func (w *world) version(resource schema.GroupVersionResource, name string) int64 {
	var o metav1.Object
	switch resource {
	case websites:
		o = orNil(w.sites[name])
	case deployments:
		o = orNil(w.deployments[name])
	case services:
		o = orNil(w.services[name])
	case configMaps:
		o = orNil(w.configMaps[name])
	}
	if o == nil {
		return 0
	}
	version, _ := strconv.ParseInt(o.GetResourceVersion(), 10, 64) // an API server's versions are numbers
	return version
}

// orNil returns the object as an interface that is nil if the pointer is.
func orNil[T any, P interface {
	*T
	metav1.Object
}](o P) metav1.Object {
	if o == nil {
		return nil
	}
	return o
}

// deletes records a deletion by the client, before it is requested.
func (w *world) deletes(resource schema.GroupVersionResource, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.awaited[objectID{resource, name}] = 0
}

func (w *world) judgeTheme(theme string) {
	for name, site := range w.sites {
		if site.Spec.Theme == theme {
			w.judge(name)
		}
	}
}

func (w *world) judge(name string) {
	if fault := w.fault(name); fault != "" {
		w.wrong[name] = fault
	} else {
		delete(w.wrong, name)
	}
}

// fault returns the fault of a Website, or "".
func (w *world) fault(name string) string {
	site := w.sites[name]
	deployment := w.deployments[name]
	service := w.services[name]
	page := w.configMaps[name]
	if site == nil {
		if deployment != nil || service != nil || page != nil && page.Labels[website.SiteLabel] != "" {
			return "it is deleted, and children are left"
		}
		return ""
	}
	theme := w.configMaps[site.Spec.Theme]
	switch {
	case theme == nil:
		return "its theme does not exist"
	case !right(site, deployment, func(o *appsv1.Deployment) { website.SetDeployment(o, site) }):
		return "its Deployment is not right"
	case !right(site, service, func(o *corev1.Service) { website.SetService(o, site) }):
		return "its Service is not right"
	case !right(site, page, func(o *corev1.ConfigMap) { website.SetPage(o, site, theme.Data) }):
		return "its page is not right"
	case site.Status.ObservedGeneration != site.Generation:
		return "its observedGeneration is old"
	case site.Status.ThemeHash != website.Hash(theme.Data):
		return "its themeHash is old"
	case !meta.IsStatusConditionTrue(site.Status.Conditions, "Ready"):
		return fmt.Sprintf("it is not Ready: %v", site.Status.Conditions)
	}
	return ""
}

// right reports whether a child belongs to the Website, and has the fields that set sets.
func right[T any, P interface {
	*T
	metav1.Object
	DeepCopy() P
}](site *website.Website, o P, set func(P)) bool {
	if o == nil {
		return false
	}
	owner := metav1.GetControllerOfNoCopy(o)
	if owner == nil || owner.UID != site.UID {
		return false
	}
	want := o.DeepCopy()
	set(want)
	return equality.Semantic.DeepEqual(want, o)
}

// await waits until the events show all writes of the client, all Websites are right, and there are
// n of them. It returns the time of the last event.
func (w *world) await(ctx context.Context, n int) (time.Time, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, waitTimeout, errors.New("the Websites do not become right"))
	defer cancel()
	for {
		w.mu.Lock()
		changed := w.changed
		last := w.last
		missing := w.missing(n)
		w.mu.Unlock()
		if missing == "" {
			return last, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return last, fmt.Errorf("%w: %s", context.Cause(ctx), missing)
		}
	}
}

// missing returns what await waits for, or "".
func (w *world) missing(n int) string {
	for id := range w.awaited {
		return fmt.Sprintf("no event for the client's write of %s %q", id.resource.Resource, id.name)
	}
	for name, fault := range w.wrong {
		return fmt.Sprintf("%d Websites are wrong, for instance %q: %s", len(w.wrong), name, fault)
	}
	if len(w.sites) != n {
		return fmt.Sprintf("%d Websites, want %d", len(w.sites), n)
	}
	return ""
}

// until waits until a condition about the world holds.
func (w *world) until(ctx context.Context, what string, condition func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, waitTimeout, errors.New("waiting until "+what))
	defer cancel()
	for {
		w.mu.Lock()
		changed := w.changed
		holds := condition()
		w.mu.Unlock()
		if holds {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
