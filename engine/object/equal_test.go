package object_test

import (
	"testing"

	"github.com/hookloop/hookloop/engine/object"
)

// TestEqualButVersion compares an object with what an update may make of it.
func TestEqualButVersion(t *testing.T) {
	const now = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","resourceVersion":"99","uid":"u"},` +
		`"data":{"at":"99"},"ref":{"resourceVersion":"99"}}`
	tests := []struct {
		name, then string
		want       bool
	}{
		{"nothing", now, true},
		{"the version", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","resourceVersion":"100","uid":"u"},` +
			`"data":{"at":"99"},"ref":{"resourceVersion":"99"}}`, true},
		{"managedFields", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","resourceVersion":"100","uid":"u",` +
			`"managedFields":[{"manager":"kubectl","operation":"Update","time":"2026-01-01T00:00:00Z"}]},` +
			`"data":{"at":"99"},"ref":{"resourceVersion":"99"}}`, true},
		{"the version and a field", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","resourceVersion":"100",` +
			`"uid":"u"},"data":{"at":"98"},"ref":{"resourceVersion":"99"}}`, false},
		{"the version and a reference to one", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a",` +
			`"resourceVersion":"100","uid":"u"},"data":{"at":"99"},"ref":{"resourceVersion":"98"}}`, false},
		{"both in the same way", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a",` +
			`"resourceVersion":"98","uid":"u"},"data":{"at":"99"},"ref":{"resourceVersion":"98"}}`, false},
		{"a field", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","resourceVersion":"99","uid":"u"},` +
			`"data":{"at":"98"},"ref":{"resourceVersion":"99"}}`, false},
		{"a label", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"a":"b"},` +
			`"resourceVersion":"99","uid":"u"},"data":{"at":"99"},"ref":{"resourceVersion":"99"}}`, false},
	}
	for _, test := range tests {
		a := decodeText(t, now)
		b := decodeText(t, test.then)
		if got := object.EqualButVersion(a, b); got != test.want {
			t.Errorf("%s differs: EqualButVersion = %v, want %v", test.name, got, test.want)
		}
		if got := object.EqualButVersion(b, a); got != test.want {
			t.Errorf("%s differs, the other way round: EqualButVersion = %v, want %v", test.name, got, test.want)
		}
	}
}

// TestEqualRecords compares objects that differ in their records of apply.
func TestEqualRecords(t *testing.T) {
	object1 := func(metadata string) *object.Object {
		return decodeText(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"`+metadata+`}}`)
	}
	applied := func(fields string) string {
		return `,"managedFields":[{"manager":"m","operation":"Apply","fieldsType":"FieldsV1","fieldsV1":` + fields + `}]`
	}
	last := func(text string) string {
		return `,"annotations":{"` + object.LastAppliedAnnotation + `":"` + text + `"}`
	}
	none := object1("")
	one := object1(applied(`{"f:data":{}}`))
	two := object1(applied(`{"f:spec":{}}`))
	first := object1(last("{}"))
	second := object1(last("[]"))
	for i, a := range []*object.Object{none, one, two, first, second} {
		for j, b := range []*object.Object{none, one, two, first, second} {
			if got := object.EqualRecords(a, b); got != (i == j) {
				t.Errorf("%d and %d: EqualRecords = %v", i, j, got)
			}
			if i != j && !object.EqualButVersion(a, b) {
				t.Errorf("%d and %d differ in more than their records", i, j)
			}
		}
	}
}

func decodeText(t *testing.T, text string) *object.Object {
	t.Helper()
	o, err := object.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return o
}
