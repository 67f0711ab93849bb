package localplane

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWritesOfAGrowingLog reads a log again and again while it grows, also from earlier marks than
// before, and compares each result with that of a reader that has read nothing yet.
func TestWritesOfAGrowingLog(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // its content is checked
	line := func(name string) string {
		return fmt.Sprintf(`{"verb":"create","objectRef":{"resource":"configmaps","name":%q}}`, name) + "\n"
	}
	var text string
	var marks []Mark
	log := &auditLog{}
	for i, part := range []string{
		line("a"), line("b") + `{"verb":"post"}` + "\n", line("c")[:20], line("c")[20:], "", line("d") + line("e"),
	} {
		if _, err := file.WriteAt([]byte(part), int64(len(text))); err != nil {
			t.Fatal(err)
		}
		marks = append(marks, Mark(strings.LastIndexByte(text, '\n')+1))
		text += part
		for _, from := range []int{i, i / 2, 1, i} { // the first mark is asked for late
			if from > i {
				continue
			}
			got, err := log.since(file, marks[from])
			if err != nil {
				t.Fatal(err)
			}
			want, err := (&auditLog{}).since(file, marks[from])
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("writes since %d after part %d (-want +got):\n%s", marks[from], i, diff)
			}
		}
	}
	all, err := log.since(file, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, w := range all {
		names = append(names, w.Name)
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "d", "e"}, names); diff != "" {
		t.Errorf("all writes (-want +got):\n%s", diff)
	}
}
