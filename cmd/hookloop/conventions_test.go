package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/internal/memapi"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"
)

// tenant is the folder of the example with a CRD, a controller and a parent.
const tenant = "../../examples/tenant"

// conventions has what differs between the commands; the tests of this file hold the rest for all.
var conventions = map[string]struct {
	// forms are those of --output; none for a command that prints nothing but its log.
	forms string
	// files are arguments with a file that does not exist, and the exit code.
	files     string
	filesCode int
	// cluster are arguments that ask a cluster, and the exit code if it does not answer.
	cluster     string
	clusterCode int
}{
	"dev":           {forms: "text json", files: "-f none", filesCode: 1, cluster: "-f " + tenant, clusterCode: 1},
	"graph":         {forms: "text mermaid dot json", cluster: "tenant blue", clusterCode: 2},
	"init":          {forms: "text json"},
	"rbac":          {forms: "yaml json", files: "-f none", filesCode: 2, cluster: "--check -f " + tenant, clusterCode: 2},
	"render":        {forms: "text json yaml", files: "-f none", filesCode: 2},
	"replay":        {forms: "text json", files: "none --hook 127.0.0.1:1", filesCode: 2},
	"serve":         {},
	"top":           {forms: "text json", cluster: "--once", clusterCode: 2},
	"trace":         {forms: "text json id", cluster: "tenant blue", clusterCode: 2},
	"validate":      {forms: "text json", files: "-f none", filesCode: 2},
	"verify":        {forms: "text json", files: "-f none --hook 127.0.0.1:1", filesCode: 2},
	"verify-stream": {forms: "text json", files: "--hook 127.0.0.1:1 --ca-file none", filesCode: 2},
	"version":       {forms: "text json"},
}

// TestConventions checks each command: help with an example that parses, forms of output, one line
// for a wrong flag, a missing file and a cluster that does not answer, and the exit codes.
func TestConventions(t *testing.T) {
	var names []string
	for _, cmd := range newRoot().Commands() {
		names = append(names, cmd.Name())
		t.Run(cmd.Name(), func(t *testing.T) {
			t.Parallel()
			want, known := conventions[cmd.Name()]
			if !known {
				t.Fatal("is not in the table of this test")
			}
			example(t, cmd)
			refused(t, 2, "", cmd.Name(), "--frobnicate")
			if want.forms == "" && cmd.Flags().Lookup("output") != nil ||
				want.forms != "" && !strings.Contains(want.forms, "json") {
				t.Errorf("the forms of --output are %q, expected json", want.forms)
			}
			if want.forms != "" {
				refused(t, 2, "", cmd.Name(), "--output=xml")
				if got := completion(t, "", cmd.Name(), "-o", ""); got != want.forms {
					t.Errorf("-o completes to %q, want %q", got, want.forms)
				}
			}
			if want.files != "" {
				refused(t, want.filesCode, "", append([]string{cmd.Name()}, strings.Fields(want.files)...)...)
			}
			if want.cluster != "" {
				args := append([]string{cmd.Name()}, strings.Fields(want.cluster)...)
				if line := refused(t, want.clusterCode, kubeconfig(t, "http://127.0.0.1:1"), args...); !strings.Contains(line,
					"http://127.0.0.1:1 does not answer: dial tcp 127.0.0.1:1: connect: connection refused") &&
					cmd.Name() != "dev" {
					t.Errorf("got %s, want the address that does not answer", line)
				}
				if line := refused(t, want.clusterCode, "", append(args, "--kubeconfig=/none")...); !strings.Contains(line,
					"stat /none: no such file") {
					t.Errorf("got %s, want the missing kubeconfig", line)
				}
				if line := refused(t, want.clusterCode, "", args...); !strings.Contains(line, "expected a kubeconfig") {
					t.Errorf("got %s, want the expectation of a kubeconfig", line)
				}
				line := refused(t, want.clusterCode, "/nope", args...)
				if named := strings.Contains(line, `"/nope"`) || cmd.Name() == "dev"; !named || strings.Contains(line, "MASTER") {
					t.Errorf("got %s, want the kubeconfig that is missing, and no other variable", line)
				}
			}
		})
	}
	if len(names) != len(conventions) {
		t.Errorf("the table has %d commands, and the program %s", len(conventions), names)
	}
}

