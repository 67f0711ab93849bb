package verify

import (
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// set returns a change of the body alone.
func set(change func([]byte) []byte) func(*http.Request, *webhookResponse) bool {
	return func(_ *http.Request, r *webhookResponse) bool {
		if r.status == http.StatusOK {
			r.body = change(r.body)
		}
		return true
	}
}

func header(name, value string) func(*http.Request, *webhookResponse) bool {
	return func(_ *http.Request, r *webhookResponse) bool {
		r.header.Set(name, value)
		return true
	}
}

// failing changes the responses to a parent that the hook cannot read.
func failing(status int, body string) func(*http.Request, *webhookResponse) bool {
	return func(_ *http.Request, r *webhookResponse) bool {
		if r.status != http.StatusOK {
			r.status, r.body = status, []byte(body)
		}
		return status != 0
	}
}

func TestFaultsOfWebhooks(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		change func(*http.Request, *webhookResponse) bool
		want   string
	}{
		{"bytes in ISO 8859-1", set(latin1), ruleNotUTF8},
		{"UTF-8 read as ISO 8859-1", set(asLatin1), ruleText},
		{"escapes lost", set(func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(`\\`), nil) }), ruleText},
		{"HTML", set(func([]byte) []byte { return []byte("<html>") }), ruleMalformed},
		{"NaN", set(replace(`"number":3`, `"number":NaN`)), ruleMalformed},
		{"empty", set(func([]byte) []byte { return nil }), ruleMalformed},
		{"duplicate key", set(replace(`"status"`, `"status":{},"status"`)), ruleDuplicateKey},
		{"gzip that is none", header("Content-Encoding", "gzip"), ruleEncoding},
		{"compression that was not asked for", header("Content-Encoding", "br"), ruleEncoding},
		{"charset", header("Content-Type", "application/json; charset=iso-8859-1"), ruleEncoding},
		{"no name", set(replace(`"name":`, `"nom":`)), ruleIdentity},
		{"kind that is not declared", set(replace("ConfigMap", "Gadget")), ruleChildKind},
		{"integer through a double", set(throughDouble), ruleInteger},
		{"resync is a text", set(replace(`"status"`, `"resyncAfterSeconds":"10","status"`)), ruleRejected},
		{"error with status 200", failing(http.StatusOK, `{"error":"KeyError"}`), ruleErrorAnswer},
		{"error without a message", failing(http.StatusInternalServerError, ""), ruleErrorMessage},
		{"redirect", failing(http.StatusFound, "elsewhere"), ruleErrorCode},
		{"error that ends the connection", func(_ *http.Request, r *webhookResponse) bool {
			return r.status == http.StatusOK
		}, ruleErrorCode},
		{"larger than 16 MiB", set(replace(`"data":{`, `"data":{"big":"`+string(bytes.Repeat([]byte("x"), 17<<20))+`",`)),
			ruleLimit},
		{"child larger than 3 MiB", set(replace(`"data":{`, `"data":{"big":"`+string(bytes.Repeat([]byte("x"), 4<<20))+`",`)),
			ruleLimit},
		{"finalized is missing", set(replace(`,"finalized":true`, ``)), ruleFinalize},
		{"not there", func(_ *http.Request, r *webhookResponse) bool {
			r.status, r.body = http.StatusNotFound, []byte("no such page")
			return true
		}, ruleNotServed},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			o := Options{Addresses: both(serveWebhook(t, test.change)), Version: "v2"}
			if strings.Contains(test.name, "MiB") {
				o.Parent = file(t, smallParent)
			}
			report := verify(t, o)
			if diff := cmp.Diff([]string{test.want}, ids(report, Fault)); diff != "" {
				t.Errorf("faults (-want +got):\n%s\n%s", diff, text(t, report))
			}
		})
	}
}

