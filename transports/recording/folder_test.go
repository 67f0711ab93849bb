package recording

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestFilesOfOthers leaves all files in the folder alone that are not recordings of its depth, and
// temporary files that another process may still be writing.
func TestFilesOfOthers(t *testing.T) {
	dir := t.TempDir()
	const recorded = "20261123T070000.000000000Z-sync.json"
	kept := []string{
		"notes/" + recorded, "composite-web/shop_a/old/" + recorded,
		"composite-web/shop_a/20261123T07000x.000000000Z-sync.json",
		"composite-web/shop_a/" + temporary + "young", "src/" + temporary + "rules",
	}
	gone := []string{"composite-web/shop_a/" + recorded, "composite-web/shop_a/" + temporary + "old"}
	for _, name := range append(kept, gone...) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	long := time.Now().Add(-2 * abandoned)
	if err := os.Chtimes(filepath.Join(dir, gone[1]), long, long); err != nil {
		t.Fatal(err)
	}
	if _, err := openFolder(Config{Dir: dir, PerParent: 1, MaxBytes: 1}); err != nil { // 1 B: no room for a recording
		t.Fatal(err)
	}
	for _, name := range kept {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Errorf("%v, expected the file to stay", err)
		}
	}
	for _, name := range gone {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s is still there", name)
		}
	}
}

// TestSegments gives each name a folder of its own.
func TestSegments(t *testing.T) {
	seen := map[string]string{}
	long := strings.Repeat("n", maxName)
	for _, name := range []string{"shop_a", "system:a", "system_a", "system/a", ".a", "a", long + "1", long + "2"} {
		s := segment(name)
		if before, found := seen[s]; found || strings.ContainsAny(s, "/:") || len(s) > 255 {
			t.Errorf("%q: got the folder %q (also of %q)", name, s, before)
		}
		seen[s] = name
	}
	if s := segment("shop_a"); s != "shop_a" {
		t.Errorf("got %q, expected a plain name unchanged", s)
	}
}
