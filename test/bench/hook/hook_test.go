package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/sdk/go/hook"
)

const parent = `{"apiVersion":"bench.example.com/v1","kind":"Crowd","metadata":{"name":"a"},"spec":{"children":2,` +
	`"text":"say \"hi\"","bytes":5}}`

const answer = `{"status":{"children":2},"children":[` +
	`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a-0","labels":{"bench.example.com/crowd":"a"}},` +
	`"data":{"text":"say \"hi\"","rest":"01234"}},` +
	`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a-1","labels":{"bench.example.com/crowd":"a"}},` +
	`"data":{"text":"say \"hi\"","rest":"01234"}}]}`

func ask(t *testing.T, c *crowds, body string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	c.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)))
	return w
}

// Both transports use one function.
func TestBothTransportsAnswerTheSame(t *testing.T) {
	c := &crowds{}
	w := ask(t, c,
		`{"controller":{"kind":"CompositeController"},"parent":`+parent+`,"children":{"ConfigMap.v1":{}},"finalizing":false}`)
	if w.Code != http.StatusOK || w.Body.String() != answer {
		t.Errorf("the webhook answers %d\n%s\nwant 200\n%s", w.Code, w.Body, answer)
	}
	req, err := hook.NewSyncRequest(json.RawMessage(parent), nil, "ConfigMap.v1")
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.sync(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	children := make([]any, len(got.Children))
	for i, child := range got.Children {
		children[i] = child.Object
	}
	text, err := json.Marshal(map[string]any{"status": got.Status, "children": children})
	if err != nil {
		t.Fatal(err)
	}
	var over, want any
	if err := json.Unmarshal(text, &over); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(answer), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, over); diff != "" {
		t.Errorf("over gRPC (-want +got):\n%s", diff)
	}
}

func TestAnAnswerIsBuiltOnce(t *testing.T) {
	c := &crowds{}
	of := crowd{}
	of.Spec.Children = 3
	first := c.wanted(of)
	if c.wanted(of) != first {
		t.Error("the same question has built another answer")
	}
	of.Spec.Text = "new"
	if c.wanted(of) == first {
		t.Error("another text has got the old answer")
	}
}

func TestARequestThatIsNone(t *testing.T) {
	for _, body := range []string{``, `{}`, `{"children":{}}`, `{"parent":3}`, `{"controller":`} {
		if w := ask(t, &crowds{}, body); w.Code != http.StatusBadRequest || !strings.HasPrefix(w.Body.String(), "request:") {
			t.Errorf("%q is answered %d %s, want 400 and a reason", body, w.Code, w.Body)
		}
	}
}

// TestMapInput maps an input over both transports.
func TestMapInput(t *testing.T) {
	const in = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"in",` +
		`"annotations":{"bench.example.com/text":"own"}}}`
	const want = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"in",` +
		`"labels":{"bench.example.com/crowd":"a"}},"data":{"text":"own","rest":"xxxxx"}}`
	w := httptest.NewRecorder()
	serveMap(w, httptest.NewRequest(http.MethodPost, "/map", strings.NewReader(`{"parent":`+parent+`,"input":`+in+`}`)))
	if w.Code != http.StatusOK || w.Body.String() != `{"outputs":[`+want+`]}` {
		t.Errorf("the webhook answers %d\n%s", w.Code, w.Body)
	}
	req, err := hook.NewMapRequest(json.RawMessage(parent), json.RawMessage(in), nil, "ConfigMap.v1")
	if err != nil {
		t.Fatal(err)
	}
	got, err := mapInput(t.Context(), req)
	if err != nil || len(got.Outputs) != 1 || string(got.Outputs[0].Object.(json.RawMessage)) != want {
		t.Errorf("over gRPC: got %v, %v; want %s", got, err, want)
	}
	for _, body := range []string{``, `{}`, `{"parent":3}`} {
		w := httptest.NewRecorder()
		serveMap(w, httptest.NewRequest(http.MethodPost, "/map", strings.NewReader(body)))
		if w.Code != http.StatusBadRequest {
			t.Errorf("%q is answered %d, want 400", body, w.Code)
		}
	}
}

// TestDecompressing asks with a compressed question, and with one that is none.
func TestDecompressing(t *testing.T) {
	var body bytes.Buffer
	compressed := gzip.NewWriter(&body)
	if _, err := io.WriteString(compressed, `{"parent":`+parent+`}`); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{body.String(): http.StatusOK, "{}": http.StatusBadRequest} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(text))
		r.Header.Set("Content-Encoding", "gzip")
		decompressing(&crowds{}).ServeHTTP(w, r)
		answered := want != http.StatusOK || w.Body.String() == answer
		if w.Code != want || w.Header().Get("Accept-Encoding") != "gzip" || !answered {
			t.Errorf("got %d %v %s, want %d", w.Code, w.Header(), w.Body, want)
		}
	}
}
