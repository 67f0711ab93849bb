package webhook

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/hook"
)

func TestAcceptsGzip(t *testing.T) {
	for value, want := range map[string]bool{
		"": false, "identity": false, "*": false, "br, deflate": false, "gzipped": false,
		"gzip": true, "GZIP": true, "br, gzip": true, "gzip;q=0.5": true, "br;q=1, gzip ; q=0.1": true, "gzip;x=1": true,
		"gzip;q=0": false, "gzip; q=0.000": false, "gzip;Q=0": false, "gzip;q=": false, "gzip;q=no": false,
	} {
		if got := AcceptsGzip(http.Header{"Accept-Encoding": {value}}); got != want {
			t.Errorf("%q: got %v, want %v", value, got, want)
		}
	}
	if !AcceptsGzip(http.Header{"Accept-Encoding": {"br", "gzip"}}) {
		t.Error("a second header does not count")
	}
}

// declaring is a hook with a script: one entry for each request.
type declaring struct {
	t      *testing.T
	want   []byte // the JSON of each request
	mu     sync.Mutex
	script []declaration
	seen   []string // the Content-Encoding of each request
}

// declaration is a response: its Accept-Encoding and its status.
type declaration struct {
	accept string
	status int
}

func (h *declaring) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen = append(h.seen, r.Header.Get("Content-Encoding"))
	body, err := io.ReadAll(r.Body)
	if err == nil && r.ContentLength != int64(len(body)) {
		err = fmt.Errorf("the length is %d, and %d bytes came", r.ContentLength, len(body))
	}
	if r.Header.Get("Content-Encoding") == gzipCoding {
		if len(body) > len(h.want)/2 {
			h.t.Errorf("%d bytes were compressed to %d", len(h.want), len(body))
		}
		var plain *gzip.Reader
		plain, err = gzip.NewReader(bytes.NewReader(body))
		if err == nil {
			body, err = io.ReadAll(plain)
		}
	}
	if err != nil || !bytes.Equal(body, h.want) {
		h.t.Errorf("%v; got %d bytes that are not the question's %d", err, len(body), len(h.want))
	}
	next := h.script[0]
	h.script = h.script[1:]
	if next.accept != "" {
		w.Header().Set("Accept-Encoding", next.accept)
	}
	w.WriteHeader(next.status)
	_, _ = io.WriteString(w, "{}") // an error of the connection is the caller's
}

// TestCompressedRequests: a large request is compressed if the response before it declared gzip,
// and is repeated without compression if the hook may have failed because of that.
func TestCompressedRequests(t *testing.T) {
	accepts := declaration{"gzip", http.StatusOK}
	silent := declaration{"", http.StatusOK}
	fails := func(accept string, status int) declaration { return declaration{accept, status} }
	for name, c := range map[string]struct {
		script []declaration
		want   []string // Content-Encoding of each request
		asked  int      // questions
		failed int      // questions that end with an error
	}{
		"a hook that declares nothing": {[]declaration{silent, silent}, []string{"", ""}, 2, 0},
		"a hook that accepts gzip":     {[]declaration{accepts, accepts, accepts}, []string{"", "gzip", "gzip"}, 3, 0},
		"the declaration is withdrawn": {
			[]declaration{accepts, silent, silent, accepts, accepts}, []string{"", "gzip", "", "", "gzip"}, 5, 0},
		"415 withdraws it": {
			[]declaration{accepts, fails("identity", 415), silent, silent}, []string{"", "gzip", "", ""}, 3, 0},
		"a replica of another version takes the bytes for JSON": {
			[]declaration{accepts, fails("", 400), accepts, accepts}, []string{"", "gzip", "", "gzip"}, 3, 0},
		"a hook that declares what it cannot read": {
			[]declaration{accepts, fails("gzip", 500), accepts, accepts}, []string{"", "gzip", "", ""}, 3, 0},
		"a failure of another cause": {
			[]declaration{accepts, fails("", 500), fails("", 500), accepts, accepts},
			[]string{"", "gzip", "", "", "gzip"}, 4, 1},
		"too many requests": {
			[]declaration{accepts, fails("gzip", 429), accepts}, []string{"", "gzip", "gzip"}, 3, 1},
		"an error declares it": {[]declaration{fails("gzip", 503), accepts}, []string{"", "gzip"}, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			q := largeQuestionOf(t, 300)
			h := &declaring{t: t, script: slices.Clone(c.script), want: encode(q, "v2").bytes()}
			opened, err := Open(settings("v2", string(field(serve(t, h).URL, ""))))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = opened.Close() })
			failed := 0
			for range c.asked {
				if _, err := opened.Ask(t.Context(), q); err != nil {
					failed++
				}
			}
			if diff := cmp.Diff(c.want, h.seen); diff != "" || failed != c.failed {
				t.Errorf("%d questions failed, want %d; codings (-want +got):\n%s", failed, c.failed, diff)
			}
		})
	}
}

