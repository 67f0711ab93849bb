package object_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
)

func TestDecode(t *testing.T) {
	tests := []struct{ name, in, raw, lastApplied string }{
		{
			"an object passes as it is, compacted",
			` { "apiVersion" : "v1", "kind":"Page", "metadata":{"name":"a"}, "x": [ 1, 2 ] } `,
			`{"apiVersion":"v1","kind":"Page","metadata":{"name":"a"},"x":[1,2]}`,
			"",
		},
		{
			"the order of fields stays",
			`{"z":1,"kind":"Page","a":2,"apiVersion":"v1"}`,
			`{"z":1,"kind":"Page","a":2,"apiVersion":"v1"}`,
			"",
		},
		{
			"large integers and long fractions stay",
			`{"apiVersion":"v1","kind":"Page","n":9007199254740993,"f":0.10000000000000000001}`,
			`{"apiVersion":"v1","kind":"Page","n":9007199254740993,"f":0.10000000000000000001}`, "",
		},
		{
			"text stays as it is written", `{"apiVersion":"v1","kind":"Page","t":"\u00e9<>&\n","null":null}`,
			`{"apiVersion":"v1","kind":"Page","t":"\u00e9<>&\n","null":null}`, "",
		},
		{
			"managed fields go", `{"apiVersion":"v1","kind":"Page","metadata":{"managedFields":[{"manager":"m"}],"name":"a"}}`,
			`{"apiVersion":"v1","kind":"Page","metadata":{"name":"a"}}`, "",
		},
		{
			"the last applied state is kept beside",
			`{"apiVersion":"v1","kind":"Page","metadata":{"annotations":{"` + object.LastAppliedAnnotation +
				`":"{\"a\":1}","b":"c"}}}`,
			`{"apiVersion":"v1","kind":"Page","metadata":{"annotations":{"b":"c"}}}`,
			`{"a":1}`,
		},
		{
			"and no empty annotations stay",
			`{"apiVersion":"v1","kind":"Page","metadata":{"annotations":{"` + object.LastAppliedAnnotation +
				`":"{}"},"name":"a"}}`,
			`{"apiVersion":"v1","kind":"Page","metadata":{"name":"a"}}`,
			`{}`,
		},
		{
			"and none of an empty state",
			`{"apiVersion":"v1","kind":"Page","metadata":{"annotations":{"` + object.LastAppliedAnnotation + `":""}}}`,
			`{"apiVersion":"v1","kind":"Page","metadata":{}}`,
			"",
		},
		{
			"the order of metadata stays, and its text",
			`{"apiVersion":"v1","kind":"Page","metadata":{"z":"<\u00e9>","name":"a","managedFields":null,"b":{"c" : "d e"}}}`,
			`{"apiVersion":"v1","kind":"Page","metadata":{"z":"<\u00e9>","name":"a","b":{"c":"d e"}}}`,
			"",
		},
		{
			"names with escapes are names",
			`{"apiVersion":"v1","k\u0069nd":"Page","metadat\u0061":{"annotations":{"` +
				strings.Replace(object.LastAppliedAnnotation, "/", `\/`, 1) + `":"{\"a\":\"\\\"\"}"},"n":"\\\"{}, "}}`,
			`{"apiVersion":"v1","k\u0069nd":"Page","metadat\u0061":{"n":"\\\"{}, "}}`,
			`{"a":"\""}`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o, err := object.Decode([]byte(test.in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.raw, string(o.Raw())); diff != "" {
				t.Errorf("Raw (-want +got):\n%s", diff)
			}
			if o.LastApplied() != test.lastApplied {
				t.Errorf("LastApplied = %q, want %q", o.LastApplied(), test.lastApplied)
			}
		})
	}
}

