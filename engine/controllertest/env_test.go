package controllertest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/engine/controllertest"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type (
	configMap = *corev1.ConfigMap
	secret    = *corev1.Secret
)

func key(name string) controllertest.Key {
	return controllertest.Key{Namespace: "shop", Name: name}
}

func newMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Data: data}
}

// copies is a controller that has one Secret for each ConfigMap with the key "copy".
func copies() controller.Declared {
	reconcile := func(ctx context.Context, req *controller.Request[configMap]) (controller.Result, error) {
		if req.Object == nil || req.Object.Data["copy"] == "" {
			return controller.Result{}, nil
		}
		if req.Object.Data["copy"] == "broken" {
			return controller.Result{}, errors.New("the text cannot be copied")
		}
		child := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: req.Key.Namespace, Name: req.Key.Name}}
		child.Data = map[string][]byte{"text": []byte(req.Object.Data["copy"])}
		if err := req.Own(req.Object, child); err != nil {
			return controller.Result{}, err
		}
		return controller.Result{}, req.Apply(ctx, child)
	}
	return controller.New[configMap]("copies").
		Watch(controller.TypeOf[secret](), controller.OwnerOf()).
		Reconciler(controller.ReconcileFunc[configMap](reconcile))
}

// lines are the writes that changed something, or failed.
func lines(all []controllertest.Write) []string {
	var out []string
	for _, w := range all {
		if w.Changed || w.Code >= 400 {
			out = append(out, w.String())
		}
	}
	return out
}

func TestRun(t *testing.T) {
	env := controllertest.New(t, controllertest.Options{Objects: []controllertest.Object{
		newMap("a", map[string]string{"copy": "one"}),
	}})
	env.Run(copies())
	env.UntilQuiet(t.Context())
	if got := controllertest.Get[secret](env, key("a")); string(got.Data["text"]) != "one" {
		t.Errorf("the copy is %v, want one", got.Data)
	}
	want := []string{"patch secrets shop/a by controllers"}
	if diff := cmp.Diff(want, lines(env.Audit())); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}

	controllertest.Update(env, key("a"), func(m configMap) { m.Data["copy"] = "two" })
	env.UntilQuiet(t.Context())
	if got := controllertest.Get[secret](env, key("a")); string(got.Data["text"]) != "two" {
		t.Errorf("the copy is %v, want two", got.Data)
	}

	controllertest.Delete[secret](env, key("a")) // the controller makes it again
	env.UntilQuiet(t.Context())
	controllertest.Get[secret](env, key("a"))
	env.Audit()

	controllertest.Delete[configMap](env, key("a"))
	env.UntilQuiet(t.Context())
	if _, err := controllertest.Find[secret](env, key("a")); env.InMemory() && !apierrors.IsNotFound(err) {
		t.Errorf("the Secret of a deleted owner = %v, want NotFound", err)
	}
}

// TestStep reconciles one key at a time.
func TestStep(t *testing.T) {
	env := controllertest.New(t, controllertest.Options{})
	env.RunPaused(copies())
	if name := env.Step(); strings.HasPrefix(name, "copies") && env.InMemory() {
		t.Errorf("Step = %q without objects", name)
	}
	env.UntilQuiet(t.Context())
	for _, name := range []string{"a", "b"} {
		controllertest.Create(env, newMap(name, map[string]string{"copy": name}))
	}
	if name := env.Step(); name != "copies" {
		t.Fatalf("Step = %q, want copies", name)
	}
	if n := len(controllertest.List[secret](env, "shop")); n != 1 {
		t.Errorf("%d Secrets after one step, want 1", n)
	}
	env.UntilQuiet(t.Context())
	if n := len(controllertest.List[secret](env, "shop")); n != 2 {
		t.Errorf("%d Secrets in the end, want 2", n)
	}
	if name := env.Step(); name != "" {
		t.Errorf("Step = %q when quiet, want none", name)
	}
}

