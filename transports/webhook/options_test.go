package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/transports/internal/endpoint"
	"github.com/hookloop/hookloop/transports/transporttest"
	clocktesting "k8s.io/utils/clock/testing"
)

// TestRotatingCredentials replaces certificates and tokens while a hook runs.
func TestRotatingCredentials(t *testing.T) {
	for _, protocol := range []string{"http/1.1", "h2"} {
		t.Run(protocol, func(t *testing.T) {
			transporttest.RunCredentials(t, Open, func(t *testing.T, g *transporttest.Guarded) json.RawMessage {
				server := httptest.NewUnstartedServer(guard(g.Admits))
				_ = server.Listener.Close() // the guarded one takes its place
				server.Listener, server.TLS, server.EnableHTTP2 = g, g.TLS(protocol), true
				server.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that are to fail
				server.StartTLS()
				t.Cleanup(server.Close)
				return field("https://"+g.Addr().String(), "")
			})
		})
	}
}

// guard returns an empty answer if the header Authorization is accepted.
func guard(admits func(string) bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !admits(r.Header.Get("Authorization")) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, "{}") // an error of the connection is the caller's
	}
}

// TestEndpointConfigs applies the fields of a host's entry to a hook without fields of its own.
func TestEndpointConfigs(t *testing.T) {
	vault := &transporttest.Vault{Annotations: map[string]string{endpoint.AllowedHostsAnnotation: "127.0.0.1"}}
	vault.Put("Secret/hooks/token", map[string]string{"token": "one"})
	server := serve(t, guard(func(authorization string) bool { return authorization == "Bearer one" }))
	configs := fmt.Sprintf(`[{"host":%q,"authorization":{"secretRef":{"name":"token","namespace":"hooks"}}}]`,
		strings.TrimPrefix(server.URL, "http://"))
	for own, want := range map[string]string{
		"": "<nil>",
		`,"basicAuth":{"secretRef":{"name":"none","namespace":"hooks"}}`: "hook sync " + server.URL +
			": basicAuth.secretRef: there is no Secret hooks/none that may be sent to ",
	} {
		s := settings("v1", fmt.Sprintf(`{"url":%q%s}`, server.URL, own))
		s.Lookup, s.EndpointConfigs = vault.Lookup, json.RawMessage(configs)
		opened, err := Open(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := opened.Ask(t.Context(), observed(t)); !strings.HasPrefix(fmt.Sprint(err), want) {
			t.Errorf("%s: %v, want %s", own, err, want)
		}
		_ = opened.Close()
	}
}

// tagging is a hook that answers with an ETag, and with 304 to a request that has the same ETag.
type tagging struct {
	mu   sync.Mutex // guards the fields below
	tag  string
	body string
	code int
	seen []string
}

func (h *tagging) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	given := r.Header.Get("If-None-Match")
	h.seen = append(h.seen, given)
	if given == h.tag && h.tag != "" {
		w.WriteHeader(h.code)
		return
	}
	if h.tag != "" {
		w.Header().Set("ETag", h.tag)
	}
	_, _ = io.WriteString(w, h.body) // an error of the connection is the caller's
}

// TestEtag checks the answers about two parents.
func TestEtag(t *testing.T) {
	for _, code := range []int{http.StatusNotModified, http.StatusPreconditionFailed} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			h := &tagging{tag: `"1"`, body: `{"status":{"n":1}}`, code: code}
			clock := clocktesting.NewFakePassiveClock(time.Now())
			s := settings(
				"v1",
				fmt.Sprintf(
					`{"url":%q,"etag":{"enabled":true,"cacheTimeoutSeconds":60,"cacheCleanupSeconds":10}}`,
					serve(t, h).URL,
				),
			)
			s.Clock = clock
			opened, err := Open(s)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = opened.Close() })
			first := observed(t)
			second := observed(t)
			second.Parent = named(t, first.Parent, "other")
			check := func(q *hook.Question, given, want string) {
				t.Helper()
				h.seen = nil
				answer, err := opened.Ask(context.Background(), q)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff([]string{given}, h.seen); diff != "" || string(answer.Status) != want {
					t.Errorf("status %s, want %s; asked with (-want +got):\n%s", answer.Status, want, diff)
				}
			}
			check(first, "", `{"n":1}`)
			check(first, `"1"`, `{"n":1}`)
			check(second, "", `{"n":1}`)
			h.tag = `"2"`
			h.body = `{"status":{"n":2}}`
			check(first, `"1"`, `{"n":2}`)
			check(first, `"2"`, `{"n":2}`)
			check(second, `"1"`, `{"n":2}`)
			clock.SetTime(clock.Now().Add(time.Minute))
			check(first, "", `{"n":2}`)
			h.tag = ""
			check(first, `"2"`, `{"n":2}`)
			check(first, "", `{"n":2}`)
		})
	}
}