func TestMetadata(t *testing.T) {
	o := decode(
		t,
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"shop","name":"api","uid":"u",
		"resourceVersion":"7",
		"generation":3,"labels":{"a":"b"},"finalizers":["f"],"deletionTimestamp":"2026-01-01T00:00:00Z","Name":"not this",
		"ownerReferences":[{"uid":"x"},{"uid":"y","controller":true,"kind":"Shop","name":"s","apiVersion":"v1"}]},
		"status":{"ready":{"n":1}}}`,
	)
	if got, want := o.Ref().String(), `Deployment.apps/v1 "shop/api"`; got != want {
		t.Errorf("Ref = %s, want %s", got, want)
	}
	if o.UID() != "u" || o.ResourceVersion() != "7" || o.Generation() != 3 || o.Labels()["a"] != "b" ||
		!o.HasFinalizer("f") ||
		o.HasFinalizer("g") ||
		!o.Deleting() ||
		o.ControllerRef().UID != "y" ||
		len(o.OwnerReferences()) != 2 {
		t.Errorf("metadata is %+v", o.Meta())
	}
	if field, ok := o.Field("status", "ready", "n"); !ok || string(field) != "1" {
		t.Errorf("Field = %s, %v", field, ok)
	}
	for _, path := range [][]string{{"spec"}, {"status", "missing"}, {"kind", "deeper"}} {
		if field, ok := o.Field(path...); ok {
			t.Errorf("Field(%v) = %s, want none", path, field)
		}
	}
}

// TestMetadataIsAPIMachinerys decodes metadata as API machinery does, also if it is unusual.
func TestMetadataIsAPIMachinerys(t *testing.T) {
	for _, metadata := range []string{
		`null`, `{}`, `{"name":null,"labels":null,"annotations":null,"ownerReferences":null,"creationTimestamp":null}`,
		`{"deletionTimestamp":null,"generation":null,"deletionGracePeriodSeconds":null,"finalizers":null}`,
		`{"deletionTimestamp":"2026-01-01T02:00:00+02:00","deletionGracePeriodSeconds":30,"generation":7}`,
		`{"creationTimestamp":"2026-01-01T00:00:00Z","generateName":"a-","selfLink":"/a","unknown":{"name":1}}`,
		`{"labels":{"a":"b"},"labels":{"c":"d"}}`, `{"annotations":{"a":"b","c":null}}`, `{"labels":{}}`,
		`{"name":"\u00e9\n","uid":"\ud800","namespace":"a\/b"}`, `{"Name":"no","nAmespace":"no"}`,
		`{"finalizers":["a","b"],"ownerReferences":[{"apiVersion":"v1","kind":"P","name":"p","uid":"u","controller":true}]}`,
	} {
		o := decode(t, `{"apiVersion":"v1","kind":"P","metadata":`+metadata+`}`)
		if diff := cmp.Diff(metaByReflection(t, o), o.Meta()); diff != "" {
			t.Errorf("%s (-API machinery's +got):\n%s", metadata, diff)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	for in, want := range map[string]string{
		``:                                     "EOF",
		`null`:                                 "got null, expected a JSON object",
		`[1]`:                                  "got an array, expected a JSON object",
		`"text"`:                               "got a string, expected a JSON object",
		`{"kind":"Page"}`:                      "apiVersion is missing",
		`{"apiVersion":"v1"}`:                  "kind is missing",
		`{"apiVersion":1,"kind":"Page"}`:       "apiVersion",
		`{"apiVersion":"v1","kind":"Page"} {}`: "trailing data",
		`{"apiVersion":"v1","kind":"Page"`:     "unexpected EOF",
		`{"apiVersion":"v1","kind":"Page","metadata":{"labels":{"a":1}}}`: "metadata",
		`{"apiVersion":"v1","kind":"Page","metadata":"none"}`:             "metadata",
		`{"apiVersion":"v1","kind":"P","metadata":{"name":1}}`:            "metadata",
		`{"apiVersion":"v1","kind":"P","metadata":{"managedFields":1}}`:   "metadata",
		`{"apiVersion":"v1","kind":"P","metadata":{"generation":1.5}}`:    "metadata",
		`{"apiVersion":"v1","kind":"P","metadata":{"finalizers":"a"}}`:    "metadata",
		`{"apiVersion":"v1","kind":"P","metadata":{"annotations":[]}}`:    "metadata",
	} {
		o, err := object.Decode([]byte(in))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Decode(%s) = %v, %v, want an error that says %q", in, o, err, want)
		}
	}
}

// TestDecodeAsItem has items of a list, which omit the kind or the apiVersion.
func TestDecodeAsItem(t *testing.T) {
	gvk := schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "Page"}
	for in, want := range map[string]string{
		`{}`:                            `{"apiVersion":"g/v1","kind":"Page"}`,
		`{"metadata":{"name":"a"}}`:     `{"apiVersion":"g/v1","kind":"Page","metadata":{"name":"a"}}`,
		`{"kind":"Page","x":1}`:         `{"apiVersion":"g/v1","kind":"Page","x":1}`,
		`{"apiVersion":"g/v2"}`:         `{"kind":"Page","apiVersion":"g/v2"}`,
		`{"kind":"A","apiVersion":"b"}`: `{"kind":"A","apiVersion":"b"}`,
	} {
		if o, err := object.DecodeAs(gvk, []byte(in)); err != nil || string(o.Raw()) != want {
			t.Errorf("%s: %s, %v; want %s", in, o.Raw(), err, want)
		}
	}
}

// TestDecodeAllocates bounds the allocations of an event. The labels and the owner are known. The
// body has no more room than it needs.
func TestDecodeAllocates(t *testing.T) {
	data := []byte(deployment)
	allocs := testing.AllocsPerRun(100, func() {
		if _, err := object.Decode(data); err != nil {
			t.Fatal(err)
		}
	})
	if allocs > 20 { // 16, and a few with the race detector
		t.Errorf("%v allocations, want at most 20", allocs)
	}
	if raw := decode(t, deployment).Raw(); cap(raw) > len(raw)+len(raw)/4 {
		t.Errorf("a body of %d bytes holds %d", len(raw), cap(raw))
	}
}

func TestMapKeepsIntegers(t *testing.T) {
	m, err := decode(t, `{"apiVersion":"v1","kind":"Page","n":9007199254740993,"f":1.5}`).Map()
	if err != nil || m["n"] != int64(9007199254740993) || m["f"] != 1.5 {
		t.Errorf("Map = %v, %v", m, err)
	}
}

func TestDeeper(t *testing.T) {
	nested := []byte(strings.Repeat(`{"a":[`, 50) + strings.Repeat(`]}`, 50))
	if object.Deeper(nested, 100) || !object.Deeper(nested, 99) {
		t.Error("100 levels are not told from 99")
	}
	if object.Deeper([]byte(`"[[[[\"[["`), 1) {
		t.Error("brackets in text are counted")
	}
}

func TestSet(t *testing.T) {
	page := func(namespace, name, text string) *object.Object {
		return decode(
			t,
			fmt.Sprintf(
				`{"apiVersion":"v1","kind":"Page","metadata":{"namespace":%q,"name":%q},"text":%q}`,
				namespace,
				name,
				text,
			),
		)
	}
	b := page("shop", "b", "")
	a := page("shop", "a", "old")
	s := object.NewSet(b, a, decode(t, `{"apiVersion":"v1","kind":"Book","metadata":{"name":"c"}}`))
	if s.Len() != 3 || s.Get(a.Ref()) != a || len(s.Of(a.GVK())) != 2 || s.Of(a.GVK())[0] != a {
		t.Errorf("the set is %+v", s)
	}
	again := page("shop", "a", "new")
	if with := s.With(again); with.Get(a.Ref()) != again || with.Len() != 3 || s.Get(a.Ref()) != a {
		t.Error("With does not replace, or changes the set")
	}
	if empty := (object.Set{}); empty.Len() != 0 || empty.Get(a.Ref()) != nil || empty.Of(a.GVK()) != nil {
		t.Error("the zero value is not the empty set")
	}
}

func decode(t testing.TB, text string) *object.Object {
	t.Helper()
	o, err := object.Decode([]byte(text))
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return o
}

// metaByReflection decodes the metadata of an object, of several the last one, with API machinery's
// decoder.
func metaByReflection(t *testing.T, o *object.Object) metav1.Object {
	t.Helper()
	members := map[string]json.RawMessage{}
	meta := &metav1.ObjectMeta{}
	err := json.Unmarshal(o.Raw(), &members)
	if raw, found := members["metadata"]; err == nil && found {
		err = kjson.UnmarshalCaseSensitivePreserveInts(raw, meta)
	}
	if err != nil {
		t.Fatalf("%s: %v", o.Raw(), err)
	}
	return meta
}

// FuzzDecode reads anything: it does not panic, and what it takes it takes again, with the same
// result. The metadata is what API machinery decodes.
func FuzzDecode(f *testing.F) {
	f.Add(
		[]byte(
			`{"apiVersion":"v1","kind":"Page","metadata":{"managedFields":[],"annotations":{"` +
				object.LastAppliedAnnotation + `":"{}"}}}`,
		),
	)
	f.Add([]byte(`{"apiVersion":"v1","kind":"Page","apiVersion":"v2","":"\ud800"}`))
	f.Add([]byte(`{"kind":{}}`))
	f.Add([]byte(`{"apiVersion":"v1","kind":"P","metadata":{"labels":{"a":"b","a":"\u00e9"},"labels":null,"labels":{}}}`))
	f.Add([]byte(`{"apiVersion":"v1","kind":"P","metadata":{"name":"a"},"metadata":{"uid":"b"},"metadata":null}`))
	f.Add([]byte(deployment))
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := object.Decode(data)
		if err != nil {
			return
		}
		again, err := object.Decode(o.Raw())
		if err != nil {
			t.Fatalf("Decode takes %q, but not its Raw %q: %v", data, o.Raw(), err)
		}
		if diff := cmp.Diff(metaByReflection(t, o), o.Meta()); diff != "" {
			t.Fatalf("metadata of %q (-API machinery's +got):\n%s", o.Raw(), diff)
		}
		if string(again.Raw()) != string(o.Raw()) || again.Hash() != o.Hash() || again.Ref() != o.Ref() {
			t.Fatalf("decoded twice, %q becomes %q", o.Raw(), again.Raw())
		}
	})
}

