package verify

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/test/serve"
)

// TestACommandStartsTheHook asks hooks that verify starts itself: a webhook, with the path of its
// controller, and one over gRPC.
func TestACommandStartsTheHook(t *testing.T) {
	webhook := func(file string) string { return examplePath("hello-webhook", file) }
	grpc := func(file string) string { return examplePath("hello-grpc", file) }
	for _, c := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"webhook", []string{"-f", webhook("controller.yaml"), "-f", webhook("crd.yaml"), "--parent", webhook("hello.yaml"),
			"--", "python3", webhook("hook.py")}, 0, "questions over webhook: 0 faults"},
		{"gRPC", []string{"-f", grpc("controller.yaml"), "-f", grpc("crd.yaml"), "--parent", grpc("hello.yaml"),
			"--", serve.Program("hello-grpc")}, 0, "questions over stream: 0 faults"},
		{"no controller", []string{"--", "true"}, 2, "-f: got no file, expected that of the controller"},
		{"no command", []string{"-f", webhook("controller.yaml"), "--"}, 2, "--: is the last argument"},
		{"an address, too", []string{"-f", webhook("controller.yaml"), "--hook", "127.0.0.1:1", "--", "true"}, 2,
			"--hook: got an address and a command"},
		{"a hook that ends", []string{"-f", webhook("controller.yaml"), "--", "sh", "-c", "echo no module; exit 3"}, 2,
			"; its output ends: no module"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out, err := exec.CommandContext(t.Context(), serve.Program("hookloop"), append([]string{"verify"}, c.args...)...).
				CombinedOutput()
			code := 0
			if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
				code = exit.ExitCode()
			} else if err != nil {
				t.Fatal(err)
			}
			if code != c.code || !strings.Contains(string(out), c.want) {
				t.Errorf("got the code %d and\n%s\nwant %d and %q", code, out, c.code, c.want)
			}
		})
	}
}
