package controller

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/internal/act"
	"github.com/hookloop/hookloop/engine/internal/host"
	"github.com/hookloop/hookloop/engine/internal/watch/discovery"
	"github.com/hookloop/hookloop/engine/object"
	"go.opentelemetry.io/otel/trace/noop"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// writes is a Runtime with an API server that records requests.
type writes struct {
	*Runtime
	mu       sync.Mutex // guards requests
	requests []string
	code     int
}

// Wrote implements act.Meter.
func (*writes) Wrote(string, string) {}

// served are the kinds of the API server: Deployments, Nodes, ConfigMaps, and Gadgets without a
// status subresource.
type served struct{}

func (served) Kind(gvk schema.GroupVersionKind) (object.Resource, error) {
	r, ok := map[string]object.Resource{
		"Deployment": {GVK: gvk, Plural: "deployments", Namespaced: true, HasStatus: true},
		"Node":       {GVK: gvk, Plural: "nodes", HasStatus: true},
		"ConfigMap":  {GVK: gvk, Plural: "configmaps", Namespaced: true},
		"Gadget":     {GVK: gvk, Plural: "gadgets", Namespaced: true},
	}[gvk.Kind]
	if !ok || gvk.Version != "v1" {
		return r, &discovery.NotFoundError{APIVersion: gvk.GroupVersion().String(), Name: gvk.Kind}
	}
	return r, nil
}

func (served) Changed() <-chan struct{} { return nil }

