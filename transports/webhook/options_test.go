package webhook

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/transports/transporttest"
	clocktesting "k8s.io/utils/clock/testing"
)

// guarded is a hook behind TLS that wants to know who asks. Both sides' certificates and the token can be replaced while it runs.
type guarded struct {
	server *httptest.Server

	mu       sync.Mutex // guards what follows
	settings *tls.Config
	token    string
	asked    int
}

func newGuarded(t *testing.T) *guarded {
	t.Helper()
	g := &guarded{}
	g.server = httptest.NewUnstartedServer(g)
	g.server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.settings, nil
	}}
	g.server.Config.ErrorLog = nil
	return g
}

func (g *guarded) set(settings *tls.Config, token string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.settings, g.token = settings, token
}

func (g *guarded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked++
	if r.Header.Get("Authorization") != "Bearer "+g.token {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	_, _ = io.WriteString(w, "{}") // a caller that has gone is its own affair
}

// TestRotatingCredentials replaces the hook's certificate, the engine's own and the token, one after the other. Each is taken up without a
// restart, at the call that is refused for the old one.
func TestRotatingCredentials(t *testing.T) {
	vault, clock := &transporttest.Vault{}, clocktesting.NewFakePassiveClock(time.Now())
	hooks, engines := transporttest.NewAuthority(t), transporttest.NewAuthority(t)
	identify := func(a *transporttest.Authority) {
		certificate, key := a.Issue("hookloop")
		vault.Put("Secret/hooks/engine", map[string]string{"tls.crt": string(certificate), "tls.key": string(key)})
	}
	trust := func(a *transporttest.Authority) {
		vault.Put("ConfigMap/hooks/ca", map[string]string{"ca.crt": string(a.PEM)})
	}
	g := newGuarded(t)
	g.set(hooks.Server(engines), "one")
	g.server.StartTLS()
	t.Cleanup(g.server.Close)
	s := settings("v1", fmt.Sprintf(`{"url":%q,"caBundle":{"configMapRef":{"name":"ca","namespace":"hooks"}},
		"clientTLS":{"secretRef":{"name":"engine","namespace":"hooks"}},"authorization":{"secretRef":{"name":"token","namespace":"hooks"}}}`, g.server.URL))
	s.Lookup, s.Clock = vault.Lookup, clock
	opened, err := Open(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close() })
	check := func(when string, want string) {
		t.Helper()
		_, err := opened.Ask(t.Context(), observed(t))
		if got := fmt.Sprint(err); !strings.Contains(got, want) {
			t.Errorf("%s: %v, want %s", when, err, want)
		}
		clock.SetTime(clock.Now().Add(10 * time.Second))
		g.server.CloseClientConnections()
	}
	check("nothing is there", "caBundle.configMapRef: there is no ConfigMap hooks/ca")
	trust(hooks)
	identify(engines)
	vault.Put("Secret/hooks/token", map[string]string{"token": "one"})
	check("at first", "<nil>")
	g.set(hooks.Server(engines), "two")
	check("the token is not known", "status 401")
	vault.Put("Secret/hooks/token", map[string]string{"token": "two"})
	check("the token is replaced", "<nil>")
	hooks = transporttest.NewAuthority(t)
	g.set(hooks.Server(engines), "two")
	check("the hook's authority is not known", "certificate")
	trust(hooks)
	check("the hook's authority is replaced", "<nil>")
	engines = transporttest.NewAuthority(t)
	g.set(hooks.Server(engines), "two")
	check("the engine's authority is not known", "remote error: tls")
	identify(engines)
	check("the engine's certificate is replaced", "<nil>")
}

// TestEndpointConfigs has a hook without fields of its own use those of its host.
func TestEndpointConfigs(t *testing.T) {
	vault := &transporttest.Vault{}
	vault.Put("Secret/hooks/token", map[string]string{"token": "one"})
	g := newGuarded(t)
	g.set(nil, "one")
	g.server.Start()
	t.Cleanup(g.server.Close)
	configs := fmt.Sprintf(`[{"host":%q,"authorization":{"secretRef":{"name":"token","namespace":"hooks"}}}]`, strings.TrimPrefix(g.server.URL, "http://"))
	for own, want := range map[string]string{
		"": "<nil>",
		`,"basicAuth":{"secretRef":{"name":"none","namespace":"hooks"}}`: "hook sync " + g.server.URL + ": basicAuth.secretRef: there is no Secret hooks/none",
	} {
		s := settings("v1", fmt.Sprintf(`{"url":%q%s}`, g.server.URL, own))
		s.Lookup, s.EndpointConfigs = vault.Lookup, json.RawMessage(configs)
		opened, err := Open(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := opened.Ask(t.Context(), observed(t)); fmt.Sprint(err) != want {
			t.Errorf("%s: %v, want %s", own, err, want)
		}
		_ = opened.Close()
	}
}

// tagging is a hook that answers with an ETag, and that nothing has changed when it is told the same one.
type tagging struct {
	mu   sync.Mutex // guards what follows
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
	_, _ = io.WriteString(w, h.body) // a caller that has gone is its own affair
}

// TestEtag follows the answers about two parents.
func TestEtag(t *testing.T) {
	for _, code := range []int{http.StatusNotModified, http.StatusPreconditionFailed} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			h := &tagging{tag: `"1"`, body: `{"status":{"n":1}}`, code: code}
			clock := clocktesting.NewFakePassiveClock(time.Now())
			s := settings("v1", fmt.Sprintf(`{"url":%q,"etag":{"enabled":true,"cacheTimeoutSeconds":60,"cacheCleanupSeconds":10}}`, serve(t, h).URL))
			s.Clock = clock
			opened, err := Open(s)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = opened.Close() })
			first, second := observed(t), observed(t)
			second.Parent = other(t, first.Parent)
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
			h.tag, h.body = `"2"`, `{"status":{"n":2}}`
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

// other is a parent of the same name in another life.
func other(t *testing.T, parent *object.Object) *object.Object {
	t.Helper()
	m, err := parent.Map()
	if err != nil {
		t.Fatal(err)
	}
	m["metadata"].(map[string]any)["uid"] = "other"
	o, err := object.FromMap(m)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestKeptIsBounded drops the answers that were kept longest.
func TestKeptIsBounded(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	k, err := newKept(&etag{Enabled: true}, clock)
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{"Etag": {`"1"`}}
	first, second := observed(t), observed(t)
	second.Parent = other(t, first.Parent)
	k.put(first, header, make([]byte, maxKept/2))
	clock.SetTime(clock.Now().Add(time.Second))
	k.put(second, header, make([]byte, maxKept/2))
	if k.get(first).tag == "" || k.get(second).tag == "" {
		t.Error("what there is room for is not kept")
	}
	k.put(second, header, make([]byte, maxKept/2+1))
	if k.get(first).tag != "" || k.get(second).tag == "" || k.bytes != maxKept/2+1 {
		t.Errorf("%d bytes are kept, of the wrong parent", k.bytes)
	}
	k.put(second, header, make([]byte, maxKept+1))
	if k.bytes != 0 {
		t.Errorf("%d bytes are kept of nothing", k.bytes)
	}
}
