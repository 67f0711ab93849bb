package integration

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/internal/proc"
	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/kit"
	"github.com/hookloop/hookloop/test/serve"
)

// tenantHook serves the hook of the example tenant, with changed texts.
func tenantHook(k *kit.Kit, change ...string) string {
	k.Helper()
	dir := filepath.Join(cluster.Root(), "examples")
	code, err := os.ReadFile(filepath.Join(dir, "tenant", "hook.py"))
	if err != nil {
		k.Fatal(err)
	}
	file := filepath.Join(k.TempDir(), "hook.py")
	if err := os.WriteFile(file, []byte(strings.NewReplacer(change...).Replace(string(code))), 0o600); err != nil {
		k.Fatal(err)
	}
	p, address, err := serve.Hook(k.Context(), proc.Spec{
		Name: "tenant", Path: "python3", Args: []string{filepath.Join(dir, "serve.py"), file, "--port", "0"},
	})
	if p != nil {
		k.Own(p)
	}
	if err != nil {
		k.Fatal(err)
	}
	return address
}

// TestTenantReplay records the example tenant, and asks the same hook and a changed one again. The
// output about the changed one is a golden file, and that of docs/guides/record-and-replay.md.
func TestTenantReplay(t *testing.T) {
	k := start(t)
	dir := filepath.Join(cluster.Root(), "examples", "tenant")
	records := filepath.Join(t.TempDir(), "recordings")
	_, labels := ownEngine(k, "--record-dir", records)
	address := tenantHook(k)
	k.ApplyFile(filepath.Join(dir, "crd.yaml"))
	controller, err := os.ReadFile(filepath.Join(dir, "controller.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	k.Apply(strings.NewReplacer("http://127.0.0.1:8080", address, "  name: tenant\n", fmt.Sprintf(
		"  name: tenant\n  labels: {engine: %s, test: %s}\n", labels["engine"], labels["test"])).Replace(string(controller)))
	k.Cleanup(func() { k.Delete(kit.CompositeController, "tenant") })
	k.ApplyFile(filepath.Join(dir, "tenant.yaml"))
	var last string
	k.Eventually("a recording with all children", func() error {
		files, err := filepath.Glob(filepath.Join(records, "composite-tenant", "blue", "*-sync.json"))
		if err != nil || len(files) == 0 {
			return errors.Join(err, errors.New("there is none"))
		}
		last = slices.Max(files)
		data, err := os.ReadFile(last)
		if err == nil && strings.Count(string(data), `"uid"`) < 5 { // of the parent and of four observed children
			err = errors.New("its question has fewer children")
		}
		return err
	})
	replay(t, last, address+"/sync")
	changed := tenantHook(k, `"view")`, `"edit")`, `"Active" if ready`, `"Ready" if ready`)
	command := exec.CommandContext(t.Context(), serve.Program("hookloop"), "replay", last, "--hook", changed+"/sync")
	out, err := command.Output()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("the exit is %v, want 1:\n%s", err, out)
	}
	compareReplay(t, normalReplay(string(out)))
}

var (
	recordedTime = regexp.MustCompile(`\d{4}-?\d\d-?\d\dT\d\d:?\d\d:?\d\d(\.\d+)?Z`)
	recordedPath = regexp.MustCompile(`\S*recordings/`)
)

// normalReplay replaces times and the folder.
func normalReplay(out string) string {
	return recordedPath.ReplaceAllString(recordedTime.ReplaceAllString(out, "TIME"), "recordings/")
}

// compareReplay compares an output with the golden file, and that with the guide.
func compareReplay(t *testing.T, got string) {
	t.Helper()
	golden := filepath.Join("testdata", "tenant-replay.txt")
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
		t.Errorf("the output of hookloop replay (-want +got):\n%s", diff)
	}
	page, err := os.ReadFile(filepath.Join(cluster.Root(), "docs", "guides", "record-and-replay.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(normalReplay(string(page)), ".json --hook http://127.0.0.1:8080/sync\n"+string(want)+"```") {
		t.Errorf("docs/guides/record-and-replay.md has another output than %s", golden)
	}
}
