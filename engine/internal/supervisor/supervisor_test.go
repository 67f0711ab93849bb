package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/act"
	"github.com/hookloop/hookloop/engine/internal/loop"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/pipeline"
	"github.com/hookloop/hookloop/engine/internal/report"
	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/internal/watch/cachetest"
	"github.com/hookloop/hookloop/engine/internal/watch/discovery"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// The resources of the tests, beside the declaring ones.
var (
	composites = kinds[0]
	webs       = object.Resource{
		GVK:        schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Web"},
		Plural:     "webs",
		Namespaced: true,
		HasStatus:  true,
	}
	configMaps = object.Resource{
		GVK:        schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
		Plural:     "configmaps",
		Namespaced: true,
	}
)

// fixture is a Supervisor on an API server of a few lines.
type fixture struct {
	*Supervisor
	t      *testing.T
	server *cachetest.Server
	clock  *clocktesting.FakeClock
	// served are the resources of discovery; refresh reads them.
	served *served

	mu sync.Mutex // guards the fields below
	// opened counts the hooks that were opened: one for each start.
	opened int
	// ready is the last condition Ready that was written.
	ready metav1.Condition
	// events are "reason: message".
	events []string
	// records is the data of the ConfigMap with the finalizers; nil while it does not exist.
	// recordsRefused answers its requests instead.
	records        map[string]string
	recordsRefused int
}

// served are the documents of discovery.
type served []object.Resource

// ServerGroupsAndResources lists the resources.
func (s *served) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	var lists []*metav1.APIResourceList
	for _, r := range *s {
		resources := []metav1.APIResource{
			{Name: r.Plural, Kind: r.GVK.Kind, Namespaced: r.Namespaced, Verbs: metav1.Verbs{"list", "watch"}},
		}
		if r.HasStatus {
			resources = append(resources, metav1.APIResource{Name: r.Plural + "/status", Kind: r.GVK.Kind})
		}
		lists = append(lists, &metav1.APIResourceList{GroupVersion: r.GVK.GroupVersion().String(), APIResources: resources})
	}
	return nil, lists, nil
}

func (*served) ServerResourcesForGroupVersion(string) (*metav1.APIResourceList, error) {
	return nil, nil
}
func (*served) ServerPreferredResources() ([]*metav1.APIResourceList, error) { return nil, nil }
func (*served) ServerPreferredNamespacedResources() ([]*metav1.APIResourceList, error) {
	return nil, nil
}

// recorder ignores syncs.
type recorder struct{}

func (recorder) Synced(string, pipeline.Outcome) {}

// meter counts nothing.
type meter struct{}

func (meter) Wrote(string, string) {}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	w := &fixture{
		t: t, server: cachetest.New(t), clock: clocktesting.NewFakeClock(time.Unix(1_000_000, 0)),
		served: &served{kinds[0], kinds[1], webs, configMaps},
	}
	api := httptest.NewServer(w)
	t.Cleanup(api.Close)
	config := &rest.Config{Host: api.URL, QPS: -1}
	objects, err := cache.New(cache.Config{Config: config})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(objects.Close)
	found := discovery.New(
		discovery.Config{
			Client:   w.served,
			Cache:    objects,
			Clock:    w.clock,
			Interval: time.Hour,
		},
	)
	if err := found.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	tracer := noop.NewTracerProvider().Tracer("test")
	writer, err := act.NewWriter(act.Config{Config: config, Tracer: tracer, Meter: meter{}, Clock: clock.RealClock{}})
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(
		&rest.Config{Host: api.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
	if err != nil {
		t.Fatal(err)
	}
	events := report.NewEvents(t.Context(),
		report.EventConfig{Client: client.CoreV1(), Component: "test", QPS: 100, Burst: 100})
	t.Cleanup(events.Stop)
	w.Supervisor = New(Config{
		Cache: objects, Discovery: found, Writer: writer, Status: report.NewStatus(writer), Events: events,
		Recorder: recorder{}, Tracer: tracer, Clock: w.clock, Workers: 1, Sampled: func(trace.TraceID) bool { return false },
		Openers: hook.Openers{"webhook": w.open},
	})
	w.enqueue = func(object.Ref, queue.Priority, queue.Cause) {}
	return w
}

// open opens a hook that is never asked.
func (w *fixture) open(hook.Config) (*hook.Opened, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.opened++
	return &hook.Opened{
		Hook: hook.Func(func(context.Context, *hook.Question) (*hook.Answer, error) { return &hook.Answer{}, nil }),
	}, nil
}

// ServeHTTP takes conditions and Events, and leaves lists and watches to the cache's server.
func (w *fixture) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	out.Header().Set("Content-Type", "application/json")
	switch {
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/events"):
		var e struct{ Reason, Message string }
		_ = json.Unmarshal(body, &e)
		w.mu.Lock()
		w.events = append(w.events, e.Reason+": "+e.Message)
		w.mu.Unlock()
		_, _ = out.Write(body)
	case r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/status"):
		w.takeStatus(out, body)
	case strings.HasPrefix(r.URL.Path, "/api/v1/namespaces/home/configmaps"):
		w.takeRecords(out, r.Method, body)
	default:
		w.server.ServeHTTP(out, r)
	}
}