// TestNoResponseWithdraws: after a compressed request without a response, the next one is not
// compressed, until the hook declares gzip again.
func TestNoResponseWithdraws(t *testing.T) {
	plain := encode(largeQuestionOf(t, 300), "v2")
	var c coding
	accepting := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Accept-Encoding": {"gzip"}}}
	for _, step := range []struct {
		do   func()
		want string
	}{
		{func() { c.failed(plain) }, ""},
		{func() { c.note(plain, accepting) }, "gzip"},
		{func() { c.failed(plain) }, "gzip"},
		{func() { c.failed(plain.compress()) }, ""},
		{func() { c.note(plain, accepting) }, "gzip"},
	} {
		step.do()
		if c.compressed(plain).coding != step.want {
			t.Fatalf("the coding is %q, want %q", c.compressed(plain).coding, step.want)
		}
	}
}

// TestSmallRequestsAreNotCompressed, whatever the hook declares.
func TestSmallRequestsAreNotCompressed(t *testing.T) {
	q := observed(t)
	accepts := declaration{"gzip", http.StatusOK}
	h := &declaring{t: t, script: []declaration{accepts, accepts}, want: encode(q, "v2").bytes()}
	opened, err := Open(settings("v2", string(field(serve(t, h).URL, ""))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close() })
	for range 2 {
		if _, err := opened.Ask(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"", ""}, h.seen); diff != "" {
		t.Errorf("codings (-want +got):\n%s", diff)
	}
}

// TestCompressedWithEtag: 412 to a request with If-None-Match confirms the cached response, and
// repeats nothing.
func TestCompressedWithEtag(t *testing.T) {
	var seen []string
	server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("Content-Encoding")+r.Header.Get("If-None-Match"))
		w.Header().Set("Accept-Encoding", "gzip")
		if r.Header.Get("If-None-Match") != "" {
			w.WriteHeader(http.StatusPreconditionFailed)
			return
		}
		w.Header().Set("ETag", `"1"`)
		_, _ = io.WriteString(w, `{"status":{"n":1}}`)
	}))
	opened, err := Open(settings("v2", fmt.Sprintf(`{"url":%q,"etag":{"enabled":true}}`, server.URL)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close() })
	q := largeQuestionOf(t, 300)
	var answer *hook.Answer
	for range 2 {
		answer, err = opened.Ask(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"", `gzip"1"`}, seen); diff != "" || string(answer.Status) != `{"n":1}` {
		t.Errorf("status %s; requests (-want +got):\n%s", answer.Status, diff)
	}
}

// FuzzAcceptsGzip reads headers of hooks.
func FuzzAcceptsGzip(f *testing.F) {
	for _, seed := range []string{"", "gzip", "gzip;q=0", "br, gzip ; q=0.5", "gzip;q=1e-400", ",;,=,"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		if AcceptsGzip(http.Header{"Accept-Encoding": {value}}) &&
			!bytes.Contains(bytes.ToLower([]byte(value)), []byte(gzipCoding)) {
			t.Errorf("%q declares gzip", value)
		}
	})
}
