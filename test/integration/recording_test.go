package integration

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/test/kit"
	"github.com/hookloop/hookloop/test/serve"
)

// TestRecordings records the syncs of a parent with a Secret, and asks the hook the recorded
// questions again.
func TestRecordings(t *testing.T) {
	k := start(t)
	k.CRD("Web", "Namespaced")
	dir := filepath.Join(t.TempDir(), "recordings")
	_, labels := ownEngine(k, "--record-dir", dir, "--record-per-parent", "2")
	k.Run(kit.Composite{Parent: "webs", Children: []string{"v1/secrets InPlace"}, Sync: mirror(t), Labels: labels})
	k.Apply(parent("web",
		"{apiVersion: v1, kind: Secret, metadata: {name: login}, stringData: {password: hunter2-hunter2}}"))
	await(k, "v1/Secret", "login", "type", "Opaque")
	awaitSync(k, "web")
	awaitSync(k, "web")
	k.Eventually("two recordings", func() error {
		if n := len(recorded(t, dir)); n != 2 {
			return errors.New("there are no two recordings")
		}
		return nil
	})
	for _, text := range recorded(t, dir) {
		if strings.Contains(text, "hunter2") || !strings.Contains(text, "masked-1") {
			t.Errorf("the value of the Secret is not masked:\n%s", text)
		}
	}
	replay := exec.CommandContext(t.Context(), serve.Program("hookloop"), "replay", dir, "--hook", mirror(t))
	out, err := replay.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "0 with another answer") {
		t.Errorf("replay: %v\n%s", err, out)
	}
}

// recorded returns the recordings in a folder.
func recorded(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".json") {
			return err
		}
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) { // a newer one has replaced it
			return nil
		}
		all = append(all, string(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