// takeRecords serves the ConfigMap with the finalizers.
func (w *fixture) takeRecords(out http.ResponseWriter, method string, body []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	code := w.recordsRefused
	if code == 0 && w.records == nil && method != http.MethodPost {
		code = http.StatusNotFound
	}
	if code != 0 {
		reason := map[int]string{http.StatusNotFound: "NotFound", http.StatusInternalServerError: "InternalError",
			http.StatusForbidden: "Forbidden"}[code]
		out.WriteHeader(code)
		_, _ = fmt.Fprintf(out, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, reason, code)
		return
	}
	var change struct{ Data map[string]*string }
	if err := json.Unmarshal(body, &change); err != nil && method != http.MethodGet {
		w.t.Error(err)
	}
	if w.records == nil {
		w.records = map[string]string{}
	}
	for key, value := range change.Data {
		if value == nil {
			delete(w.records, key)
			continue
		}
		w.records[key] = *value
	}
	data, _ := json.Marshal(w.records)
	_, _ = fmt.Fprintf(out,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"hookloop-finalizers","namespace":"home"},"data":%s}`,
		data)
}

// takeStatus stores a status as the API server does, and answers with the object.
func (w *fixture) takeStatus(out io.Writer, patch []byte) {
	var operations []struct{ Value json.RawMessage }
	if err := json.Unmarshal(patch, &operations); err != nil {
		w.t.Error(err)
		return
	}
	var status v1alpha1.ControllerStatus
	if err := json.Unmarshal(operations[1].Value, &status); err != nil {
		w.t.Error(err)
		return
	}
	w.mu.Lock()
	for _, c := range status.Conditions {
		if c.Type == v1alpha1.ConditionReady {
			w.ready = c
		}
	}
	w.mu.Unlock()
	_, _ = fmt.Fprintf(out,
		`{"apiVersion":"metacontroller.k8s.io/v1alpha1","kind":"CompositeController","metadata":{"name":"hello"},`+
			`"status":%s}`,
		operations[1].Value)
}

// declare puts a CompositeController on the server and waits until the cache shows it.
func (w *fixture) declare(name, spec string) object.Ref {
	w.t.Helper()
	return w.declareAs(composites, name, spec)
}

// declareAs puts a declaring object on the server and waits until the cache shows it.
func (w *fixture) declareAs(r object.Resource, name, spec string) object.Ref {
	w.t.Helper()
	version := w.put(r, name, spec)
	w.follow()
	w.await("the controller in the cache", func() bool {
		v, err := w.reader.View(r)
		return err == nil && v.AtLeast(version)
	})
	return object.Ref{GVK: r.GVK, Name: name}
}

// put puts a declaring object on the server.
func (w *fixture) put(r object.Resource, name, spec string) string {
	return w.server.Put(r, fmt.Sprintf(
		`{"apiVersion":"metacontroller.k8s.io/v1alpha1","kind":%q,"metadata":{"name":%q,"uid":"u-%s"},"spec":%s}`,
		r.GVK.Kind, name, name, spec))
}

// await waits until a condition holds.
func (w *fixture) await(what string, done func() bool) {
	w.t.Helper()
	deadline := time.After(30 * time.Second)
	for !done() {
		select {
		case <-deadline:
			w.t.Fatalf("there is no %s", what)
		case <-time.After(time.Millisecond):
		}
	}
}

// refresh reads the resources of discovery again.
func (w *fixture) refresh() {
	w.t.Helper()
	if err := w.Discovery.Refresh(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// condition returns the last condition Ready that was written.
func (w *fixture) condition() metav1.Condition {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ready
}

// follow has the declaring objects watched, as Run does.
func (w *fixture) follow() {
	w.t.Helper()
	held := cache.Held{}
	for _, r := range kinds {
		h, err := w.Cache.Acquire(w.t.Context(), r)
		if err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(h.Release)
		held[r] = h
	}
	w.reader = held
}

// declaring is the view of the declaring objects.
func (w *fixture) declaring() view.View {
	w.t.Helper()
	v, err := w.reader.View(composites)
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

// look has a declaring object looked at.
func (w *fixture) look(key object.Ref) loop.Result {
	w.t.Helper()
	result, err := w.Reconcile(w.t.Context(), queue.Item[object.Ref]{Key: key})
	if err != nil {
		w.t.Fatalf("Reconcile: %v", err)
	}
	return result
}

func (w *fixture) starts() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.opened
}

const webSpec = `{"generateSelector":true,"parentResource":{"apiVersion":"example.com/v1","resource":"webs"},
	"childResources":[{"apiVersion":"v1","resource":"configmaps"}],
	"hooks":{"sync":{"webhook":{"url":"http://hook/sync"}}}}`

// TestForbiddenControllerIsStartedSeldom looks at a controller that may not watch its parents again
// and again, as events and its own end do.
func TestForbiddenControllerIsStartedSeldom(t *testing.T) {
	w := newFixture(t)
	w.server.Refuse(webs, http.StatusForbidden)
	key := w.declare("hello", webSpec)
	for range 600 { // a minute
		for range 3 {
			if result := w.look(key); result.RequeueAfter <= 0 || result.RequeueAfter > 2*maxStartWait {
				t.Fatalf("the next look is after %s, want within %s", result.RequeueAfter, 2*maxStartWait)
			}
		}
		w.clock.Step(100 * time.Millisecond)
	}
	if n := w.starts(); n < 2 || n >= 10 {
		t.Errorf("started %d times in a minute, want several times, and fewer than 10", n)
	}
	if w.ready.Reason != v1alpha1.ReasonForbidden {
		t.Errorf("the condition is %+v, want Forbidden", w.ready)
	}
	w.server.Refuse(webs, 0)
	for i := 0; w.ready.Reason != v1alpha1.ReasonRunning; i++ {
		if i == 200 {
			t.Fatalf("20 s after the right was granted the condition is %+v, want Running", w.ready)
		}
		w.clock.Step(100 * time.Millisecond)
		w.look(key)
	}
	w.stopAll(nil)
}

// TestMissingRightsAreNamedAtOnce: the condition names every verb and kind, with the role that
// grants them.
func TestMissingRightsAreNamedAtOnce(t *testing.T) {
	w := newFixture(t)
	w.server.Refuse(webs, http.StatusForbidden)
	w.May = func(_ context.Context, a authorizationv1.ResourceAttributes) (bool, error) {
		return a.Resource == "configmaps" && a.Verb != "delete", nil
	}
	w.look(w.declare("hello", webSpec))
	want := `Hookloop may not get, list, watch webs.example.com; patch webs.example.com/status; delete configmaps; ` +
		`apply this ClusterRole, which the ClusterRole hookloop takes in by its label, or bind it: ` +
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":` +
		`{"labels":{"rbac.hookloop.dev/aggregate-to-hookloop":"true"},"name":"hookloop-composite-hello"},"rules":[` +
		`{"verbs":["get","list","watch"],"apiGroups":["example.com"],"resources":["webs"]},` +
		`{"verbs":["patch"],"apiGroups":["example.com"],"resources":["webs/status"]},` +
		`{"verbs":["delete"],"apiGroups":[""],"resources":["configmaps"]}]}`
	if w.ready.Reason != v1alpha1.ReasonForbidden || w.ready.Message != want {
		t.Errorf("the condition is %s:\n%s\nwant:\n%s", w.ready.Reason, w.ready.Message, want)
	}
}