// example checks that the help has an example of this command, with flags that exist.
func example(t *testing.T, cmd *cobra.Command) {
	t.Helper()
	if cmd.Short == "" || cmd.Example == "" {
		t.Error("the help has no summary or no example")
	}
	found := false
	for line := range strings.Lines(cmd.Example) {
		words := strings.Fields(strings.NewReplacer("'", "", " | kubectl apply -f -", "").Replace(line))
		at := slices.Index(words, "hookloop")
		if at < 0 || at+1 == len(words) || words[at+1] != cmd.Name() {
			continue
		}
		found = true
		fresh, _, err := newRoot().Find(words[at+1:])
		if err != nil {
			t.Fatal(err)
		}
		if err := fresh.ParseFlags(words[at+2:]); err != nil {
			t.Errorf("the example %q: %v", strings.TrimSpace(line), err)
		}
	}
	if !found {
		t.Errorf("the example does not run hookloop %s:\n%s", cmd.Name(), cmd.Example)
	}
}

// refused runs a command that fails. It returns the one line of its message.
func refused(t *testing.T, code int, kubeconfig string, args ...string) string {
	t.Helper()
	got, stdout, stderr := executeWith(t, []string{"KUBECONFIG=" + kubeconfig}, args...)
	if got != code || stdout != "" || !strings.HasPrefix(stderr, "hookloop: ") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("hookloop %s: exit code %d, stdout %q, stderr %q; want %d, nothing, and one line", strings.Join(args, " "),
			got, stdout, stderr, code)
	}
	return stderr
}

// completion returns what the shell offers for the last argument, without descriptions.
func completion(t *testing.T, kubeconfig string, args ...string) string {
	t.Helper()
	_, stdout, _ := executeWith(t, []string{"KUBECONFIG=" + kubeconfig}, append([]string{"__completeNoDesc"}, args...)...)
	lines := strings.Fields(stdout)
	if len(lines) == 0 || !strings.HasPrefix(lines[len(lines)-1], ":") {
		t.Fatalf("hookloop %s completes to %q", strings.Join(args, " "), stdout)
	}
	return strings.Join(lines[:len(lines)-1], " ")
}

