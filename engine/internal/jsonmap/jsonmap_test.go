package jsonmap

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

var samples = []string{
	`{}`, ` { "a" : [ ] , "b":{}, "c": null }` + "\n",
	`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"app":"x"}},"data":{"k":"line\nnext \"q\""}}`,
	`{"n":[0,-0,1,-12,9007199254740993,9223372036854775807,9223372036854775808,1.5,1e3,1E-2,-0.0]}`,
	`{"a":1,"a":{"b":2},"a":[true,false,null]}`,
	`{"u":"ä€😀","e":"\u00e4\ud83d\ude00\u2028","h":"<a&b>","t":"\t\r\b\f\u0001","d":"\u007f"}`,
	`{"half":"\ud800"}`, "{\"bad\":\"\xff\"}", "{\"raw\":\"\x01\"}", `{"open":"`, `{"esc":"\`, `{"a":01}`, `{"a":1.}`,
	`{"a":1e}`, `{"a":-}`, `{"a":1e999}`, `{"a":tru}`, `{"a":1,}`, `{"a" 1}`, `{,}`, `[1]`, `null`, `"a"`, ``, `{}{}`,
	`{"deep":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`,
}

// compare compares both directions with the decoder of API machinery and json.Marshal.
func compare(t *testing.T, data []byte) {
	t.Helper()
	var want map[string]any
	err := utiljson.Unmarshal(data, &want)
	got, ok := Decode(data)
	if !ok {
		if err == nil && want != nil && strings.Count(string(data), "\\") == 0 && utf8Clean(data) && shallow(data) {
			t.Errorf("Decode(%q) is not read", data)
		}
		return
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("Decode(%q) = %v, want %v, %v", data, got, want, err)
	}
	encoded, err := Encode(got)
	if err != nil {
		t.Fatal(err)
	}
	marshalled, err := json.Marshal(got)
	if err != nil || !bytes.Equal(encoded, marshalled) {
		t.Fatalf("Encode = %s, want %s, %v", encoded, marshalled, err)
	}
}

func utf8Clean(data []byte) bool { return bytes.Equal(bytes.ToValidUTF8(data, nil), data) }
func shallow(data []byte) bool {
	return bytes.Count(data, []byte("[")) < 100 && bytes.Count(data, []byte("{")) < 100
}

func TestLikeAPIMachinery(t *testing.T) {
	for _, text := range samples {
		compare(t, []byte(text))
	}
}

func FuzzLikeAPIMachinery(f *testing.F) {
	for _, text := range samples {
		f.Add([]byte(text))
	}
	f.Fuzz(compare)
}

// TestEncodeOthers encodes values that are no decoded JSON.
func TestEncodeOthers(t *testing.T) {
	type named string
	v := map[string]any{
		"none": map[string]any(nil), "list": []any(nil), "float": 1e21, "small": 1e-7, "text": []string{"<"},
		"named": named("a\tb"), "int": 3, "raw": json.RawMessage(`{"a": 1}`), "struct": struct{ A int }{1},
	}
	got, err := Encode(v)
	if err != nil {
		t.Fatal(err)
	}
	want, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Error(diff)
	}
	for range 2 { // the second one uses the encoder of the first again
		if _, err := Encode(map[string]any{"a": map[string]any{"b": math.NaN()}}); err == nil {
			t.Error("Encode has encoded NaN")
		}
	}
	if got, err := Encode(map[string]any{"a": int64(1)}); err != nil || string(got) != `{"a":1}` {
		t.Errorf("Encode after an error = %s, %v", got, err)
	}
}