// TestControllerThatEndsAfterItsStart: lists hang for longer than a start waits, and are then
// forbidden.
func TestControllerThatEndsAfterItsStart(t *testing.T) {
	w := newFixture(t)
	key := w.declare("hello", webSpec)
	c, err := w.resolve(w.declaring().Get("", "hello"))
	if err != nil {
		t.Fatal(err)
	}
	late := &instance{config: c, filled: make(chan struct{}), done: make(chan struct{}), cancel: func(error) {}}
	late.related = w.customize(key, c, map[hook.Op]*hook.Opened{},
		loop.New[hook.Key]("late", loop.Config{Cache: w.Cache, Clock: w.clock}))
	late.pipeline = pipeline.New(pipeline.Config{})
	late.err = &cache.UnwatchableError{Resource: webs, Err: fmt.Errorf("no rights")}
	close(late.done)
	w.running[key] = late
	if result := w.look(key); result.RequeueAfter < minStartWait {
		t.Errorf("the next look is after %s, want the backoff of starts", result.RequeueAfter)
	}
	if w.ready.Reason != v1alpha1.ReasonParentNotFound || !strings.Contains(w.ready.Message, "no rights") {
		t.Errorf("the condition is %+v, want the error with which it ended", w.ready)
	}
	w.look(key)
	if w.starts() != 0 {
		t.Error("it was started again before its backoff was over")
	}
	w.clock.Step(2 * minStartWait)
	w.look(key)
	if w.starts() != 1 {
		t.Errorf("started %d times after the backoff, want once", w.starts())
	}
	w.stopAll(nil)
}

