// Package hello tests the Python hook of this folder like the engine: as a process, by package
// webhook.
package hello

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/transports/webhook"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheHookMakesEverythingForAHelloWorld(t *testing.T) {
	answer, err := open(t, start(t)+"/sync").Ask(t.Context(), question(t))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(
		`{"greeting": "Hello, World!", "children": 1, "ready": "1/2"}`,
		string(answer.Status),
	); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	var children []string
	for _, raw := range answer.Children {
		child, err := object.Decode(raw)
		if err != nil {
			t.Fatal(err)
		}
		children = append(children, child.Ref().String())
	}
	want := []string{`ConfigMap.v1 "hello"`, `Deployment.apps/v1 "hello"`, `Service.v1 "hello"`, `Pod.v1 "hello"`}
	if diff := cmp.Diff(want, children); diff != "" {
		t.Errorf("children (-want +got):\n%s", diff)
	}
}

func TestHookReportsFaults(t *testing.T) {
	url := start(t)
	_, err := open(t, url+"/other").Ask(t.Context(), question(t))
	if hook.ErrorKindOf(err) != hook.Failed || !strings.Contains(err.Error(), "no hook at /other") {
		t.Errorf("a wrong path: got %v, want a failure that names it", err)
	}
	q := question(t)
	q.Children = q.Children[:1]
	_, err = open(t, url+"/sync").Ask(t.Context(), q)
	if hook.ErrorKindOf(err) != hook.Failed || !strings.Contains(err.Error(), "KeyError") {
		t.Errorf("a kind that the controller does not declare: got %v, want the hook's exception", err)
	}
}

// start runs the hook on a free port and returns its URL.
func start(t *testing.T) string {
	t.Helper()
	command := exec.Command("python3", "hook.py", "--port", "0")
	command.Stderr = os.Stderr
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := command.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		if err := command.Wait(); err != nil {
			t.Errorf("the hook did not end well: %v", err)
		}
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	url, found := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err != nil || !found {
		t.Fatalf("got %q, %v, want a line \"listening on URL\"", line, err)
	}
	return url
}

func open(t *testing.T, url string) hook.Hook {
	t.Helper()
	opened, err := webhook.Open(hook.Config{Op: hook.Sync, Version: "v2", Field: fmt.Appendf(nil, `{"url":%q}`, url)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
	return opened
}

// question has a Deployment with one ready Pod of two, and no other child.
func question(t *testing.T) *hook.Question {
	t.Helper()
	q := &hook.Question{
		Kind: hook.Composite,
		Op:   hook.Sync,
		Controller: decode(t,
			`{"apiVersion":"metacontroller.k8s.io/v1alpha1","kind":"CompositeController","metadata":{"name":"hello-webhook"}}`),
		Parent: decode(
			t,
			`{"apiVersion":"example.com/v1","kind":"HelloWorld","metadata":{"namespace":"shop","name":"hello"},`+
				`"spec":{"who":"World","replicas":2}}`,
		),
	}
	for _, kind := range []string{"ConfigMap.", "Deployment.apps", "Service.", "Pod."} {
		name, group, _ := strings.Cut(kind, ".")
		q.Children = append(
			q.Children,
			hook.Group{
				Resource: object.Resource{GVK: schema.GroupVersionKind{Group: group, Version: "v1", Kind: name}, Namespaced: true},
			},
		)
	}
	q.Children[1].Objects = []*object.Object{
		decode(t,
			`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"shop","name":"hello"},"spec":{"replicas":2},`+
				`"status":{"readyReplicas":1}}`),
	}
	return q
}

func decode(t *testing.T, text string) *object.Object {
	t.Helper()
	o, err := object.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return o
}
