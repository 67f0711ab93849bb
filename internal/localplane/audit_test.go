package localplane

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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
		marks = append(marks, Mark{place: int64(strings.LastIndexByte(text, '\n') + 1)})
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
				t.Errorf("writes since %d after part %d (-want +got):\n%s", marks[from].place, i, diff)
			}
		}
	}
	all, err := log.since(file, Mark{})
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

// TestLateLines takes a mark before the log has the lines of requests that were received before it.
// They do not count; a request of the same microsecond does.
func TestLateLines(t *testing.T) {
	c := &Cluster{dir: t.TempDir()}
	mark, err := c.Mark()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for name, after := range map[string]time.Duration{
		"long-before": -time.Second, "before": -time.Microsecond, "at-once": 0, "later": time.Microsecond,
	} {
		fmt.Fprintf(&text, `{"verb":"create","requestReceivedTimestamp":%q,`+
			`"objectRef":{"resource":"configmaps","name":%q}}`+"\n",
			mark.taken.Add(after).UTC().Format("2006-01-02T15:04:05.000000Z07:00"), name)
	}
	if err := os.WriteFile(c.path("audit.log"), []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	writes, err := c.Writes(mark)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, w := range writes {
		names = append(names, w.Name)
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"at-once", "later"}, names); diff != "" {
		t.Errorf("writes since the mark (-want +got):\n%s", diff)
	}
}
