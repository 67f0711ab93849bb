package tracing

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	reading "github.com/hookloop/hookloop/internal/jaeger"
	"github.com/hookloop/hookloop/test/serve"
)

// TestTraceCommand finds the trace of an object's latest change with the user's command.
func TestTraceCommand(t *testing.T) {
	k, _ := start(t)
	greetings(k, traced, helloGRPC(k))
	greet(k, "World")
	id := changeOf(k, k.Get("Greeting", "hello")).Trace.String()
	resource := strings.ToLower(k.Get("Greeting", "hello").GroupVersionKind().GroupKind().String())
	for _, args := range [][]string{
		{resource, "hello"},
		{resource + "/hello"},
		{resource, "hello", "--ui", "http://localhost:16686/"},
	} {
		all := append([]string{"trace", "-o", "id", "--kubeconfig", k.Cluster.Kubeconfig(), "-n", k.Namespace}, args...)
		out, err := exec.CommandContext(t.Context(), serve.Program("hookloop"), all...).CombinedOutput()
		if err != nil || !strings.HasSuffix(strings.TrimSpace(string(out)), id) {
			t.Errorf("hookloop %s = %q, %v; want %s", strings.Join(all, " "), out, err, id)
		}
	}
	out, err := exec.CommandContext(t.Context(), serve.Program("hookloop"), "trace", "--kubeconfig",
		k.Cluster.Kubeconfig(), "nothings", "hello").CombinedOutput()
	if err == nil || !strings.Contains(string(out), `"nothings"`) {
		t.Errorf("an unknown resource gives %q, %v; want an error that names it", out, err)
	}
}

// TestStartIsATrace finds the start of a controller from the Event about it: the trace has the
// engine's writes to the controller.
func TestStartIsATrace(t *testing.T) {
	k, j := start(t)
	greetings(k, traced, helloGRPC(k))
	var id string
	k.Eventually("an Event of the start that names its trace", func() error {
		for _, e := range k.ControllerEvents("Started") {
			id = e.GetAnnotations()["hookloop.dev/trace-id"]
		}
		if id == "" {
			return errors.New("there is none")
		}
		return nil
	})
	trace, err := j.Await(t.Context(), id, func(t *reading.Trace) bool { return len(t.Named("start")) > 0 })
	if err != nil {
		t.Fatal(err)
	}
	t.Log(reading.Tree(trace))
	for _, s := range trace.Children("") {
		if !strings.HasPrefix(s.Operation, "start composite/") {
			t.Errorf("a root is %q, want the start of a controller", s.Operation)
		}
	}
}
