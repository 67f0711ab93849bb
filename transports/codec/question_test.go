package codec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/protocol/decode"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// resourceOf returns the resource of a kind.
func resourceOf(group, kind string) object.Resource {
	gvk := schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}
	return object.Resource{GVK: gvk, Plural: strings.ToLower(kind) + "s", Namespaced: true}
}

// listOf returns n objects of a kind. Their sizes differ: some have no namespace, some are smaller
// than minInserted.
func listOf(t testing.TB, apiVersion, kind string, n int) (list []*object.Object) {
	t.Helper()
	for i := range n {
		namespace := ""
		if i%3 > 0 {
			namespace = `,"namespace":"shop"`
		}
		o, err := object.Decode(fmt.Appendf(nil,
			`{"apiVersion":%q,"kind":%q,"metadata":{"name":"o%d","uid":"u%d","resourceVersion":"%d"%s},"data":%q}`,
			apiVersion, kind, i, i, i*i, namespace, strings.Repeat("x", i%5*300)))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, o)
	}
	return list
}

// questionOf returns a question with groups of n objects, and of none.
func questionOf(t testing.TB, kind hook.ControllerKind, op hook.Op, n int) *hook.Question {
	t.Helper()
	one := listOf(t, "example.com/v1", "Web", 1)[0]
	pods := resourceOf("", "Pod")
	webs := resourceOf("example.com", "Web")
	q := &hook.Question{Kind: kind, Op: op, Controller: one, Parent: one}
	if op == hook.Customize {
		return q
	}
	if kind == hook.Mapping {
		q.MapKey = "v1/a"
		if op != hook.Tombstone {
			q.Input = one
		}
	}
	mixed := append(listOf(t, "v1", "Pod", n), listOf(t, "example.com/v1", "Pod", n)...)
	q.Children = []hook.Group{
		{Resource: pods, Objects: mixed},
		{Resource: webs},
		{Resource: webs, Objects: listOf(t, "example.com/v1", "Web", n/2)},
	}
	q.Related = []hook.RelatedGroup{
		{Group: q.Children[2], Name: "named"}, {Group: q.Children[1]},
		{Group: hook.Group{Resource: pods}, NotFound: true},
		{Group: hook.Group{Resource: webs}, Err: errors.New("no connection")},
		{Group: q.Children[0]},
	}
	return q
}

// TestEncodeIsTheMessage: an encoded question has the bytes of its message, for each method, with a
// copy of the objects or with references to them.
func TestEncodeIsTheMessage(t *testing.T) {
	for _, k := range hook.Descriptors() {
		for _, op := range k.Operations {
			for _, n := range []int{0, 1, 3, 200} {
				q := questionOf(t, k.ControllerKind, op, n)
				meta := Meta("v0.1.0", "shop")
				call := New(q, meta)
				want, err := proto.Marshal(call.Request)
				if err != nil {
					t.Fatal(err)
				}
				e, err := Encode(q, meta)
				if err != nil {
					t.Fatal(err)
				}
				sent, err := Codec(decode.Limits{}).Marshal(e)
				if err != nil {
					t.Fatal(err)
				}
				reader := sent.Reader()
				got, err := io.ReadAll(reader)
				if err != nil || !bytes.Equal(got, want) || e.Size() != len(want) {
					t.Errorf("%s %s, %d objects: %d bytes of size %d and %v, want the %d bytes of the message",
						k.ControllerKind, op, n, len(got), e.Size(), err, len(want))
				}
				if e.Response.ProtoReflect().Descriptor() != call.Response.ProtoReflect().Descriptor() {
					t.Errorf("%s %s: the response is a %T, want a %T", k.ControllerKind, op, e.Response, call.Response)
				}
				if refers := len(sent) > 1; refers != (n == 200 && op != hook.Customize) {
					t.Errorf("%s %s, %d bytes: sent in %d parts", k.ControllerKind, op, e.Size(), len(sent))
				}
			}
		}
	}
}

// TestEncodeRefusesWhatTheMessageRefuses: a text that is no UTF-8 has the error of the message.
func TestEncodeRefusesWhatTheMessageRefuses(t *testing.T) {
	for field, change := range map[string]func(*hook.Question){
		"map key": func(q *hook.Question) { q.MapKey = "a\xff" },
		"related": func(q *hook.Question) { q.Related[3].Err = errors.New("a\xff") },
	} {
		q := questionOf(t, hook.Mapping, hook.Map, 200)
		change(q)
		_, want := proto.Marshal(New(q, nil).Request)
		if _, err := Encode(q, nil); want == nil || err == nil || !strings.Contains(err.Error(), "invalid UTF-8") {
			t.Errorf("%s: got %v, want %v", field, err, want)
		}
	}
}