func newWrites(t *testing.T) *writes {
	t.Helper()
	w := &writes{}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.requests = append(w.requests, r.Method+" "+r.URL.String()+" "+string(body))
		rw.Header().Set("Content-Type", "application/json")
		if w.code != 0 {
			rw.WriteHeader(w.code)
			reason := map[int]metav1.StatusReason{404: metav1.StatusReasonNotFound, 409: metav1.StatusReasonConflict}[w.code]
			_ = json.NewEncoder(rw).Encode(metav1.Status{Status: metav1.StatusFailure, Reason: reason, Code: int32(w.code),
				TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Details: &metav1.StatusDetails{Name: "a"}})
			return
		}
		_, _ = io.WriteString(rw, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"shop","name":"a",`+
			`"uid":"u","resourceVersion":"8"},"status":{"replicas":3}}`)
	}))
	t.Cleanup(server.Close)
	writer, err := act.NewWriter(act.Config{
		Config: &rest.Config{Host: server.URL, QPS: -1}, Tracer: noop.NewTracerProvider().Tracer(""), Meter: w,
		Clock: clock.RealClock{},
	})
	if err != nil {
		t.Fatal(err)
	}
	h := &host.Host{Writer: writer, Scheme: scheme.Scheme, Resources: served{}}
	w.Runtime = newRuntime(t.Context(), h, access{controller: "bar"},
		func(context.Context, object.Resource) error { return nil })
	return w
}

// deployment is a Deployment as it was read.
func deployment() *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "a", UID: "u", ResourceVersion: "7", Generation: 2,
			Labels: map[string]string{"old": "x", "same": "x"},
		},
		Status: appsv1.DeploymentStatus{Replicas: 2, ReadyReplicas: 1},
	}
}

const deployments = "/apis/apps/v1/namespaces/shop/deployments/a"

func TestSetStatus(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*appsv1.Deployment)
		want   []string
		err    string
	}{
		"no change": {func(d *appsv1.Deployment) { d.Status.Conditions = []appsv1.DeploymentCondition{} }, nil, ""},
		"changed fields": {
			func(d *appsv1.Deployment) { d.Status.Replicas, d.Status.ReadyReplicas = 3, 0 },
			[]string{"PATCH " + deployments + `/status {"metadata":{"resourceVersion":"7","uid":"u"},` +
				`"status":{"readyReplicas":null,"replicas":3}}`}, "",
		},
		"a changed spec": {
			func(d *appsv1.Deployment) { d.Spec.Paused = true }, nil,
			`status Deployment.apps/v1 "shop/a": spec.paused changed, expected changes of the status only`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWrites(t)
			d := deployment()
			err := SetStatus(t.Context(), w.Runtime, d, test.change)
			if err != nil && err.Error() != test.err || err == nil && test.err != "" {
				t.Errorf("error %v, want %q", err, test.err)
			}
			if diff := cmp.Diff(test.want, w.requests); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if len(test.want) > 0 && (d.ResourceVersion != "8" || d.Status.Replicas != 3 || d.Status.ReadyReplicas != 0) {
				t.Errorf("the object is %v, want the API server's answer", d)
			}
		})
	}
}

// TestSetStatusInTheObject writes no observedGeneration: each write would make a new generation.
func TestSetStatusInTheObject(t *testing.T) {
	w := newWrites(t)
	gadget := func(version string, generation int64) map[string]any {
		return map[string]any{"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": map[string]any{
			"namespace": "shop", "name": "a", "uid": "u", "resourceVersion": version, "generation": generation,
		}}
	}
	u := &unstructured.Unstructured{Object: gadget("7", 4)}
	set := func(reason string) {
		t.Helper()
		if err := SetStatus(t.Context(), w.Runtime, u, func(u *unstructured.Unstructured) {
			c := True("Ready", reason, "")
			c.LastTransitionTime = metav1.Unix(0, 0)
			if err := SetConditionsOf(u, c); err != nil {
				t.Error(err)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	set("Up")
	want := []string{`PATCH /apis/example.com/v1/namespaces/shop/gadgets/a ` +
		`{"metadata":{"resourceVersion":"7","uid":"u"},` +
		`"status":{"conditions":[{"lastTransitionTime":"1970-01-01T00:00:00Z","message":"","reason":"Up",` +
		`"status":"True","type":"Ready"}]}}`}
	if diff := cmp.Diff(want, w.requests); diff != "" {
		t.Fatalf("requests (-want +got):\n%s", diff)
	}
	u.Object = gadget("8", 5)
	u.Object["status"] = map[string]any{"conditions": []any{map[string]any{
		"lastTransitionTime": "1970-01-01T00:00:00Z", "message": "", "reason": "Up", "status": "True", "type": "Ready",
	}}}
	set("Up")
	if len(w.requests) != 1 {
		t.Errorf("an unchanged status is written: %s", w.requests[1])
	}
}

func TestPatchMetadata(t *testing.T) {
	w := newWrites(t)
	d := deployment()
	if err := PatchMetadata(t.Context(), w.Runtime, d, func(d *appsv1.Deployment) {
		d.Labels = map[string]string{"same": "x", "new": "y"}
		d.Annotations = map[string]string{"note": "z"}
	}); err != nil {
		t.Fatal(err)
	}
	want := []string{"PATCH " + deployments + ` {"metadata":{"annotations":{"note":"z"},"labels":{"new":"y","old":null},` +
		`"resourceVersion":"7","uid":"u"}}`}
	if diff := cmp.Diff(want, w.requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	d = deployment()
	if err := PatchMetadata(t.Context(), w.Runtime, d, func(*appsv1.Deployment) {}); err != nil || len(w.requests) != 1 {
		t.Errorf("error %v and %d requests, want none", err, len(w.requests)-1)
	}
	err := PatchMetadata(t.Context(), w.Runtime, d, func(d *appsv1.Deployment) { d.Finalizers = []string{"a"} })
	if err == nil || !strings.Contains(err.Error(), "metadata.finalizers changed, expected changes of labels") {
		t.Errorf("error %v, want one about the finalizers", err)
	}
}

// TestWrites have the kind of the scheme, preconditions and the field manager, and the object
// becomes the API server's answer.
func TestWrites(t *testing.T) {
	const empty = `"spec":{"selector":null,"strategy":{},"template":{"metadata":{},"spec":{"containers":null}}}`
	const read = `"metadata":{"generation":2,"labels":{"old":"x","same":"x"},"name":"a","namespace":"shop",` +
		`"resourceVersion":"7","uid":"u"}`
	applied := strings.NewReplacer(`"selector":null,`, "", `"containers":null`, "").Replace(empty)
	for name, test := range map[string]struct {
		write func(*writes, *appsv1.Deployment) error
		want  string
	}{
		"update": {
			func(w *writes, d *appsv1.Deployment) error { return w.Update(t.Context(), d) },
			"PUT " + deployments + `?fieldManager=bar {"apiVersion":"apps/v1","kind":"Deployment",` + read + "," + empty +
				`,"status":{"readyReplicas":1,"replicas":2}}`,
		},
		"apply": {
			func(w *writes, d *appsv1.Deployment) error { return w.Apply(t.Context(), d) },
			"PATCH " + deployments + `?fieldManager=bar&force=true {"apiVersion":"apps/v1","kind":"Deployment",` + read + "," +
				applied + `}`,
		},
		"create with a generated name": {
			func(w *writes, d *appsv1.Deployment) error {
				d.ObjectMeta = metav1.ObjectMeta{Namespace: "shop", GenerateName: "a-"}
				d.Status = appsv1.DeploymentStatus{}
				return w.Create(t.Context(), d)
			},
			`POST /apis/apps/v1/namespaces/shop/deployments?fieldManager=bar {"apiVersion":"apps/v1","kind":"Deployment",` +
				`"metadata":{"generateName":"a-","namespace":"shop"},` + empty + `,"status":{}}`,
		},
		"delete": {
			func(w *writes, d *appsv1.Deployment) error { return w.Delete(t.Context(), d) },
			"DELETE " + deployments + ` {"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"u"},` +
				`"propagationPolicy":"Background"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWrites(t)
			d := deployment()
			if err := test.write(w, d); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{test.want}, w.requests); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if name != "delete" && (d.ResourceVersion != "8" || d.Kind != "Deployment") {
				t.Errorf("the object is %v, want the API server's answer", d)
			}
		})
	}
}

// TestWrongWrites are errors that name the write, before a request is sent.
func TestWrongWrites(t *testing.T) {
	unread := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}}
	other := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v2", "kind": "Gadget",
		"metadata": map[string]any{"namespace": "shop", "name": "a"}}}
	misnamed := unread.DeepCopy()
	misnamed.Kind = "Secret"
	misnamed.APIVersion = "v1"
	for name, test := range map[string]struct {
		write func(context.Context, *Runtime) error
		want  string
	}{
		"nil": {
			func(ctx context.Context, rt *Runtime) error { return rt.Update(ctx, (*corev1.ConfigMap)(nil)) },
			"update: the object is nil",
		},
		"never read": {
			func(ctx context.Context, rt *Runtime) error { return rt.Update(ctx, unread) },
			`update ConfigMap.v1 "shop/a": uid or resourceVersion is empty, expected an object that was read`,
		},
		"delete of an object that was never read": {
			func(ctx context.Context, rt *Runtime) error { return rt.Delete(ctx, unread) },
			`delete ConfigMap.v1 "shop/a": uid or resourceVersion is empty, expected an object that was read`,
		},
		"no name": {
			func(ctx context.Context, rt *Runtime) error {
				return rt.Apply(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}})
			},
			`apply ConfigMap.v1 "shop/": the name is empty`,
		},
		"no namespace": {
			func(ctx context.Context, rt *Runtime) error {
				return rt.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
			},
			`create ConfigMap.v1 "a": the resource is namespaced, expected a namespace`,
		},
		"a namespace": {
			func(ctx context.Context, rt *Runtime) error {
				return rt.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}})
			},
			`create Node.v1 "shop/a": the resource is cluster-scoped, expected no namespace`,
		},
		"a version that is not served": {
			func(ctx context.Context, rt *Runtime) error { return rt.Create(ctx, other) },
			`create Gadget.example.com/v2 "shop/a": the API server does not serve Gadget of example.com/v2`,
		},
		"another kind": {
			func(ctx context.Context, rt *Runtime) error { return rt.Create(ctx, misnamed) },
			`create "shop/a": a *v1.ConfigMap has the kind Secret.v1, expected ConfigMap.v1 or none`,
		},
		"create of an object that was read": {
			func(ctx context.Context, rt *Runtime) error { return rt.Create(ctx, deployment()) },
			`create Deployment.apps/v1 "shop/a": it has a resourceVersion, expected a new object`,
		},
		"resourceVersion 0, which is no precondition": {
			func(ctx context.Context, rt *Runtime) error {
				o := deployment()
				o.ResourceVersion = "0"
				return rt.Update(ctx, o)
			},
			`update Deployment.apps/v1 "shop/a": resourceVersion is 0, expected that of an object that was read`,
		},
		"a name that leads to another URL": {
			func(ctx context.Context, rt *Runtime) error {
				return rt.Apply(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: ".."}})
			},
			`apply ConfigMap.v1 "shop/..": the name may not be '..'`,
		},
		"a namespace that leads to another URL": {
			func(ctx context.Context, rt *Runtime) error {
				return rt.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "../x", Name: "a"}})
			},
			`create ConfigMap.v1 "../x/a": the namespace may not contain '/'`,
		},
		"after the reconcile": {
			func(ctx context.Context, rt *Runtime) error { rt.end(); return rt.Update(ctx, deployment()) }, errEnded.Error(),
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWrites(t)
			if err := test.write(t.Context(), w.Runtime); err == nil || err.Error() != test.want {
				t.Errorf("error %v\nwant  %s", err, test.want)
			}
			if len(w.requests) > 0 {
				t.Errorf("sent were %v, want nothing", w.requests)
			}
		})
	}
}

func TestWriteErrors(t *testing.T) {
	w := newWrites(t)
	w.code = http.StatusConflict
	if err := w.Update(t.Context(), deployment()); !errors.Is(err, ErrConflict) {
		t.Errorf("error %v, want ErrConflict", err)
	}
	w.code = http.StatusNotFound
	if err := w.Update(t.Context(), deployment()); !IsNotFound(err) || errors.Is(err, ErrConflict) {
		t.Errorf("error %v, want one of IsNotFound", err)
	}
	if err := w.Delete(t.Context(), deployment()); err != nil {
		t.Errorf("error %v, want none: the object is gone", err)
	}
}

func TestOwn(t *testing.T) {
	owner := deployment()
	child := func(namespace string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c"}}
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "node"}}
	taken := child("shop")
	ofNode := metav1.NewControllerRef(node, corev1.SchemeGroupVersion.WithKind("Node"))
	taken.OwnerReferences = []metav1.OwnerReference{*ofNode}
	loose := child("shop")
	loose.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1beta1", Kind: "Deployment", Name: "a", UID: "u"}}
	for name, test := range map[string]struct {
		owner, child Object
		want         string
	}{
		"the namespace of the owner":                {owner, child("shop"), ""},
		"a cluster-scoped owner":                    {node, child("shop"), ""},
		"an owner that is no controller becomes it": {owner, loose, ""},
		"another namespace":                         {owner, child("other"), `expected the namespace "shop"`},
		"a cluster-scoped child":                    {owner, node, "a namespaced object cannot own a cluster-scoped one"},
		"another controller":                        {owner, taken, `it is controlled by Node "n", expected no controller`},
		"an owner without UID":                      {child("shop"), child("shop"), "the owner has no name or no UID"},
		"nil":                                       {owner, (*corev1.ConfigMap)(nil), "got a nil object"},
	} {
		t.Run(name, func(t *testing.T) {
			err := newWrites(t).Own(test.owner, test.child)
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("error %v, want %q", err, test.want)
				}
				return
			}
			ref := metav1.GetControllerOf(test.child)
			if err != nil || ref == nil || ref.UID != test.owner.GetUID() || len(test.child.GetOwnerReferences()) != 1 {
				t.Errorf("error %v, owners %v, want the one controller", err, test.child.GetOwnerReferences())
			}
		})
	}
}
