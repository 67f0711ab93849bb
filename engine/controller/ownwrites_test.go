package controller_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/engine/internal/host"
	"github.com/hookloop/hookloop/internal/memapi"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestEveryReadShowsOwnWrites has two controllers write and read ConfigMaps at random, while events
// are delayed, watches are dropped and their history is lost. Every get, list and read by an index
// must show all writes of the process that ended before it, and no partial state: the objects of
// one writer, which only it writes, are exactly as it has left them.
func TestEveryReadShowsOwnWrites(t *testing.T) {
	const writersOfController, steps = 2, 150
	server, runtimes := runWriters(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	w := &writing{t: t, server: server, last: map[string]state{}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var writers, lag sync.WaitGroup
	done := make(chan struct{})
	lag.Go(func() { delayEvents(server, rand.New(rand.NewPCG(seed, 0)), done) })
	for i := range runtimes {
		for n := range writersOfController {
			writers.Go(func() {
				one := &writer{writing: w, rt: runtimes[i], ctx: ctx, own: map[string]*configMapState{}}
				one.id = fmt.Sprintf("w%d-%d-", i, n)
				one.run(rand.New(rand.NewPCG(seed, uint64(1+i*10+n))), steps)
			})
		}
	}
	writers.Wait()
	close(done)
	lag.Wait()
}

var configMapsGroup = schema.GroupResource{Resource: "configmaps"}

// delayEvents stops and delivers events, and disturbs watches, until done is closed.
func delayEvents(s *memapi.Server, r *rand.Rand, done <-chan struct{}) {
	defer s.Release(configMapsGroup)
	for {
		s.Hold(configMapsGroup)
		pause := time.NewTimer(time.Duration(r.IntN(3000)) * time.Microsecond)
		select {
		case <-pause.C:
		case <-done:
			pause.Stop()
			return
		}
		if r.IntN(60) == 0 {
			s.Forget(configMapsGroup)
			s.DropWatches(configMapsGroup)
		}
		s.Release(configMapsGroup)
		time.Sleep(time.Duration(r.IntN(1000)) * time.Microsecond) // how long events flow, not a wait for a state
	}
}

// byShelf finds ConfigMaps by the text of a field.
var byShelf = controller.NewIndex("shelf", func(c configMap) []string { return []string{c.Data["shelf"]} })

// runWriters runs two controllers, and returns the Runtimes of their initializers, which stay valid
// until the test ends.
func runWriters(t *testing.T) (*memapi.Server, []*controller.Runtime) {
	t.Helper()
	server, err := memapi.New(memapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	process, err := host.New(t.Context(), host.Config{Config: server.Config(), Component: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Close)
	given := make(chan *controller.Runtime)
	declared := func(name string) controller.Declared {
		return controller.New[configMap](name).Index(byShelf).Reconciler(reconciler(idle)).
			Initialize(func(ctx context.Context, rt *controller.Runtime) error {
				given <- rt
				<-ctx.Done()
				return nil
			})
	}
	group, err := host.NewGroup(process.Host, declared("one"), declared("two"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	wait.Go(func() { group.Run(ctx) })
	t.Cleanup(func() { cancel(); wait.Wait() })
	return server, []*controller.Runtime{next(t, given), next(t, given)}
}

// writing is what all writers share.
type writing struct {
	t      *testing.T
	server *memapi.Server
	mu     sync.Mutex // guards last
	// last are the ended writes of all writers, by name.
	last map[string]state
}

// state is the state of a name after its last ended write.
type state struct {
	n    int
	gone bool
	// busy reports that a further write is under way.
	busy bool
}

func (w *writing) began(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.last[name]
	s.busy = true
	w.last[name] = s
}

func (w *writing) ended(name string, s state) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last[name] = s
}

func (w *writing) snapshot() map[string]state {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make(map[string]state, len(w.last))
	for name, s := range w.last {
		all[name] = s
	}
	return all
}

// writer writes the objects with names that begin with id.
type writer struct {
	*writing
	rt  *controller.Runtime
	ctx context.Context //nolint:containedctx // bounds the test
	id  string
	n   int
	own map[string]*configMapState
}

// configMapState is an object as its writer has left it.
type configMapState struct {
	object   configMap
	deleting bool
}

func (w *writer) run(r *rand.Rand, steps int) {
	for range steps {
		name := w.id + strconv.Itoa(r.IntN(4))
		if err := w.write(r, name); err != nil {
			w.t.Errorf("%s: %v", name, err)
			return
		}
		if w.t.Failed() {
			return
		}
		w.read(r, name)
	}
}

// write changes the object of a name in a random way.
func (w *writer) write(r *rand.Rand, name string) error {
	w.n++
	w.began(name)
	shelf := "shelf-" + strconv.Itoa(r.IntN(3))
	present := w.own[name]
	switch {
	case present == nil:
		return w.create(r, name, shelf)
	case present.deleting:
		if err := w.rt.RemoveFinalizer(w.ctx, present.object, "test/finalizer"); err != nil {
			return err
		}
		delete(w.own, name)
		w.ended(name, state{n: w.n, gone: true})
		return nil
	}
	var err error
	o := present.object
	switch r.IntN(4) {
	case 0:
		return w.remove(name, present)
	case 1:
		err = controller.PatchMetadata(w.ctx, w.rt, o, func(o configMap) { o.Labels["n"] = strconv.Itoa(w.n) })
	default:
		o.Data["shelf"], o.Labels = shelf, map[string]string{"n": strconv.Itoa(w.n)}
		err = w.rt.Update(w.ctx, o)
	}
	w.ended(name, state{n: w.n})
	return err
}

func (w *writer) create(r *rand.Rand, name, shelf string) error {
	o := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"n": strconv.Itoa(w.n)}},
		Data:       map[string]string{"shelf": shelf},
	}
	if r.IntN(3) == 0 {
		o.Finalizers = []string{"test/finalizer"}
	}
	write := w.rt.Create
	if r.IntN(2) == 0 {
		write = w.rt.Apply
	}
	if err := write(w.ctx, o); err != nil {
		return err
	}
	w.own[name] = &configMapState{object: o}
	w.ended(name, state{n: w.n})
	return nil
}

func (w *writer) remove(name string, present *configMapState) error {
	if err := w.rt.Delete(w.ctx, present.object); err != nil {
		return err
	}
	if len(present.object.Finalizers) > 0 {
		present.deleting = true
		w.ended(name, state{n: present.number()})
		return nil
	}
	delete(w.own, name)
	w.ended(name, state{n: w.n, gone: true})
	return nil
}

func (s *configMapState) number() int { return number(s.object) }

func number(o configMap) int {
	n, err := strconv.Atoi(o.Labels["n"])
	if err != nil {
		return -1
	}
	return n
}

// read reads in a random way, and compares the result with the earlier writes.
func (w *writer) read(r *rand.Rand, name string) {
	before := w.snapshot()
	switch r.IntN(3) {
	case 0:
		o, err := controller.Get[configMap](w.rt, controller.Key{Namespace: "default", Name: name})
		switch {
		case controller.IsNotFound(err):
			w.compare(name, nil)
		case err != nil:
			w.t.Errorf("get %s: %v", name, err)
		default:
			w.compare(name, o)
		}
	case 1:
		found, err := controller.List[configMap](w.rt, controller.InNamespace("default"))
		w.check("list", before, "", found, err)
	default:
		shelf := "shelf-" + strconv.Itoa(r.IntN(3))
		found, err := controller.By(w.rt, byShelf, shelf)
		w.check("index", before, shelf, found, err)
	}
}

// check compares a list with the writer's own objects, and with the ended writes of others.
func (w *writer) check(what string, before map[string]state, shelf string, found []configMap, err error) {
	if err != nil {
		w.t.Errorf("%s: %v", what, err)
		return
	}
	byName := map[string]configMap{}
	for _, o := range found {
		byName[o.Name] = o
	}
	for i := range 4 {
		name := w.id + strconv.Itoa(i)
		if own := w.own[name]; shelf == "" || own == nil || own.object.Data["shelf"] == shelf {
			w.compare(name, byName[name])
		} else if byName[name] != nil {
			w.t.Errorf("%s of %s: has %s, which is on the shelf %s", what, shelf, name, own.object.Data["shelf"])
		}
	}
	for name, s := range before {
		o := byName[name]
		switch {
		case o != nil && s.gone && number(o) <= s.n:
			w.t.Errorf("%s: has %s of write %d, which write %d has removed", what, name, number(o), s.n)
		case o != nil && number(o) < s.n:
			w.t.Errorf("%s: has %s of write %d, want %d or later", what, name, number(o), s.n)
		case o == nil && !s.gone && !s.busy && shelf == "" && w.snapshot()[name] == s:
			w.t.Errorf("%s: lacks %s of write %d", what, name, s.n)
		}
	}
}

// compare compares a read object of the writer with the state that it has left.
func (w *writer) compare(name string, o configMap) {
	own := w.own[name]
	switch {
	case own == nil && o != nil:
		w.t.Errorf("%s is read after its removal, as %s", name, o.ResourceVersion)
	case own != nil && o == nil:
		w.t.Errorf("%s is not read, want %s", name, own.object.ResourceVersion)
	case own == nil:
	case own.deleting != (o.DeletionTimestamp != nil), number(o) != own.number(),
		o.Data["shelf"] != own.object.Data["shelf"]:
		w.t.Errorf("%s is read as %v, want %v", name, o, own.object)
	}
}