// TestFail checks that a reconcile is repeated after a failed request, and that UntilQuiet waits
// for it.
func TestFail(t *testing.T) {
	env := controllertest.New(t, controllertest.Options{})
	env.Run(copies())
	controllertest.Fail[secret](env, controllertest.Fault{Verb: "patch", Times: 3})
	controllertest.Create(env, newMap("a", map[string]string{"copy": "one"}))
	env.UntilQuiet(t.Context())
	controllertest.Get[secret](env, key("a"))
	got := lines(env.Audit())
	if n := strings.Count(strings.Join(got, "\n"), "409 Conflict"); n != 3 {
		t.Errorf("%d conflicts in %q, want 3", n, got)
	}
}

// TestStaleCache holds events back: the controller does not see the change until they are released.
func TestStaleCache(t *testing.T) {
	env := controllertest.New(t, controllertest.Options{Objects: []controllertest.Object{
		newMap("a", map[string]string{"copy": "one"}),
	}})
	env.Run(copies())
	env.UntilQuiet(t.Context())
	release := controllertest.Hold[configMap](env)
	controllertest.Update(env, key("a"), func(m configMap) { m.Data["copy"] = "two" })
	if got := controllertest.Get[secret](env, key("a")); string(got.Data["text"]) != "one" {
		t.Errorf("the copy is %q in spite of held events", got.Data["text"])
	}
	release()
	controllertest.DropWatches[configMap](env, true)
	env.UntilQuiet(t.Context())
	if got := controllertest.Get[secret](env, key("a")); string(got.Data["text"]) != "two" {
		t.Errorf("the copy is %q, want two", got.Data["text"])
	}
}

// recordingTB records the failure of a test.
type recordingTB struct {
	*testing.T
	failure string
}

type stop struct{}

func (r *recordingTB) Fatalf(format string, args ...any) {
	r.failure = fmt.Sprintf(format, args...)
	panic(stop{})
}

func (r *recordingTB) Fatal(args ...any) {
	r.failure = fmt.Sprint(args...)
	panic(stop{})
}

// failure returns the message with which f fails a test.
func failure(t *testing.T, f func(controllertest.TB)) string {
	t.Helper()
	tb := &recordingTB{T: t}
	func() {
		defer func() {
			if r := recover(); r != nil && r != any(stop{}) {
				panic(r)
			}
		}()
		f(tb)
	}()
	return tb.failure
}

func TestMessages(t *testing.T) {
	cancelled := func() context.Context {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		return ctx
	}
	for name, test := range map[string]struct {
		f    func(controllertest.TB)
		want string
	}{
		"a reconcile that always fails": {func(tb controllertest.TB) {
			env := controllertest.New(tb, controllertest.Options{})
			env.RunPaused(copies())
			controllertest.Create(env, newMap("a", map[string]string{"copy": "broken"}))
			env.Step()
			env.UntilQuiet(cancelled())
		}, "controllers have unfinished keys: map[copies:1]"},
		"a held cache": {func(tb controllertest.TB) {
			env := controllertest.New(tb, controllertest.Options{})
			env.Run(copies())
			controllertest.Hold[configMap](env)
			controllertest.Create(env, newMap("a", nil))
			env.UntilQuiet(cancelled())
		}, "the caches of configmaps"},
		"a step of free controllers": {func(tb controllertest.TB) {
			env := controllertest.New(tb, controllertest.Options{})
			env.Run(copies())
			env.Step()
		}, "expected RunPaused"},
		"a missing object": {func(tb controllertest.TB) {
			controllertest.Get[secret](controllertest.New(tb, controllertest.Options{}), key("a"))
		}, `secrets "a" not found`},
		"no file of CRDs": {func(tb controllertest.TB) {
			controllertest.ReadCRDs(tb, filepath.Join(t.TempDir(), "missing.yaml"))
		}, "no such file"},
		"CRDs in a file with another kind": {func(tb controllertest.TB) {
			file := filepath.Join(t.TempDir(), "pod.yaml")
			if err := os.WriteFile(file, []byte("---\napiVersion: v1\nkind: Pod\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			controllertest.ReadCRDs(tb, file)
		}, `got the kind "Pod", expected CustomResourceDefinition`},
		"a declaration with a fault": {func(tb controllertest.TB) {
			controllertest.New(tb, controllertest.Options{}).Run(controller.New[configMap]("empty"))
		}, "there is no reconciler"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := failure(t, test.f); !strings.Contains(got, test.want) {
				t.Errorf("failure %q, want %q in it", got, test.want)
			}
		})
	}
}
