package webhook

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/hook"
)

func TestAnswers(t *testing.T) {
	none := []json.RawMessage(nil)
	cases := []struct {
		name, body string
		strict     bool
		want       *hook.Answer
	}{
		{"nothing desired", `{}`, true, &hook.Answer{Children: none}},
		{
			"a null child is kept for its error",
			`{"children":[null,{"a":1}]}`,
			true,
			&hook.Answer{Children: []json.RawMessage{[]byte("null"), []byte(`{"a":1}`)}},
		},
		{
			"integers keep their digits",
			`{"status":{"n":9007199254740993}}`,
			true,
			&hook.Answer{Status: []byte(`{"n":9007199254740993}`)},
		},
		{"a null status is none", `{"status":null,"children":null}`, true, &hook.Answer{}},
		{"fractions of seconds", `{"resyncAfterSeconds":0.25}`, true, &hook.Answer{ResyncAfter: 250 * time.Millisecond}},
		{"loose: unknown fields are ignored", `{"chidlren":[],"finalized":true}`, false, &hook.Answer{Finalized: true}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := read(&hook.Question{Kind: hook.Composite, Op: hook.Sync}, "v1", []byte(c.body), c.strict)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBadAnswers(t *testing.T) {
	sync := &hook.Question{
		Kind: hook.Composite,
		Op:   hook.Sync,
	}
	custom := &hook.Question{
		Kind: hook.Composite,
		Op:   hook.Customize,
	}
	cases := []struct {
		name   string
		q      *hook.Question
		body   string
		strict bool
		want   string
	}{
		{"nothing", sync, " \n", false, "the answer is empty"},
		{"no object", sync, "[]", false, `begins with "[]", expected a JSON object`},
		{"a page", sync, "<html>", false, `begins with "<html>"`},
		{"half", sync, `{"children":[`, false, "unexpected end of JSON input"},
		{"two", sync, `{}{}`, false, "after top-level value"},
		{"strict: two", sync, `{}{}`, true, "after top-level value"},
		{"strict: unknown field", sync, `{"chidlren":[]}`, true, `unknown field "chidlren"`},
		{"strict: a decorator's field", sync, `{"attachments":[]}`, true, `unknown field "attachments"`},
		{"strict: said twice", sync, `{"children":[],"children":[]}`, true, `duplicate field "children"`},
		{"children are no list", sync, `{"children":{}}`, false, "children"},
		{"negative resync", sync, `{"resyncAfterSeconds":-1}`, false, "resyncAfterSeconds is -1"},
		{"resync beyond all numbers", sync, `{"resyncAfterSeconds":1e999}`, false, "1e999"},
		{"resync beyond all durations", sync, `{"resyncAfterSeconds":1e300}`, false, "resyncAfterSeconds is 1e+300"},
		{
			"too deep",
			sync,
			`{"status":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`,
			false,
			"nested deeper than 100",
		},
		{"null rule", custom, `{"relatedResources":[{},null]}`, false, "relatedResources[1]: got null"},
		{"a long name is cut", sync, `{"` + strings.Repeat("x", 100000) + `":1}`, true, "unknown field"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := read(c.q, "v1", []byte(c.body), c.strict)
			if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 400 {
				t.Errorf("got %v, %v; want an error of at most 400 bytes with %q", got, err, c.want)
			}
		})
	}
}

// TestMapAnswers reads the answers of map hooks: those with outputs, and no field of another kind.
func TestMapAnswers(t *testing.T) {
	const aggregated = "the status of a MapController's parent is computed from its inputs and outputs"
	pod := []json.RawMessage{[]byte(`{"kind":"Pod"}`)}
	for _, c := range []struct {
		name   string
		op     hook.Op
		body   string
		strict bool
		want   *hook.Answer
		fault  string
	}{
		{"outputs", hook.Map, `{"outputs":[{"kind":"Pod"}],"resyncAfterSeconds":2}`, true,
			&hook.Answer{Children: pod, ResyncAfter: 2 * time.Second}, ""},
		{"no output", hook.Map, `{"outputs":[]}`, true, &hook.Answer{Children: []json.RawMessage{}}, ""},
		{"null outputs", hook.Tombstone, `{"outputs":null}`, true, &hook.Answer{}, ""},
		{"null fields of other kinds", hook.Map, `{"outputs":null,"status":null,"children":null}`, true, &hook.Answer{}, ""},
		{"finalized", hook.Finalize, `{"finalized":true}`, true, &hook.Answer{Finalized: true}, ""},
		{"nothing", hook.Map, `{}`, false, nil, "outputs: is missing, expected a list"},
		{"nothing to keep", hook.Tombstone, `{}`, false, nil, "outputs: is missing, expected a list"},
		{"outputs are no list", hook.Map, `{"outputs":{}}`, false, nil, "outputs: got an object, expected an array"},
		{"a misspelled field", hook.Map, `{"output":[]}`, true, nil, `unknown field "output"`},
		{"a misspelled field, loose", hook.Map, `{"output":[]}`, false, nil, "outputs: is missing"},
		{"a status", hook.Map, `{"outputs":[],"status":{}}`, false, nil,
			"status: is no field of a map hook's answer; " + aggregated},
		{"conditions", hook.Tombstone, `{"outputs":[],"conditions":[]}`, true, nil,
			"conditions: is no field of a map hook's answer; " + aggregated},
		{"children", hook.Finalize, `{"children":[]}`, true, nil,
			"children: is no field of a map hook's answer; expected the objects in outputs"},
	} {
		for _, version := range []string{"v1", "v2"} {
			got, err := read(&hook.Question{Kind: hook.Mapping, Op: c.op}, version, []byte(c.body), c.strict)
			if c.fault != "" {
				if err == nil || !strings.Contains(err.Error(), c.fault) {
					t.Errorf("%s, %s: got %v, %v; want an error with %q", c.name, version, got, err, c.fault)
				}
				continue
			}
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
				t.Errorf("%s, %s: %v (-want +got):\n%s", c.name, version, err, diff)
			}
		}
	}
}

// An answer that decodes without an error can be decoded again from its parts.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"children":[null,{"a":1}],"resyncAfterSeconds":1.5}`,
		`{"status":{"n":9007199254740993},"finalized":true}`, `[]`, `{"labels":{"a":null}}`,
	} {
		f.Add([]byte(seed), true)
	}
	f.Fuzz(func(t *testing.T, body []byte, strict bool) {
		for _, q := range []*hook.Question{
			{Kind: hook.Composite, Op: hook.Sync}, {Kind: hook.Decorator, Op: hook.Sync},
			{Kind: hook.Mapping, Op: hook.Map}, {Op: hook.Customize},
		} {
			a, err := read(q, "v2", body, strict)
			if (a == nil) == (err == nil) {
				t.Fatalf("got %v and %v, want exactly one", a, err)
			}
			if err != nil {
				continue
			}
			for _, child := range a.Children {
				if !json.Valid(child) {
					t.Errorf("child %q is no JSON", child)
				}
			}
			if a.ResyncAfter < 0 {
				t.Errorf("resync after %s", a.ResyncAfter)
			}
		}
	})
}
