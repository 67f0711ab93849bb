package merge_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/internal/plan/merge"
	"github.com/hookloop/hookloop/engine/object"
)

// decode reads JSON like the engine; an empty text is nil.
func decode(t testing.TB, text string) map[string]any {
	t.Helper()
	if text == "" {
		return nil
	}
	m, err := object.DecodeMap([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return m
}

func file(t testing.TB, name string) map[string]any {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, string(data))
}

// story is one three-way merge.
type story struct{ name, observed, last, desired, want string }

var fields = []story{
	{
		"a field that is desired is set", `{"spec":{"a":1}}`, ``, `{"spec":{"b":2}}`, `{"spec":{"a":1,"b":2}}`,
	},
	{
		"a field that was applied and is no longer desired is removed",
		`{"a":1,"b":2}`,
		`{"a":1,"b":2}`,
		`{"a":1}`,
		`{"a":1}`,
	},
	{
		"a field that somebody else set stays", `{"a":1,"b":2}`, `{"a":1}`, `{"a":1}`, `{"a":1,"b":2}`,
	},
	{
		"a field that is gone already is not missed", `{"a":1}`, `{"a":1,"b":2}`, `{"a":1}`, `{"a":1}`,
	},
	{
		"without a last applied state nothing is removed", `{"a":1,"b":2}`, ``, `{"a":3}`, `{"a":3,"b":2}`,
	},
	{
		"a scalar replaces an object", `{"a":{"b":1}}`, `{"a":{"b":1}}`, `{"a":"x"}`, `{"a":"x"}`,
	},
	{
		"a scalar replaces a list", `{"a":[1]}`, ``, `{"a":2}`, `{"a":2}`,
	},
	{
		"an object replaces a scalar", `{"a":"x"}`, `{"a":"x"}`, `{"a":{"b":1}}`, `{"a":{"b":1}}`,
	},
	{
		"a list replaces an object", `{"a":{"b":1}}`, ``, `{"a":[1]}`, `{"a":[1]}`,
	},
	{
		"an object replaces a list",
		`{"a":[{"name":"x"}]}`,
		`{"a":[{"name":"x"}]}`,
		`{"a":{"name":"x"}}`,
		`{"a":{"name":"x"}}`,
	},
	{
		"a null that was never applied is no difference", `{"a":1}`, ``, `{"a":null}`, `{"a":1}`,
	},
	{
		"a null removes what was applied", `{"a":1}`, `{"a":1}`, `{"a":null}`, `{}`,
	},
	{
		"a value that the server puts in the place of an applied null stays",
		`{"a":"default"}`,
		`{"a":null}`,
		`{"a":null}`,
		`{"a":"default"}`,
	},
	{
		"a null inside of a new object is left out", `{}`, ``, `{"a":{"b":null,"c":1}}`, `{"a":{"c":1}}`,
	},
	{
		"an observed null stays until something else is desired", `{"a":null,"b":null}`, ``, `{"b":1}`, `{"a":null,"b":1}`,
	},
	{
		"2^53+1 is not 2^53", `{"a":9007199254740992}`, ``, `{"a":9007199254740993}`, `{"a":9007199254740993}`,
	},
}

var lists = []story{
	{
		"scalars are replaced", `{"l":[1,2,3]}`, ``, `{"l":[3]}`, `{"l":[3]}`,
	},
	{
		"items merge by name, in the observed order, new ones last",
		`{"l":[{"name":"b","x":1},{"name":"a","x":1}]}`, ``, `{"l":[{"name":"c"},{"name":"a","x":2}]}`,
		`{"l":[{"name":"b","x":1},{"name":"a","x":2},{"name":"c"}]}`,
	},
	{
		"an item that was applied and is no longer desired is removed, somebody else's stays",
		`{"l":[{"name":"ours"},{"name":"theirs"},{"name":"kept","x":1}]}`,
		`{"l":[{"name":"ours"},{"name":"kept"}]}`,
		`{"l":[{"name":"kept"}]}`,
		`{"l":[{"name":"theirs"},{"name":"kept","x":1}]}`,
	},
	{
		"an empty list removes what was applied",
		`{"l":[{"name":"a"},{"name":"b"}]}`,
		`{"l":[{"name":"a"}]}`,
		`{"l":[]}`,
		`{"l":[{"name":"b"}]}`,
	},
	{
		"one item without the key: the list is replaced",
		`{"l":[{"name":"a","x":1},{"x":2}]}`,
		``,
		`{"l":[{"name":"a"}]}`,
		`{"l":[{"name":"a"}]}`,
	},
	{
		"an applied item without the key: the list is replaced",
		`{"l":[{"name":"a","x":1}]}`, `{"l":[{"x":1}]}`, `{"l":[{"name":"a"}]}`, `{"l":[{"name":"a"}]}`,
	},
	{
		"one item that is no object: the list is replaced",
		`{"l":[{"name":"a","x":1}]}`,
		``,
		`{"l":[{"name":"a"},"b"]}`,
		`{"l":[{"name":"a"},"b"]}`,
	},
	{
		"a key that is an object or null names nothing",
		`{"l":[{"name":{"a":1},"x":1}]}`, ``, `{"l":[{"name":{"a":1}}]}`, `{"l":[{"name":{"a":1}}]}`,
	},
	{
		"port goes before name: a renamed port stays the same port",
		`{"l":[{"port":80,"name":"web","nodePort":30080}]}`,
		``,
		`{"l":[{"port":80,"name":"http"}]}`,
		`{"l":[{"port":80,"name":"http","nodePort":30080}]}`,
	},
	{
		"containerPort goes before all", `{"l":[{"containerPort":80,"name":"x","protocol":"TCP"}]}`, ``,
		`{"l":[{"containerPort":80,"name":"y"}]}`, `{"l":[{"containerPort":80,"name":"y","protocol":"TCP"}]}`,
	},
	{
		"mountPath goes before name: one volume at two places",
		`{"l":[{"name":"v","mountPath":"/a","readOnly":true},{"name":"v","mountPath":"/b"}]}`, ``,
		`{"l":[{"name":"v","mountPath":"/b"},{"name":"v","mountPath":"/a"}]}`,
		`{"l":[{"name":"v","mountPath":"/a","readOnly":true},{"name":"v","mountPath":"/b"}]}`,
	},
	{
		"a port that is desired twice merges by name",
		`{"l":[{"port":53,"name":"tcp","protocol":"TCP","nodePort":1},{"port":53,"name":"udp","protocol":"UDP",` +
			`"nodePort":2}]}`,
		``,
		`{"l":[{"port":53,"name":"udp","protocol":"UDP"},{"port":53,"name":"tcp","protocol":"TCP"}]}`,
		`{"l":[{"port":53,"name":"tcp","protocol":"TCP","nodePort":1},{"port":53,"name":"udp","protocol":"UDP",` +
			`"nodePort":2}]}`,
	},
	{
		"80 and 80.0 are one port",
		`{"l":[{"port":80,"protocol":"TCP"}]}`,
		``,
		`{"l":[{"port":80.0}]}`,
		`{"l":[{"port":80,"protocol":"TCP"}]}`,
	},
	{
		"uid, ip and path are keys, too",
		`{"a":[{"uid":"1","x":1}],"b":[{"ip":"::1","x":1}],"c":[{"path":"/","x":1}]}`,
		``,
		`{"a":[{"uid":"1"}],"b":[{"ip":"::1"}],"c":[{"path":"/"}]}`,
		`{"a":[{"uid":"1","x":1}],"b":[{"ip":"::1","x":1}],"c":[{"path":"/","x":1}]}`,
	},
	{
		"lists inside of items merge as well",
		`{"c":[{"name":"a","env":[{"name":"X","value":"1"},{"name":"INJECTED","value":"1"}]}]}`,
		`{"c":[{"name":"a","env":[{"name":"X","value":"1"}]}]}`, `{"c":[{"name":"a","env":[{"name":"Y","value":"2"}]}]}`,
		`{"c":[{"name":"a","env":[{"name":"INJECTED","value":"1"},{"name":"Y","value":"2"}]}]}`,
	},
}

var server = []story{
	{
		"system metadata stays as the server has it",
		`{"metadata":{"name":"a","uid":"1","resourceVersion":"7","generation":3,"creationTimestamp":"2026-01-01T00:00:00Z"}}`,
		``,
		`{"metadata":{"name":"a","uid":"2","resourceVersion":"9","generation":9,"creationTimestamp":null,` +
			`"deletionTimestamp":"x","selfLink":"/","managedFields":[]}}`,
		`{"metadata":{"name":"a","uid":"1","resourceVersion":"7","generation":3,"creationTimestamp":"2026-01-01T00:00:00Z"}}`,
	},
	{
		"system metadata that was applied once is not removed",
		`{"metadata":{"name":"a","uid":"1"}}`,
		`{"metadata":{"name":"a","uid":"1"}}`,
		`{"metadata":{"name":"a"}}`,
		`{"metadata":{"name":"a","uid":"1"}}`,
	},
	{
		"metadata cannot be taken away",
		`{"metadata":{"name":"a","uid":"1"}}`,
		`{"metadata":{"name":"a"}}`,
		`{"metadata":null}`,
		`{"metadata":{"name":"a","uid":"1"}}`,
	},
	{
		"status stays",
		`{"status":{"ready":true}}`,
		`{"status":{"ready":false}}`,
		`{"status":{"ready":false,"x":1}}`,
		`{"status":{"ready":true}}`,
	},
	{
		"a status is not put in", `{}`, ``, `{"status":{"x":1}}`, `{}`,
	},
}

func TestApply(t *testing.T) {
	for group, stories := range map[string][]story{"fields": fields, "lists": lists, "server": server} {
		for _, s := range stories {
			t.Run(group+"/"+s.name, func(t *testing.T) { tell(t, s) })
		}
	}
}

func tell(t *testing.T, s story) {
	observed := decode(t, s.observed)
	last := decode(t, s.last)
	desired := decode(t, s.desired)
	want := decode(t, s.want)
	got := merge.Apply(observed, last, desired)
	if !merge.Equal(got, want) {
		t.Errorf("Apply (-want +got):\n%s", cmp.Diff(want, got))
	}
	if again := merge.Apply(got, desired, desired); !merge.Equal(again, got) {
		t.Errorf("applied twice (-once +twice):\n%s", cmp.Diff(got, again))
	}
	for name, pair := range map[string][2]any{
		"observed":     {observed, decode(t, s.observed)},
		"last applied": {last, decode(t, s.last)},
		"desired":      {desired, decode(t, s.desired)},
	} {
		if diff := cmp.Diff(pair[1], pair[0]); diff != "" {
			t.Errorf("%s was changed:\n%s", name, diff)
		}
	}
}

func TestApplyOfADefaultedDeploymentChangesNothing(t *testing.T) {
	observed := file(t, "observed.json")
	desired := file(t, "desired.json")
	if diff := merge.Diff(observed, merge.Apply(observed, desired, desired)); diff != "" {
		t.Errorf("Diff = %q, want none", diff)
	}
}

func TestStrip(t *testing.T) {
	desired := decode(t,
		`{"metadata":{"name":"a","uid":"1","resourceVersion":"2","creationTimestamp":null,"labels":{"uid":"x"}},`+
			`"spec":{"status":1},"status":{}}`)
	merge.Strip(desired)
	want := decode(t, `{"metadata":{"name":"a","labels":{"uid":"x"}},"spec":{"status":1}}`)
	if diff := cmp.Diff(want, desired); diff != "" {
		t.Error(diff)
	}
}

// BenchmarkApply merges a Deployment with three containers, without a difference and with one.
func BenchmarkApply(b *testing.B) {
	observed := file(b, "observed.json")
	last := file(b, "desired.json")
	changed := file(b, "desired.json")
	changed["spec"].(map[string]any)["replicas"] = int64(5)
	for name, desired := range map[string]map[string]any{"same": last, "changed": changed} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				merged := merge.Apply(observed, last, desired)
				if got := merge.Diff(observed, merged); (got == "") != (name == "same") {
					b.Fatalf("Diff = %q", got)
				}
			}
		})
	}
}
