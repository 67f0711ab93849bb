package echoes

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/object"
)

func textOf(name, version string, size int) []byte {
	const text = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"resourceVersion":%q},"data":{"k":%q}}`
	return fmt.Appendf(nil, text, name, version, strings.Repeat("x", size))
}

// same reports whether an object is what object.Decode makes of a text.
func same(t *testing.T, o *object.Object, text []byte) {
	t.Helper()
	want, err := object.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want.Raw()), string(o.Raw())); diff != "" || o.Ref() != want.Ref() ||
		o.ResourceVersion() != want.ResourceVersion() {
		t.Errorf("%v: %s", o.Ref(), diff)
	}
}

func decoded(t *testing.T, decode func([]byte) (*object.Object, error), text []byte) *object.Object {
	t.Helper()
	o, err := decode(text)
	if err != nil {
		t.Fatal(err)
	}
	same(t, o, text)
	return o
}

// TestEitherOrder decodes an answer and its event, whichever comes first. The answer ends with a
// line break.
func TestEitherOrder(t *testing.T) {
	for _, first := range []string{"answer", "event"} {
		t.Run(first, func(t *testing.T) {
			e := &Echoes{}
			text := textOf("a", "1", 10)
			answer := func() *object.Object { return decoded(t, e.Answer, append(text, '\n')) }
			event := func() *object.Object { return decoded(t, e.Event, text) }
			e.Begin()
			var one, other *object.Object
			if first == "answer" {
				one = answer()
				e.End()
				other = event()
			} else {
				one = event()
				other = answer()
				e.End()
			}
			if got := e.Stats(); one != other || got != (Stats{Saved: 1}) {
				t.Errorf("the objects are equal: %v; %+v, want one saved and none held", one == other, got)
			}
			if event() == one {
				t.Error("the object was held on")
			}
		})
	}
}

// TestOtherTexts decodes texts that are no echoes: of another version, without a write, invalid.
func TestOtherTexts(t *testing.T) {
	e := &Echoes{}
	decoded(t, e.Event, textOf("a", "1", 10))
	if got := e.Stats(); got != (Stats{}) {
		t.Errorf("%+v after an event without a write, want nothing", got)
	}
	e.Begin()
	defer e.End()
	decoded(t, e.Answer, textOf("a", "1", 10))
	decoded(t, e.Event, textOf("a", "2", 10))
	if got := e.Stats().Saved; got != 0 {
		t.Errorf("%d saved, want 0", got)
	}
	for range 2 {
		if o, err := e.Event([]byte(`{"kind":`)); err == nil {
			t.Errorf("invalid JSON is %v", o)
		}
	}
}

// TestBounds holds more than is allowed.
func TestBounds(t *testing.T) {
	e := &Echoes{}
	e.Begin()
	for i := range 3 * slots {
		decoded(t, e.Answer, textOf(fmt.Sprint("small-", i), "1", 10))
	}
	for i := range 100 {
		decoded(t, e.Answer, textOf(fmt.Sprint("large-", i), "1", maxObject/2))
		if got := e.Stats().Bytes; got > maxBytes || got < 0 {
			t.Fatalf("%d bytes are held", got)
		}
	}
	huge := textOf("huge", "1", maxObject)
	decoded(t, e.Answer, huge)
	decoded(t, e.Event, huge)
	if got := e.Stats().Saved; got != 0 {
		t.Errorf("%d saved, want 0", got)
	}
}

// TestConcurrent writes and watches from several goroutines.
func TestConcurrent(t *testing.T) {
	e := &Echoes{}
	var wait sync.WaitGroup
	for worker := range 8 {
		wait.Go(func() {
			for i := range 300 {
				text := textOf(fmt.Sprint(worker%4, "-", i), "1", 10)
				e.Begin()
				decoded(t, e.Answer, text)
				decoded(t, e.Event, text)
				e.End()
			}
		})
	}
	wait.Wait()
	e.clear()
	if got := e.Stats(); got.Bytes != 0 || got.Saved == 0 {
		t.Errorf("%+v, want no bytes and some saved", got)
	}
}

// BenchmarkWrite decodes the answer to a write and its watch event.
func BenchmarkWrite(b *testing.B) {
	text := fmt.Appendf(nil, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"bench","uid":"u",`+
		`"resourceVersion":"1","creationTimestamp":"2026-01-01T00:00:00Z","labels":{"app":"a"},"annotations":{%q:%q},`+
		`"ownerReferences":[{"apiVersion":"example.com/v1","kind":"Crowd","name":"crowd","uid":"c","controller":true}]},`+
		`"data":{"text":%q}}`, object.LastAppliedAnnotation, strings.Repeat("x", 900), strings.Repeat("x", 900))
	e := &Echoes{}
	e.Begin()
	type decoder = func([]byte) (*object.Object, error)
	for _, way := range []struct {
		name          string
		answer, event decoder
	}{{"once", e.Answer, e.Event}, {"twice", object.Decode, object.Decode}} {
		b.Run(way.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for _, decode := range []decoder{way.answer, way.event} {
					if _, err := decode(text); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