// deployment is an object as an API server sends it: about 4 KB, half of it managed fields.
var deployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"api","namespace":"shop",` +
	`"uid":"6a1c4d9e-63f1-4b58-9c5f-1d2f3e4a5b6c",` +
	`"resourceVersion":"123456","generation":3,"creationTimestamp":"2026-01-01T00:00:00Z","labels":{"app":"api",` +
	`"controller-uid":"u"},` +
	`"annotations":{"` + object.LastAppliedAnnotation + `":"{\"spec\":{\"replicas\":3}}",` +
	`"deployment.kubernetes.io/revision":"3"},` +
	`"ownerReferences":[{"apiVersion":"example.com/v1","kind":"Shop","name":"s","uid":"u","controller":true,` +
	`"blockOwnerDeletion":true}],` +
	`"managedFields":[{"manager":"hookloop","operation":"Update","apiVersion":"apps/v1",` +
	`"time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{` +
	strings.Repeat(`"f:field":{"f:inner":{"k:{\"name\":\"server\"}":{".":{},"f:image":{},"f:name":{}}}},`,
		20) + `"f:last":{}}}]},` +
	`"spec":{"replicas":3,"selector":{"matchLabels":{"app":"api"}},` +
	`"template":{"metadata":{"labels":{"app":"api"}},"spec":{"containers":[` +
	`{"name":"server","image":"nginx:1.27","ports":[{"containerPort":8080,"protocol":"TCP"}],"env":[` +
	strings.Repeat(`{"name":"VARIABLE","value":"some text of a usual length"},`,
		10) + `{"name":"LAST","value":""}],` +
	`"resources":{"requests":{"cpu":"100m","memory":"64Mi"}},"terminationMessagePath":"/dev/termination-log",` +
	`"imagePullPolicy":"IfNotPresent"}],` +
	`"restartPolicy":"Always","dnsPolicy":"ClusterFirst","schedulerName":"default-scheduler"}}},` +
	`"status":{"observedGeneration":3,"replicas":3,` +
	`"readyReplicas":3,"conditions":[{"type":"Available","status":"True","reason":"MinimumReplicasAvailable"}]}}`

// BenchmarkDecode takes one object of the watch in: raw as the engine does, and, beside it, into a
// map.
func BenchmarkDecode(b *testing.B) {
	b.Run("raw", func(b *testing.B) {
		b.SetBytes(int64(len(deployment)))
		b.ReportAllocs()
		for b.Loop() {
			decode(b, deployment)
		}
		b.ReportMetric(float64(decode(b, deployment).Size()), "kept-bytes")
	})
	b.Run("map", func(b *testing.B) {
		b.SetBytes(int64(len(deployment)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := object.DecodeMap([]byte(deployment)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestHeld counts the bytes beside the body: the records of dynamic and server-side apply.
func TestHeld(t *testing.T) {
	for name, metadata := range map[string]string{
		"nothing":           `{"name":"a"}`,
		"dynamic apply":     `{"name":"a","annotations":{"` + object.LastAppliedAnnotation + `":"{\"spec\":{}}"}}`,
		"server-side apply": `{"name":"a","managedFields":[{"manager":"m","operation":"Apply","fieldsV1":{"f:spec":{}}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			o, err := object.Decode([]byte(`{"apiVersion":"v1","kind":"P","metadata":` + metadata + `}`))
			if err != nil {
				t.Fatal(err)
			}
			rest := 0
			if last := o.LastApplied(); last != "" {
				rest += len(last) + 2 // a text that the body does not have
			}
			if fields := o.Applied("m"); fields != nil {
				rest += len("m") + len(fields)
			}
			if o.Held() != len(o.Raw())+rest || (name != "nothing") != (rest > 0) {
				t.Errorf("Held = %d, want %d for the body and %d beside it", o.Held(), len(o.Raw()), rest)
			}
		})
	}
}
