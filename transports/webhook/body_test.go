package webhook

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
)

// largeQuestionOf returns a question with children of about 1 kB.
func largeQuestionOf(t testing.TB, children int) *hook.Question {
	t.Helper()
	q := observed(t)
	for i := range children {
		text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p%d","namespace":"shop"},"data":%q}`,
			i, strings.Repeat("x", i%1500))
		o, err := object.Decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		q.Children[0].Objects = append(q.Children[0].Objects, o)
	}
	return q
}

// TestLargeQuestionIsNotCopied: a large question refers to the objects of the cache, and has the
// same bytes as a copy. It can be read several times, for net/http's second try.
func TestLargeQuestionIsNotCopied(t *testing.T) {
	q := largeQuestionOf(t, 500)
	body := encode(q, "v2")
	if len(body.inserted) < 400 || len(body.text) > body.size()/10 {
		t.Errorf("%d of 500 children are inserted into %d bytes of %d", len(body.inserted), len(body.text), body.size())
	}
	copied := &writer{version: "v2", parent: q.Parent}
	copied.question(q)
	want := copied.Bytes()
	open := body.bodies()
	for range 2 {
		reader, err := open()
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(iotest.HalfReader(reader))
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("read %d bytes and %v, want the %d bytes of a copy", len(got), err, len(want))
		}
	}
	if got := body.bytes(); body.size() != len(want) || !bytes.Equal(got, want) {
		t.Errorf("size %d, bytes %d, want %d", body.size(), len(got), len(want))
	}
	if small := encode(observed(t), "v2"); small.inserted != nil {
		t.Errorf("a question of %d bytes has references", small.size())
	}
}

func BenchmarkEncodeLarge(b *testing.B) {
	q := largeQuestionOf(b, 3000)
	b.ReportAllocs()
	for b.Loop() {
		reader, err := encode(q, "v2").bodies()()
		if err != nil {
			b.Fatal(err)
		}
		n, err := io.Copy(io.Discard, struct{ io.Reader }{reader})
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(n)
	}
}
