package merge_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/internal/plan/merge"
	"github.com/hookloop/hookloop/engine/object"
)

const ports = `{"f:spec":{"f:ports":{".":{},"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},` +
	`"f:containerPort":{},"f:name":{}}}}}`

// TestDropped compares owned and desired fields; the last column is the object's loss.
func TestDropped(t *testing.T) {
	tests := []struct{ name, owned, desired, dropped, before, after string }{
		{"all is desired", `{"f:data":{"f:a":{}}}`, `{"data":{"a":"1"}}`, `{}`, `{"data":{"a":"1"}}`, `{"data":{"a":"1"}}`},
		{
			"a field is not",
			`{"f:data":{"f:a":{},"f:b":{}}}`,
			`{"data":{"a":"1"}}`,
			`{"f:data":{"f:b":{}}}`,
			`{"data":{"a":"1","b":"2","c":"3"}}`,
			`{"data":{"a":"1","c":"3"}}`,
		},
		{
			"null is not desired",
			`{"f:data":{"f:a":{}}}`,
			`{"data":{"a":null}}`,
			`{"f:data":{"f:a":{}}}`,
			`{"data":{"a":"1"}}`,
			`{"data":{}}`,
		},
		{
			"a whole object: what is in it of others stays",
			`{"f:data":{".":{},"f:a":{}}}`,
			`{}`,
			`{"f:data":{".":{},"f:a":{}}}`,
			`{"data":{"a":"1","b":"2"}}`,
			`{"data":{"b":"2"}}`,
		},
		{
			"an item by its key, of which the server has defaulted a part",
			ports,
			`{"spec":{"ports":[{"name":"web","containerPort":80}]}}`,
			`{}`,
			`{"spec":{"ports":[]}}`,
			`{"spec":{"ports":[]}}`,
		},
		{
			"an item goes with its key",
			ports,
			`{"spec":{"ports":[{"containerPort":81}]}}`,
			`{"f:spec":{"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:name":{}}}}}`,
			`{"spec":{"ports":[{"containerPort":80,"protocol":"TCP","name":"web"},{"containerPort":90}]}}`,
			`{"spec":{"ports":[{"containerPort":90}]}}`,
		},
		{
			"a field of an item", ports, `{"spec":{"ports":[{"containerPort":80}]}}`,
			`{"f:spec":{"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{"f:name":{}}}}}`,
			`{"spec":{"ports":[{"containerPort":80,"name":"web"}]}}`, `{"spec":{"ports":[{"containerPort":80}]}}`,
		},
		{
			"a member of a set",
			`{"f:metadata":{"f:finalizers":{"v:\"a\"":{},"v:\"b\"":{}}}}`,
			`{"metadata":{"finalizers":["b"]}}`,
			`{"f:metadata":{"f:finalizers":{"v:\"a\"":{}}}}`,
			`{"metadata":{"finalizers":["a","b","c"]}}`,
			`{"metadata":{"finalizers":["b","c"]}}`,
		},
		{
			"status and what the server sets",
			`{"f:status":{"f:a":{}},"f:metadata":{"f:uid":{}}}`,
			`{}`,
			`{}`,
			`{"status":{"a":1}}`,
			`{"status":{"a":1}}`,
		},
		{
			"the desired value is of another type",
			`{"f:data":{"f:a":{"f:b":{}}}}`,
			`{"data":{"a":"1"}}`,
			`{"f:data":{"f:a":{"f:b":{}}}}`,
			`{"data":{"a":"1"}}`,
			`{"data":{"a":"1"}}`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			owned, err := merge.ParseOwned([]byte(test.owned))
			if err != nil {
				t.Fatal(err)
			}
			dropped := owned.Dropped(decode(t, test.desired))
			got, err := dropped.FieldsV1()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(decode(t, test.dropped), decode(t, string(got))); diff != "" {
				t.Errorf("dropped (-want +got):\n%s", diff)
			}
			m := decode(t, test.before)
			dropped.Remove(m)
			if diff := cmp.Diff(decode(t, test.after), m); diff != "" {
				t.Errorf("without them (-want +got):\n%s", diff)
			}
			if !owned.Less(dropped).Dropped(decode(t, test.desired)).Empty() {
				t.Error("what is left is not all desired")
			}
		})
	}
}

// FuzzOwned has any record and any object: nothing panics, and dropping fields of an object that is
// desired unchanged does not change it.
func FuzzOwned(f *testing.F) {
	f.Add(ports, `{"spec":{"ports":[{"containerPort":80,"name":"web"}]}}`)
	f.Add(`{"f:metadata":{"f:finalizers":{"v:\"a\"":{},"i:1":{}}}}`, `{"metadata":{"finalizers":["b"]}}`)
	f.Fuzz(func(t *testing.T, record, text string) {
		owned, err := merge.ParseOwned([]byte(record))
		if err != nil {
			return
		}
		m, err := object.DecodeMap([]byte(text))
		if err != nil {
			return
		}
		before, err := json.Marshal(m)
		if err != nil {
			return
		}
		m = merge.Apply(nil, nil, m)
		want := merge.Apply(nil, nil, m)
		owned.Dropped(m).Remove(m)
		if diff := cmp.Diff(want, m); diff != "" {
			t.Errorf("%s loses of itself (-before +after):\n%s", before, diff)
		}
	})
}

// TestTouches finds fields by the paths of differences.
func TestTouches(t *testing.T) {
	body := map[string]any{
		"data": map[string]any{"a": "x", "b": "y"},
		"spec": map[string]any{"list": []any{map[string]any{"name": "n", "image": "i"}}, "replicas": int64(1)},
	}
	owned, err := merge.ParseOwned(
		[]byte(`{"f:data":{"f:a":{}},"f:spec":{"f:replicas":{},"f:list":{"k:{\"name\":\"n\"}":{".":{},"f:image":{}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		"data": true, "data.a": true, "data.b": false, "data.a.inner": true, "dat": false,
		"spec.replicas": true, "spec.rep": false,
		"spec.list[0].image": true, "spec.list[0]": true, "spec.list[1]": false, "metadata.labels": false,
	} {
		if got := owned.Touches(body, path); got != want {
			t.Errorf("Touches(%s) = %t", path, got)
		}
	}
}
