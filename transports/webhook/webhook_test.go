package webhook

import (
	"compress/gzip"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/transports/transporttest"
)

func TestFieldsAreChecked(t *testing.T) {
	cases := []struct{ field, want string }{
		{`{}`, "url: is missing; expected url, or service and path"},
		{`{"url":"hello"}`, `url: "hello"; expected http://host/path`},
		{`{"url":"ftp://user:secret@host/x?secret"}`, `url: "ftp://host/x"; expected http://host/path`},
		{`{"url":"http://user:secret@host:x/"}`, "url: cannot be parsed"},
		{`{"service":{"name":"hello"}}`, `service: name is "hello" and namespace ""; expected both`},
		{`{"url":"http://a","timeout":"soon"}`, `timeout: "soon" is no duration`},
		{`{"url":"http://a","responseUnMarshallMode":"odd"}`, `responseUnMarshallMode: "odd"; expected loose or strict`},
		{`{"url":"http://a","etag":{"enabled":true,"cacheTimeoutSeconds":5}}`, "etag.cacheCleanupSeconds: is missing"},
		{`{"url":"http://a","caBundle":{"inline":"x"}}`, "caBundle.inline: has no certificate"},
	}
	for _, c := range cases {
		_, err := Open(settings("v1", c.field))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want %q", c.field, err, c.want)
		}
	}
	for field, address := range map[string]string{
		`{"service":{"name":"b","namespace":"c"},"path":"/sync"}`:                              "http://b.c:80/sync",
		`{"service":{"name":"b","namespace":"c","port":443,"protocol":"https"},"path":"sync"}`: "https://b.c:443/sync",
		`{"url":"http://user:secret@a/sync?secret#x","service":{"name":"b"},` +
			`"etag":{"enabled":false}}`: "http://a/sync",
	} {
		opened, err := Open(settings("v1", field))
		if err != nil || opened.Address != address {
			t.Errorf("%s: got %+v, %v, want address %q", field, opened, err, address)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"":                              0,
		"120":                           2 * time.Minute,
		"0":                             0,
		"-5":                            0,
		"soon":                          0,
		"99999999999999":                0,
		"Tue, 01 Jan 2030 12:00:30 GMT": 30 * time.Second,
		"Tue, 01 Jan 2030 11:00:00 GMT": 0,
	} {
		if got := retryAfter(http.Header{"Retry-After": {value}}, now); got != want {
			t.Errorf("%q: got %s, want %s", value, got, want)
		}
	}
}

// Each case is a server's response and the resulting answer or error.
func TestAnswersThatAreNone(t *testing.T) {
	cases := map[string]struct {
		serve http.HandlerFunc
		kind  hook.ErrorKind
		text  string
	}{
		"created is no success":  {status(http.StatusCreated, "{}"), hook.Failed, `status 201: "{}"`},
		"no content":             {status(http.StatusNoContent, ""), hook.Failed, "status 204"},
		"not modified unasked":   {status(http.StatusNotModified, ""), hook.Failed, "status 304"},
		"an error on two lines":  {status(http.StatusBadGateway, "one\ntwo\x00"), hook.Failed, `status 502: "one two"`},
		"throttled without time": {status(http.StatusTooManyRequests, ""), hook.Throttled, "status 429"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/other", http.StatusTemporaryRedirect)
		}, hook.Failed, "status 307"},
		"a gzip bomb":    {gzipped(20 << 20), hook.Invalid, "larger than 16777216 bytes"},
		"broken gzip":    {brokenGzip, hook.Invalid, "gzip"},
		"nothing at all": {hangUp, hook.Unreachable, "EOF"},
		"half an answer": {truncated, hook.Unreachable, "unexpected EOF"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := ask(t, "v1", string(field(serve(t, c.serve).URL, "")))
			if got.Kind != c.kind || !strings.Contains(got.Error(), c.text) || got.RetryAfter != 0 {
				t.Errorf("got %s after %s: %v; want %s, %q", got.Kind, got.RetryAfter, got, c.kind, c.text)
			}
		})
	}
}

func TestMetadataAddressesAreRefused(t *testing.T) {
	for _, url := range []string{
		"http://169.254.169.254/latest", "http://[fe80::1]/", "http://[fd00:ec2::254]/",
		"http://[::ffff:169.254.169.254]/",
	} {
		got := ask(t, "v1", string(field(url, "")))
		if got.Kind != hook.Unreachable || !strings.Contains(got.Error(), "link-local or metadata address") {
			t.Errorf("%s: got %s %v, want a refusal", url, got.Kind, got)
		}
	}
}

func TestMessagesHideCredentials(t *testing.T) {
	server := serve(t, status(http.StatusTeapot, ""))
	got := ask(t, "v1", string(field(strings.Replace(server.URL, "//", "//user:secret@", 1)+"/x?token=secret", "")))
	if want := "hook sync " + server.URL + "/x: status 418"; got.Error() != want {
		t.Errorf("got %q, want %q", got, want)
	}
	got = ask(t, "v1", string(field("http://user:secret@"+transporttest.ClosedAddress(t)+"/x?token=secret", "")))
	if strings.Contains(got.Error(), "secret") {
		t.Errorf("got %q, want no credentials in it", got)
	}
}

func TestTheBundleDecidesWhoIsTrusted(t *testing.T) {
	server := httptest.NewTLSServer(status(http.StatusTeapot, ""))
	server.Config.ErrorLog = nil
	t.Cleanup(server.Close)
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if got := ask(
		t,
		"v1",
		fmt.Sprintf(`{"url":%q,"caBundle":{"inline":%q}}`, server.URL, bundle),
	); got.Kind != hook.Failed {
		t.Errorf("trusted: got %s %v, want %s, because the call arrives", got.Kind, got, hook.Failed)
	}
	if got := ask(t, "v1", fmt.Sprintf(`{"url":%q}`, server.URL)); got.Kind != hook.Unreachable {
		t.Errorf("not trusted: got %s %v, want %s", got.Kind, got, hook.Unreachable)
	}
}

func settings(version, field string) hook.Config {
	return hook.Config{
		ControllerKind: "CompositeController",
		ControllerName: "hello",
		Op:             hook.Sync,
		Version:        version,
		Field:          json.RawMessage(field),
	}
}

// ask sends one question and returns the error.
func ask(t *testing.T, version, field string) *hook.Error {
	t.Helper()
	opened, err := Open(settings(version, field))
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close() //nolint:errcheck // it has no error
	_, err = opened.Ask(t.Context(), observed(t))
	got, ok := err.(*hook.Error) //nolint:errorlint // the port returns the type itself
	if !ok {
		t.Fatalf("got %v, want a *hook.Error", err)
	}
	return got
}

func status(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

func gzipped(size int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		defer z.Close() //nolint:errcheck // the client may have gone
		_, _ = z.Write([]byte(`{"status":{"x":"` + strings.Repeat("x", size) + `"}}`))
	}
}

func brokenGzip(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Encoding", "gzip")
	_, _ = io.WriteString(w, "this is not compressed at all")
}

func hangUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func truncated(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "100")
	_, _ = io.WriteString(w, "{")
}