// kubeconfig writes a kubeconfig with the context "there" for a server.
func kubeconfig(t *testing.T, server string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "there",
		"contexts": [{"name": "there", "context": {"cluster": "c"}}],
		"clusters": [{"name": "c", "cluster": {"server": %q}}]}`, server)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// serveCluster serves an API with the CRDs of Hookloop and of Tenants, and with a Tenant and its
// controller. It returns the kubeconfig.
func serveCluster(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("../../manifests/crds/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v: %v", files, err)
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, file := range append(files, tenant+"/crd.yaml") {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		decode(t, file, crd)
		crds = append(crds, crd)
	}
	api, err := memapi.New(memapi.Options{CRDs: crds})
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"controller.yaml", "tenant.yaml"} {
		object := map[string]any{}
		decode(t, filepath.Join(tenant, file), &object)
		if err := api.Put(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	t.Cleanup(api.Close)
	return kubeconfig(t, server.URL)
}

func decode(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err == nil {
		err = yaml.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// TestCompletion offers the names that a cluster and files have.
func TestCompletion(t *testing.T) {
	t.Parallel()
	there := serveCluster(t)
	nowhere := kubeconfig(t, "http://127.0.0.1:1")
	for _, test := range []struct{ line, want string }{
		{"trace tena", "tenants.examples.hookloop.dev"},
		{"graph configm", "configmaps"},
		{"trace tenants.examples.hookloop.dev ", "blue"},
		{"trace tenant ", "blue"},
		{"trace tenant/", "tenant/blue"},
		{"trace tenant blue ", ""},
		{"trace tenant/blue ", ""},
		{"trace nonsense ", ""},
		{"graph pods web -n kube-s", "kube-system"},
		{"top --engine-namespace def", "default"},
		{"top --context ", "there"},
		{"top ", ""},
		{"dev --intercept ", "composite/tenant"},
		{"dev -f " + tenant + " --controller ", "composite/tenant"},
		{"init --kind ", "composite decorator map"},
	} {
		words := strings.Split(test.line, " ")
		if got := completion(t, there, words...); got != test.want {
			t.Errorf("hookloop %s: completes to %q, want %q", test.line, got, test.want)
		}
		if strings.HasPrefix(test.line, "trace") || strings.HasPrefix(test.line, "graph") {
			if got := completion(t, nowhere, words...); got != "" {
				t.Errorf("hookloop %s without a cluster: completes to %q, want nothing", test.line, got)
			}
		}
	}
}

// TestColour prints colours on a terminal alone, and none with NO_COLOR.
func TestColour(t *testing.T) {
	t.Parallel()
	there := serveCluster(t)
	args := []string{"trace", "tenant", "blue", "--metrics-url", "http://127.0.0.1:1"}
	_, out, errs := executeWith(t, []string{"KUBECONFIG=" + there, "TERM=xterm"}, args...)
	if strings.Contains(out, "\x1b") || !strings.Contains(out, "Tenant blue") {
		t.Errorf("to a pipe it prints %q, %q", out, errs)
	}
	for env, want := range map[string]bool{"TERM=xterm": true, "TERM=dumb": false, "NO_COLOR=1": false} {
		out := onTerminal(t, []string{"KUBECONFIG=" + there, "TERM=xterm", env}, args...)
		if got := strings.Contains(out, "\x1b["); got != want || !strings.Contains(out, "Tenant blue") {
			t.Errorf("on a terminal with %s it prints %q, want colours: %t", env, out, want)
		}
	}
}

// TestLiveTop draws the table again on a terminal, shows that the engine does not answer, asks
// again, and ends with Ctrl-C.
func TestLiveTop(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if down.Load() {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = io.WriteString(w, "# TYPE hookloop_build_info gauge\nhookloop_build_info{version=\"v1\"} 1\n")
	}))
	t.Cleanup(engine.Close)
	screen, end := terminalWith(t, []string{"TERM=xterm"}, "top", "--interval", "1s", "--metrics-url", engine.URL)
	const home = "\x1b[H"
	awaitText(t, screen, home, "1 engine, version v1", home)
	down.Store(true)
	awaitText(t, screen, "answers 503 Service Unavailable", "; trying again")
	down.Store(false)
	awaitText(t, screen, "trying again", home+"1 engine, version v1")
	if err := end(os.Interrupt); err != nil {
		t.Errorf("Ctrl-C ends it with %v, want exit code 0", err)
	}
}

// awaitText waits until a screen has texts in their order.
func awaitText(t *testing.T, screen func() string, texts ...string) {
	t.Helper()
	missing := ""
	shown := func(context.Context) (bool, error) {
		rest := screen()
		for _, text := range texts {
			_, after, found := strings.Cut(rest, text)
			if !found {
				missing = text
				return false, nil
			}
			rest = after
		}
		return true, nil
	}
	if err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 2*time.Minute, true, shown); err != nil {
		t.Fatalf("there is no %q on the screen: %q", missing, screen())
	}
}

// onTerminal runs the binary with a terminal as its stdout.
func onTerminal(t *testing.T, env []string, args ...string) string {
	t.Helper()
	screen, end := terminalWith(t, env, args...)
	if err := end(nil); err != nil {
		t.Errorf("hookloop %s: %v", strings.Join(args, " "), err)
	}
	return screen()
}

// terminalWith starts the binary with a terminal as its output. It returns the output so far, and
// a function that sends a signal, if it is not nil, and waits for the end.
func terminalWith(t *testing.T, env []string, args ...string) (screen func() string, end func(os.Signal) error) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, args...)
	cmd.Env = append([]string{"HOME=" + t.TempDir()}, env...)
	cmd.Stdout = terminal
	cmd.Stderr = terminal
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = terminal.Close()
	var mu sync.Mutex // guards out
	var out strings.Builder
	read := make(chan struct{})
	go func() {
		defer close(read)
		buffer := make([]byte, 4096)
		for {
			n, err := master.Read(buffer)
			mu.Lock()
			out.Write(buffer[:n])
			mu.Unlock()
			if err != nil { // the other side has ended
				return
			}
		}
	}()
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = master.Close() }) // it may have ended
	screen = func() string {
		mu.Lock()
		defer mu.Unlock()
		return out.String()
	}
	return screen, func(signal os.Signal) error {
		if signal != nil {
			if err := cmd.Process.Signal(signal); err != nil {
				return err
			}
		}
		err := cmd.Wait()
		<-read
		return err
	}
}

// TestVersionAsJSON has the fields of the text.
func TestVersionAsJSON(t *testing.T) {
	t.Parallel()
	_, stdout, _ := execute(t, "version", "-o", "json")
	got := map[string]string{}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"v1.2.3", "abc"}, []string{got["version"], got["commit"]}); diff != "" ||
		!strings.HasPrefix(got["goVersion"], "go") || !strings.Contains(got["platform"], "/") {
		t.Errorf("got %v (-want +got):\n%s", got, diff)
	}
}