func TestNotesOfWebhooks(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		change func(*http.Request, *webhookResponse) bool
		want   string
	}{
		{"no type", header("Content-Type", "text/plain"), ruleContentType},
		{"misspelt field", set(replace(`"status"`, `"resyncAfter":10,"status"`)), ruleUnknownField},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			report := verify(t, Options{Addresses: both(serveWebhook(t, test.change)), Version: "v1"})
			if diff := cmp.Diff([]string{test.want}, ids(report, Note)); diff != "" || report.Faults() > 0 {
				t.Errorf("notes (-want +got):\n%s\n%s", diff, text(t, report))
			}
		})
	}
}

// TestGzipQuestions has webhooks that declare that they accept gzip: one decompresses its
// questions, the others take them for JSON.
func TestGzipQuestions(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		reads  bool // the hook decompresses its questions
		status int  // of a question that it cannot read
		want   []string
	}{
		{"decompressed", true, 0, nil},
		{"taken for JSON", false, http.StatusInternalServerError, []string{ruleEncoding}},
		{"refused", false, http.StatusUnsupportedMediaType, []string{ruleEncoding}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var compressed atomic.Int64
			url := serveDecompressing(t, test.reads, &compressed, test.status)
			report := verify(t, Options{Addresses: []string{url}, Version: "v2", Parent: file(t, smallParent)})
			if diff := cmp.Diff(test.want, ids(report, Fault)); diff != "" || compressed.Load() == 0 {
				t.Errorf("%d compressed questions; faults (-want +got):\n%s\n%s", compressed.Load(), diff, text(t, report))
			}
		})
	}
}

func TestGoodWebhook(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"v1", "v2"} {
		report := verify(t, Options{Addresses: both(serveWebhook(t, nil)), Version: version})
		if len(report.Findings) > 0 || report.Questions[overWebhook] < 10 {
			t.Error(text(t, report))
		}
	}
}

// TestSlowWebhook has a webhook that answers one request at a time, also those that were cancelled.
func TestSlowWebhook(t *testing.T) {
	t.Parallel()
	var alone oneAtATime
	url := serveWebhook(t, func(request *http.Request, _ *webhookResponse) bool {
		alone.work(request.Context())
		return true
	})
	report := verify(t, Options{Addresses: []string{url}, Parent: file(t, smallParent)})
	if got := ids(report, Fault); len(got) > 0 {
		t.Errorf("faults %v, want none:\n%s", got, text(t, report))
	}
	if diff := cmp.Diff([]string{ruleCancellation}, ids(report, Note)); diff != "" {
		t.Errorf("notes (-want +got):\n%s\n%s", diff, text(t, report))
	}
}

// TestManyFaultsOfOneHook finds each fault of one bad hook by its id.
func TestManyFaultsOfOneHook(t *testing.T) {
	t.Parallel()
	asked := 0
	url := serveWebhook(t, func(request *http.Request, r *webhookResponse) bool {
		asked++
		if r.status != http.StatusOK {
			r.status = http.StatusInternalServerError
			r.body = nil
			return true
		}
		if strings.HasSuffix(string(r.body), `"finalized":true}`) {
			r.body = []byte(`{"children":[]}`)
			return true
		}
		r.body = asLatin1(throughDouble(r.body))
		r.body = bytes.Replace(r.body, []byte(`"children":[`), []byte(`"children":[
			{"kind":"ConfigMap","metadata":{"name":"a"}},
			{"apiVersion":"v1","kind":"Gadget","metadata":{"name":"b"}},
			{"apiVersion":"v1","kind":"Secret","kind":"Secret","metadata":{"name":"c"}},
			{"apiVersion":"v1","kind":"Secret","metadata":{"name":"c"}},`), 1)
		switch asked { // texts that the hook does not copy
		case 9:
			r.header.Set("Content-Encoding", "gzip")
		case 10:
			r.body = []byte("Traceback (most recent call last)")
		case 12:
			r.body = []byte(`{"error":"locked"}`)
		case 14:
			r.body = append(r.body[:len(r.body)-1], `,"resyncAfterSeconds":-1}`...)
		case 16:
			r.body = append(r.body[:len(r.body)-1], ",\"events\":[],\"x\":\"\xff\"}"...)
		}
		return true
	})
	report := verify(t, Options{Addresses: both(url), Version: "v1"})
	want := []string{
		ruleIdentity, ruleChildKind, ruleDuplicate, ruleDuplicateKey, ruleErrorAnswer, ruleErrorMessage, ruleFinalize,
		ruleInteger, ruleMalformed, ruleNotUTF8, ruleRejected, ruleText, ruleEncoding,
	}
	got := ids(report, Fault)
	for _, id := range want {
		finding(t, report, id)
	}
	if len(got) != len(want) {
		t.Errorf("got %d kinds of faults, want %d:\n%s", len(got), len(want), text(t, report))
	}
	if _, err := json.Marshal(report); err != nil {
		t.Errorf("the report is no JSON: %v", err)
	}
}