// TestRefusedEtag drops a tag after a conditional request has failed, and does not cache a long
// one: a hook or a proxy that refuses the header would refuse it for ever.
func TestRefusedEtag(t *testing.T) {
	long := strings.Repeat("x", maxTagBytes-1)
	for name, c := range map[string]struct {
		tag    string
		status int
		want   []bool // whether each request is conditional
	}{
		"refused by 431":        {long, http.StatusRequestHeaderFieldsTooLarge, []bool{false, true, false, true}},
		"refused by 400":        {"a", http.StatusBadRequest, []bool{false, true, false, true}},
		"refused by a proxy":    {"a", http.StatusBadGateway, []bool{false, true, false, true}},
		"confirmed by 304":      {long, http.StatusNotModified, []bool{false, true, true, true}},
		"confirmed by 412":      {long, http.StatusPreconditionFailed, []bool{false, true, true, true}},
		"replaced by 200":       {long, http.StatusOK, []bool{false, true, true, true}},
		"too long to be cached": {long + "xx", http.StatusNotModified, []bool{false, false, false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			var conditional []bool
			server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				has := r.Header.Get("If-None-Match") != ""
				conditional = append(conditional, has)
				w.Header().Set("ETag", c.tag)
				if has && c.status != http.StatusOK {
					w.WriteHeader(c.status)
					return
				}
				_, _ = io.WriteString(w, `{"status":{"n":1}}`) // an error of the connection is the caller's
			}))
			opened, err := Open(settings("v1", fmt.Sprintf(`{"url":%q,"etag":{"enabled":true}}`, server.URL)))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = opened.Close() })
			for i, has := range c.want {
				_, err := opened.Ask(t.Context(), observed(t))
				fails := has && !slices.Contains([]int{200, 304, 412}, c.status)
				if (err != nil) != fails {
					t.Errorf("request %d: %v", i, err)
				}
			}
			if diff := cmp.Diff(c.want, conditional); diff != "" {
				t.Errorf("conditional requests (-want +got):\n%s", diff)
			}
		})
	}
}