// TestReadyThoughAControllerIsDeletedMeanwhile: between the first list and the subscription, so
// that it has no event.
func TestReadyThoughAControllerIsDeletedMeanwhile(t *testing.T) {
	w := newFixture(t)
	key := w.declare("hello", webSpec)
	var enqueued []object.Ref
	w.enqueue = func(k object.Ref, _ queue.Priority, _ queue.Cause) { enqueued = append(enqueued, k) }
	if err := w.first(); err != nil {
		t.Fatal(err)
	}
	w.server.Delete(composites, "", "hello")
	for w.declaring().Get("", "hello") != nil {
		select {
		case <-t.Context().Done():
			t.Fatal("the cache still shows the controller")
		case <-time.After(time.Millisecond):
		}
	}
	if w.Ready() {
		t.Fatal("ready before anything was looked at")
	}
	for _, k := range enqueued {
		w.look(k)
	}
	if !w.Ready() {
		t.Errorf("not ready; %v was enqueued, want %v", enqueued, key)
	}
}

// TestMissingResourceIsNoWarningAtFirst: a user who applies a CRD and its controller together is
// not warned; a user who forgot the CRD is.
func TestMissingResourceIsNoWarningAtFirst(t *testing.T) {
	w := newFixture(t)
	key := w.declare("hello", strings.Replace(webSpec, `"webs"`, `"apps"`, 1))
	result := w.look(key)
	if w.ready.Reason != v1alpha1.ReasonParentNotFound {
		t.Errorf("the condition is %+v, want ParentNotFound", w.ready)
	}
	if result.RequeueAfter != missingGrace {
		t.Errorf("the next look is after %s, want %s", result.RequeueAfter, missingGrace)
	}
	if wait, due := w.missing.note(key, w.ready.Message); wait == 0 || due {
		t.Errorf("an Event is due (%v) after %s, want none before the grace is over", due, wait)
	}
	w.clock.Step(missingGrace)
	w.look(key)
	w.look(key)
	w.awaitEvents(
		`CreateError: Cannot start controller: spec.parentResource: the API server does not serve apps.example.com/v1; ` +
			`the controller starts when it does`,
	)
}

// TestResourceThatWasProbablyMeant is named in the message.
func TestResourceThatWasProbablyMeant(t *testing.T) {
	for resource, want := range map[string]string{
		`"apiVersion":"example.com/v1","resource":"Web"`: `spec.parentResource.resource: got "Web", expected the ` +
			`plural name "webs"`,
		`"apiVersion":"example.com/v2","resource":"webs"`: `spec.parentResource.apiVersion: the API server does ` +
			`not serve webs.example.com/v2; expected example.com/v1, which has webs`,
	} {
		w := newFixture(t)
		w.look(w.declare("hello", strings.Replace(webSpec, `"apiVersion":"example.com/v1","resource":"webs"`, resource, 1)))
		if w.ready.Message != want {
			t.Errorf("%s: the condition is %q, want %q", resource, w.ready.Message, want)
		}
	}
}

