package object

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"
)

// bombBytes is the size of a bomb; one of 16 MiB is that many times as bad.
const bombBytes = 1 << 18

const noLimit = 1 << 60

// heap is how much memory build leaves in use.
func heap(build func() any) int64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	built := build()
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(built)
	return int64(after.HeapAlloc) - int64(before.HeapAlloc)
}

// TestJSONBombs compares estimates with the allocations of JSON that is built like the webhook's
// answers, and like children.
func TestJSONBombs(t *testing.T) {
	type condition struct{ Type, Status, Reason, Message string }
	cases := map[string]struct {
		before, item, after string
		into                func() any
	}{
		"empty structs": {`{"conditions":[`, `{}`, `]}`, func() any {
			return &struct {
				Conditions []*condition `json:"conditions"`
			}{}
		}},
		"raw items": {`{"children":[`, `{}`, `]}`, func() any {
			return &struct {
				Children []json.RawMessage `json:"children"`
			}{}
		}},
		"empty objects":     {`{"data":[`, `{}`, `]}`, func() any { return &map[string]any{} }},
		"small objects":     {`{"data":[`, `{"a":1}`, `]}`, func() any { return &map[string]any{} }},
		"empty lists":       {`{"data":[`, `[]`, `]}`, func() any { return &map[string]any{} }},
		"nested lists":      {`{"data":[`, `[[[[[1]]]]]`, `]}`, func() any { return &map[string]any{} }},
		"numbers":           {`{"data":[`, `1`, `]}`, func() any { return &map[string]any{} }},
		"a list of strings": {`{"names":[`, `""`, `]}`, func() any { return &map[string][]string{} }},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			data := []byte(c.before + strings.Repeat(c.item+",", bombBytes/(len(c.item)+1)) + c.item + c.after)
			estimate := Memory(data, noLimit)
			into := c.into()
			real := heap(func() any {
				if err := json.Unmarshal(data, into); err != nil {
					t.Error(err)
				}
				return into
			})
			t.Logf("%d bytes: %d in the heap, %d estimated", len(data), real, estimate)
			if real > estimate {
				t.Errorf("%d bytes are in the heap, and %d were estimated", real, estimate)
			}
			if got := Memory(data, estimate/2); got <= estimate/2 {
				t.Errorf("beyond half of it, the count stops at %d", got)
			}
		})
	}
}

func TestJSONOfUsualObjectsIsLight(t *testing.T) {
	object := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"page-of-the-website",` +
		`"labels":{"app":"website"}},"data":{"text":"` + strings.Repeat(
		"x", 300) + `"}}`
	data := []byte(`{"children":[` + strings.Repeat(object+",", 1000) + object + `]}`)
	if estimate := Memory(data, noLimit); estimate > 6*int64(len(data)) {
		t.Errorf("%d bytes weigh %d", len(data), estimate)
	}
	if Memory([]byte(`{"a":"{{{,,,\"[[[{{{"}`), noLimit) > 400 {
		t.Error("brackets in strings count")
	}
}