// named returns a parent of the same name with another UID.
func named(t *testing.T, parent *object.Object, uid string) *object.Object {
	t.Helper()
	m, err := parent.Map()
	if err != nil {
		t.Fatal(err)
	}
	m["metadata"].(map[string]any)["uid"] = uid
	o, err := object.FromMap(m)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestETagCacheIsBounded evicts the oldest answers.
func TestETagCacheIsBounded(t *testing.T) {
	k, err := newETagCache(&etag{Enabled: true}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{"Etag": {`"1"`}}
	first := observed(t)
	second := observed(t)
	second.Parent = named(t, first.Parent, "other")
	const half = maxCachedBytes/2 - 2*entryBytes
	k.put(first, header, make([]byte, half))
	k.put(second, header, make([]byte, half))
	if k.get(first).tag == "" || k.get(second).tag == "" {
		t.Error("what there is room for is not kept")
	}
	k.put(second, header, make([]byte, maxCachedBytes/2+entryBytes))
	if k.get(first).tag != "" || k.get(second).tag == "" {
		t.Errorf("%d bytes are kept, of the wrong parent", k.bytes)
	}
	k.put(second, header, make([]byte, maxCachedBytes))
	if k.bytes != 0 || k.order.Len() != 0 {
		t.Errorf("%d bytes are kept of nothing", k.bytes)
	}
}

// TestSmallAnswersAreBoundedToo counts the memory of an entry beside its body.
func TestSmallAnswersAreBoundedToo(t *testing.T) {
	k, err := newETagCache(&etag{Enabled: true}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	tag := strings.Repeat("x", maxTagBytes)
	const parents = 100
	q := observed(t)
	for i := range parents {
		q.Parent = named(t, q.Parent, fmt.Sprint(i))
		k.put(q, http.Header{"Etag": {tag}}, []byte("{}"))
	}
	if want := parents * (entryBytes + maxTagBytes); len(k.answers) != parents || k.bytes < want {
		t.Errorf("%d answers of %d parents count as %d bytes, want at least %d", len(k.answers), parents, k.bytes, want)
	}
}

// TestETagCacheExpires removes expired entries, also of parents that get no more questions.
func TestETagCacheExpires(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	timeout := int32(60)
	cleanup := int32(100)
	k, err := newETagCache(&etag{Enabled: true, TimeoutSeconds: &timeout, CleanupSeconds: &cleanup}, clock, nil)
	if err != nil {
		t.Fatal(err)
	}
	first := observed(t)
	second := observed(t)
	second.Parent = named(t, first.Parent, "other")
	for _, step := range []struct {
		after time.Duration
		put   *hook.Question
		want  int
	}{
		{0, first, 1},
		{50 * time.Second, second, 2},
		{49 * time.Second, nil, 2},
		{time.Second, nil, 1},
		{100 * time.Second, nil, 0},
	} {
		clock.SetTime(clock.Now().Add(step.after))
		if step.put != nil {
			k.put(step.put, http.Header{"Etag": {"1"}}, []byte("{}"))
		}
		k.get(second)
		if got := len(k.answers); got != step.want {
			t.Errorf("%s later %d answers are kept, want %d", step.after, got, step.want)
		}
	}
	if k.bytes != 0 {
		t.Errorf("%d bytes are kept of nothing", k.bytes)
	}
}

// TestSecretsGoToTheirService sends a Secret to a Service in the same namespace, also over plain
// http, by its full name. Other hosts get no Secret, in any spelling.
func TestSecretsGoToTheirService(t *testing.T) {
	vault := &transporttest.Vault{}
	vault.Put("Secret/hooks/token", map[string]string{"token": "secret"})
	ask := func(url string) error {
		s := settings("v1",
			fmt.Sprintf(`{%s,"timeout":"1s","authorization":{"secretRef":{"name":"token","namespace":"hooks"}}}`, url))
		s.Lookup = vault.Lookup
		opened, err := Open(s)
		if err != nil {
			t.Fatal(err)
		}
		defer opened.Close() //nolint:errcheck // it has no error
		_, err = opened.Ask(t.Context(), observed(t))
		return err
	}
	for _, url := range []string{
		`"url":"http://web.hooks/x"`, `"url":"http://user:x@WEB.hooks.svc:80"`,
		`"service":{"name":"web","namespace":"hooks"}`,
		`"url":"https://web.hooks.svc.cluster.local"`,
	} {
		if err := ask(url); hook.ErrorKindOf(err) == "" ||
			!strings.Contains(err.Error(), "web.hooks.svc.cluster.local") && !strings.Contains(err.Error(), "no answer within") {
			t.Errorf("%s: got %v, want that the whole name is resolved", url, err)
		}
	}
	server := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a foreign host was asked") }))
	for _, url := range []string{
		fmt.Sprintf(`"url":%q`, server.URL), `"url":"http://web.hooks.@` + strings.TrimPrefix(server.URL, "http://") + `"`,
		`"service":{"name":"web","namespace":"shop"}`, `"url":"http://web.hooks./"`,
		`"url":"https://web.hooks.evil.example.com"`,
	} {
		var failure *hook.Error
		if err := ask(url); !errors.As(err, &failure) || failure.Reason != "HookCredentials" ||
			strings.Contains(err.Error(), "secret\n") ||
			!strings.Contains(err.Error(), "expected a Service in namespace hooks") {
			t.Errorf("%s: got %v, want a refusal that names the rule", url, err)
		}
	}
}