// awaitEvents waits until these Events, and no others, have reached the API server.
func (w *fixture) awaitEvents(want ...string) {
	w.t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		w.mu.Lock()
		got := slices.Clone(w.events)
		w.mu.Unlock()
		if slices.Equal(got, want) {
			return
		}
		select {
		case <-deadline:
			w.t.Fatalf("the Events are %q, want %q", got, want)
		case <-time.After(10 * time.Millisecond):
		}
		if len(got) > len(want) {
			w.t.Fatalf("the Events are %q, want %q", got, want)
		}
	}
}

// TestFinalizerRecords outlive the process: what one supervisor has recorded, another finds.
func TestFinalizerRecords(t *testing.T) {
	w := newFixture(t)
	store := NewFinalizerRecords(w.Writer, "home")
	key := object.Ref{GVK: composites.GVK, Name: "hello.world"}
	other := object.Ref{GVK: kinds[1].GVK, Name: "hello.world"}
	record := FinalizerRecord{Finalizer: "f", Resources: []ParentResource{{"example.com/v1", "webs"}}}
	if all, err := store.Load(t.Context()); err != nil || len(all) > 0 {
		t.Fatalf("Load = %v, %v, want nothing", all, err)
	}
	for _, k := range []object.Ref{key, other} {
		if err := store.Store(t.Context(), k, record); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Delete(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	all, err := store.Load(t.Context())
	if diff := cmp.Diff(map[object.Ref]FinalizerRecord{key: record}, all); err != nil || diff != "" {
		t.Errorf("Load = %v, (-want +got):\n%s", err, diff)
	}
}

// TestUnknownRecordStopsAStart: a record that cannot be read is not an empty one.
func TestUnknownRecordStopsAStart(t *testing.T) {
	w := newFixture(t)
	w.Finalizers = NewFinalizerRecords(w.Writer, "home")
	w.mu.Lock()
	w.recordsRefused = http.StatusInternalServerError
	w.mu.Unlock()
	key := w.declare("hello", webSpec)
	if _, err := w.Reconcile(t.Context(), queue.Item[object.Ref]{Key: key}); err == nil || w.starts() != 0 {
		t.Errorf("Reconcile = %v, %d starts; want an error and none", err, w.starts())
	}
}

// TestRecordThatMayNotBeWritten stops no controller, but is reported: a missing right must not end
// a working set-up at an upgrade.
func TestRecordThatMayNotBeWritten(t *testing.T) {
	w := newFixture(t)
	w.Finalizers = NewFinalizerRecords(w.Writer, "home")
	w.mu.Lock()
	w.recordsRefused = http.StatusForbidden
	w.mu.Unlock()
	w.look(
		w.declare(
			"hello",
			strings.Replace(webSpec, `"hooks":{`, `"hooks":{"finalize":{"webhook":{"url":"http://hook/finalize"}},`, 1),
		),
	)
	defer w.stopAll(nil)
	if w.starts() == 0 {
		t.Error("the controller was not started")
	}
	deadline := time.After(30 * time.Second)
	for {
		w.mu.Lock()
		reported := slices.ContainsFunc(w.events, func(e string) bool {
			return strings.HasPrefix(e,
				"FinalizerNotRecorded: ")
		})
		w.mu.Unlock()
		if reported {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("no Event tells that the record may not be written: %q", w.events)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// TestUnknownResourceIsNotAGoneOne: a finalizer is not forgotten because discovery has failed for
// its parents' group.
func TestUnknownResourceIsNotAGoneOne(t *testing.T) {
	w := newFixture(t)
	w.Discovery = discovery.New(discovery.Config{Client: &served{}, Cache: w.Cache, Clock: w.clock, Interval: time.Hour})
	if err := w.letGo(t.Context(), "f", []ParentResource{{"example.com/v1", "webs"}}); err == nil {
		t.Error("nothing is known of the API server's resources, and that is no error")
	}
	if err := w.Discovery.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.letGo(t.Context(), "f", []ParentResource{{"example.com/v1", "webs"}}); err != nil {
		t.Errorf("a resource that is not served has no objects, but letGo = %v", err)
	}
}
