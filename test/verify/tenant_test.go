package verify

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/internal/proc"
	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/serve"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata; look at the difference")

// tenants are the example tenant, and changes of it that plant a fault.
var tenants = []struct {
	name, golden string
	exit         int
	change       []string
}{
	{"good", "tenant-good.txt", 0, nil},
	{"a finalization that never ends", "tenant-finalize.txt", 1, []string{
		`"finalized": not exists`, `"finalized": False`,
	}},
	{"the time in the status", "tenant-time.txt", 1, []string{
		"def sync(", "import datetime\n\n\ndef sync(",
		`{"phase": phase,`, `{"phase": phase, "at": str(datetime.datetime.now()),`,
	}},
}

// TestTenant compares the report about the example tenant, and about changes of it, with golden
// files. docs/reference/verify.md shows them.
func TestTenant(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(cluster.Root(), "docs", "reference", "verify.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range tenants {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			address := changed(t, examplePath("tenant", "hook.py"), test.change...)
			got, exit := run(t, "verify", "--hook", address, "-f", examplePath("tenant", "controller.yaml"),
				"-f", examplePath("tenant", "crd.yaml"), "--parent", examplePath("tenant", "tenant.yaml"))
			const command = "$ hookloop verify --hook http://127.0.0.1:8080 -f controller.yaml -f crd.yaml " +
				"--parent tenant.yaml\n"
			got = normal(strings.ReplaceAll(got, address, "http://127.0.0.1:8080"))
			if exit != test.exit {
				t.Errorf("the exit code is %d, want %d", exit, test.exit)
			}
			golden := filepath.Join("testdata", test.golden)
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("the report (-want +got):\n%s", diff)
			}
			if !strings.Contains(normal(string(page)), command+string(want)+"```") {
				t.Errorf("docs/reference/verify.md has another output than %s", golden)
			}
		})
	}
}

// TestUnreachableSample compares the output about an address without a hook with
// docs/reference/verify.md.
func TestUnreachableSample(t *testing.T) {
	t.Parallel()
	ports, err := cluster.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := run(t, "verify", "--hook", fmt.Sprintf("127.0.0.1:%d", ports[0]))
	got = strings.ReplaceAll(got, fmt.Sprint(ports[0]), "9444")
	page, err := os.ReadFile(filepath.Join(cluster.Root(), "docs", "reference", "verify.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```console\n$ hookloop verify --hook 127.0.0.1:9444\n"+got+"```") {
		t.Errorf("docs/reference/verify.md has another output than\n%s", got)
	}
}

// changed serves a copy of a Python file with changed texts as webhooks, and returns its address.
func changed(t *testing.T, file string, change ...string) string {
	t.Helper()
	code, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "hook.py")
	if err := os.WriteFile(copied, []byte(strings.NewReplacer(change...).Replace(string(code))), 0o600); err != nil {
		t.Fatal(err)
	}
	return start(t, example{name: filepath.Base(file), hook: proc.Spec{
		Path: "python3", Args: []string{examplePath("serve.py"), copied, "--port", "0"},
		Env: []string{"PYTHONDONTWRITEBYTECODE=1"},
	}})
}

// run runs hookloop, and returns its output and exit code.
func run(t *testing.T, args ...string) (string, int) {
	t.Helper()
	command := exec.CommandContext(t.Context(), serve.Program("hookloop"), args...)
	out, err := command.Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), command.ProcessState.ExitCode()
}

// volatile are the parts of a report that differ with each run: the number of repeats, times, and
// the requests, which are long.
var volatile = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`\d+ (more )?questions?( over|\n)`), "N ${1}questions$2"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+`), "TIME"},
	{regexp.MustCompile(`shrunk from \d+ to \d+ bytes`), "shrunk from N to N bytes"},
	{regexp.MustCompile(`(    request   \{.{60}).*`), "$1…"},
}

func normal(report string) string {
	for _, v := range volatile {
		report = v.pattern.ReplaceAllString(report, v.with)
	}
	return report
}
