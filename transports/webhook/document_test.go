package webhook

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine/hook"
)

// block matches a JSON block of the reference with the line before it.
var block = regexp.MustCompile("(?m)^(.*:)\n\n```json\n((?s:.*?\n))```$")

// TestDocument compares the requests of docs/reference/webhooks.md with the golden files, and
// decodes its responses in strict mode.
func TestDocument(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]hook.ControllerKind{"composite": hook.Composite, "decorator": hook.Decorator, "map": hook.Mapping}
	operations := map[string]hook.Op{
		"sync": hook.Sync, "finalize": hook.Finalize, "customize": hook.Customize, "map": hook.Map,
		"tombstone": hook.Tombstone,
	}
	request := regexp.MustCompile(`testdata/([a-z0-9-]+\.json)\)`)
	response := regexp.MustCompile(`^Response \((\w+), (\w+), (v[12])\):$`)
	requests := 0
	responses := 0
	for _, match := range block.FindAllStringSubmatch(string(page), -1) {
		line := match[1]
		body := match[2]
		if file := request.FindStringSubmatch(line); file != nil {
			requests++
			if want := golden(t, file[1]); strings.TrimSpace(want) != strings.TrimSpace(body) {
				t.Errorf("the request %s differs from its file", file[1])
			}
			continue
		}
		of := response.FindStringSubmatch(line)
		if of == nil {
			t.Errorf("a JSON block follows %q; expected a link to a golden file, or Response (kind, operation, version):", line)
			continue
		}
		responses++
		question := &hook.Question{Kind: kinds[of[1]], Op: operations[of[2]]}
		if _, err := read(question, of[3], []byte(body), true); err != nil {
			t.Errorf("%s %v", line, err)
		}
	}
	if blocks := strings.Count(string(page), "```json"); requests+responses != blocks || requests < 10 || responses < 7 {
		t.Errorf("%d requests and %d responses of %d blocks", requests, responses, blocks)
	}
}

// golden reads a golden file.
func golden(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