// TestWebhookAtAUnixSocket verifies the webhooks of a controller that listen on one unix socket, at
// the paths that it declares.
func TestWebhookAtAUnixSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "hook.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	var asked sync.Map
	server := &http.Server{
		ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			asked.Store(request.URL.Path, true)
			w.Header().Set("Content-Type", "application/json")
			body := webhookAnswer(request)
			if body == nil {
				w.WriteHeader(http.StatusInternalServerError)
				body = []byte(errParent.Error())
			}
			_, _ = w.Write(body) // the client may be gone
		}),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("the hook ended: %v", err)
		}
	})
	controller := edited(declaring, "url: http://hook/sync", "url: unix:///run/hooks/hook.sock\n        path: /sync")
	controller = edited(controller, "url: http://hook/finalize",
		"url: unix:///run/hooks/hook.sock\n        path: /finalize")
	report := verify(t, Options{Addresses: []string{"unix://" + path}, Files: []string{file(t, controller)}})
	if report.Faults() > 0 || report.Questions[overWebhook] < 10 {
		t.Error(text(t, report))
	}
	for _, want := range []string{"/sync", "/finalize"} {
		if _, found := asked.Load(want); !found {
			t.Errorf("no question came to %s", want)
		}
	}
}

// TestTransportOfAnotherProgram says which hook is asked instead of one whose transport this program
// does not have, or that there is none.
func TestTransportOfAnotherProgram(t *testing.T) {
	t.Parallel()
	const field = `CompositeController "demo": spec.hooks.sync.transport.name, "nats" is a transport that another ` +
		`program adds`
	controller := file(t, edited(declaring, "webhook:\n        url: http://hook/sync", "transport: {name: nats}"))
	_, err := Verify(t.Context(), Options{Files: []string{controller}})
	var usage *UsageError
	want := "--hook: is missing: " + field + "; expected the address of a webhook or a gRPC server to ask instead"
	if !errors.As(err, &usage) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	_, err = Verify(t.Context(), Options{Files: []string{controller}, Command: []string{"sleep", "60"}})
	want = `--controller: CompositeController "demo": spec.hooks.sync: transport.name: "nats" is a transport that ` +
		`another program adds; expected webhook or grpc, which this program can call at the address of the command`
	if !errors.As(err, &usage) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	address := serveWebhook(t, nil)
	report := verify(t, Options{Files: []string{controller}, Addresses: both(address)})
	want = field + ": " + address + " was asked instead"
	if !slices.Contains(report.Skipped, want) || report.Questions[overWebhook] < 10 {
		t.Errorf("got  %q\nwant %q", report.Skipped, want)
	}
	other := file(t, edited(declaring, "webhook:\n        url: http://hook/finalize", "transport: {name: nats}"))
	report = verify(t, Options{Files: []string{other}, Addresses: []string{address}})
	want = strings.ReplaceAll(field, "sync", "finalize") +
		", and finalize has no address; expected --hook finalize=ADDRESS of a webhook or a gRPC server"
	if !slices.Contains(report.Skipped, want) {
		t.Errorf("got  %q\nwant %q", report.Skipped, want)
	}
}
