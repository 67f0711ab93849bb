package webhook

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/internal/budget"
)

// crowd is a response with n children, of which the first has a text.
func crowd(n int, text string) string {
	children := make([]string, n)
	for i := range children {
		children[i] = fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c-%d"},"data":{"rest":%q}}`,
			i, strings.Repeat("0123456789abcdef", 60))
	}
	children[0] = fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c-0"},"data":{"text":%q}}`, text)
	return `{"status":{},"children":[` + strings.Join(children, ",") + `]}`
}

// answering serves a response that the test may replace.
func answering(t testing.TB, body string) (url string, replace func(body string)) {
	var now atomic.Pointer[string]
	now.Store(&body)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, err := w.Write([]byte(*now.Load())); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, func(body string) { now.Store(&body) }
}

// TestAnEqualAnswerIsDecodedOnce asks for the same large answer again, then for one with another
// first child: the equal children are the same memory, and each answer is the hook's.
func TestAnEqualAnswerIsDecodedOnce(t *testing.T) {
	b := budget.New(1 << 30)
	url, replace := answering(t, crowd(50, "one"))
	h := limited(t, b, string(field(url, "")))
	ask := func(body string) *hook.Answer {
		t.Helper()
		replace(body)
		a, err := h.Ask(t.Context(), observed(t))
		if err != nil {
			t.Fatal(err)
		}
		want, err := readComposite(hook.Sync, "v2", []byte(body), false)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, a); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		return a
	}
	same := func(a, b json.RawMessage) bool { return &a[0] == &b[0] }
	first := ask(crowd(50, "one"))
	if again := ask(crowd(50, "one")); !same(first.Children[0], again.Children[0]) {
		t.Error("an equal answer is decoded again")
	}
	other := ask(crowd(50, "two"))
	if same(first.Children[0], other.Children[0]) || !same(first.Children[1], other.Children[1]) {
		t.Error("want the equal children, and no other, of the previous answer")
	}
	if u := b.Share(budget.Answers).Usage(); u.Bytes != int64(len(crowd(50, "two"))) {
		t.Errorf("%d bytes are kept, want those of one answer", u.Bytes)
	}
	ask(crowd(1, "small"))
	if u := b.Share(budget.Answers).Usage(); u.Bytes != 0 {
		t.Errorf("%d bytes of a small answer are kept", u.Bytes)
	}
	ask(crowd(50, "one"))
	h.Forget(observed(t).Parent.UID(), "")
	if u := b.Share(budget.Answers).Usage(); u.Bytes != 0 {
		t.Errorf("%d bytes of a parent that is gone are kept", u.Bytes)
	}
}

// BenchmarkLargeAnswer asks for an answer with 1,000 children of 1 kB that does not change.
func BenchmarkLargeAnswer(b *testing.B) {
	url, _ := answering(b, crowd(1000, "one"))
	h, err := Open(settings("v2", string(field(url, ""))))
	if err != nil {
		b.Fatal(err)
	}
	defer h.Close() //nolint:errcheck // the benchmark is over
	b.ReportAllocs()
	q := observed(b)
	for b.Loop() {
		if _, err := h.Ask(b.Context(), q); err != nil {
			b.Fatal(err)
		}
	}
}
