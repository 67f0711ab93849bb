package transporttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/internal/protocol/tlstest"
	"github.com/hookloop/hookloop/transports/internal/endpoint"
	clocktesting "k8s.io/utils/clock/testing"
)

// security is the hook's spec in the cases of credentials.
const security = `{"caBundle":{"configMapRef":{"name":"ca","namespace":"hooks"}},
	"clientTLS":{"secretRef":{"name":"engine","namespace":"hooks"}},
	"authorization":{"secretRef":{"name":"token","namespace":"hooks"}}}`

// secured is a hook behind TLS, with certificates and a token from a Vault.
type secured struct {
	*Guarded
	t      *testing.T
	vault  *Vault
	clock  *clocktesting.FakePassiveClock
	opened hook.Hook
}

// RunCredentials runs the cases with certificates and tokens that come from the cluster and rotate.
// serve starts a hook until the test ends, and returns the field of the spec that opens it, without
// TLS and credentials.
func RunCredentials(t *testing.T, open hook.Opener, serve func(*testing.T, *Guarded) json.RawMessage) {
	for name, run := range map[string]func(*secured){
		"each rotation is taken up by the call that is refused": (*secured).rotates,
		"calls that are refused together are all made again":    (*secured).rotatesForAll,
		"missing and invalid objects are reported, and recover": (*secured).needsObjects,
	} {
		t.Run(name, func(t *testing.T) {
			s := &secured{
				t:       t,
				Guarded: newGuarded(t),
				vault:   &Vault{Annotations: map[string]string{endpoint.AllowedHostsAnnotation: "127.0.0.1"}},
				clock:   clocktesting.NewFakePassiveClock(time.Now()),
			}
			s.opened = (&Harness{Open: func(settings hook.Config) (*hook.Opened, error) {
				settings.Lookup = s.vault.Lookup
				settings.Clock = s.clock
				return open(settings)
			}}).open(t, hook.Sync, with(t, serve(t, s.Guarded), security))
			run(s)
		})
	}
}

// with adds fields to those of a JSON object.
func with(t *testing.T, object json.RawMessage, more string) json.RawMessage {
	t.Helper()
	fields := map[string]json.RawMessage{}
	if err := errors.Join(json.Unmarshal(object, &fields), json.Unmarshal([]byte(more), &fields)); err != nil {
		t.Fatal(err)
	}
	merged, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return merged
}

// trust stores the authority of the hook's certificate in the cluster.
func (s *secured) trust(a *tlstest.Authority) {
	s.vault.Put("ConfigMap/hooks/ca", map[string]string{"ca.crt": string(a.PEM)})
}

// identify stores a certificate for the engine in the cluster.
func (s *secured) identify(a *tlstest.Authority) {
	certificate, key := a.Issue("hookloop")
	s.vault.Put("Secret/hooks/engine", map[string]string{"tls.crt": string(certificate), "tls.key": string(key)})
}

// token stores a token in the cluster.
func (s *secured) token(token string) {
	s.vault.Put("Secret/hooks/token", map[string]string{"token": token})
}

// settled sets up mutual trust of hook and engine.
func (s *secured) settled() {
	s.t.Helper()
	authority := tlstest.NewAuthority(s.t)
	s.trust(authority)
	s.identify(authority)
	s.token("one")
	s.only("one")
	s.restart(authority.Server(authority))
	s.answers("at first")
}

// ask makes one call, and lets some time pass, less than the cached credentials are valid for.
func (s *secured) ask() error {
	s.t.Helper()
	_, err := s.opened.Ask(s.t.Context(), question(s.t, hook.Composite, hook.Sync, "hi"))
	s.clock.SetTime(s.clock.Now().Add(10 * time.Second))
	return err
}

func (s *secured) answers(when string) {
	s.t.Helper()
	if err := s.ask(); err != nil {
		s.t.Errorf("%s: %v, want an answer", when, err)
	}
}

func (s *secured) refuses(when string, kind hook.ErrorKind) {
	s.t.Helper()
	if err := s.ask(); hook.ErrorKindOf(err) != kind {
		s.t.Errorf("%s: %v, want an error of kind %s", when, err, kind)
	}
}

// checkNotCalled checks that the hook got no call, and the reason.
func (s *secured) checkNotCalled(when, want string) {
	s.t.Helper()
	err := s.ask()
	var failure *hook.Error
	if !errors.As(err, &failure) || failure.Reason != "HookCredentials" || !strings.Contains(err.Error(), want) {
		s.t.Errorf("%s: %v, want the reason HookCredentials and %q", when, err, want)
	}
}

// rotates replaces the token, the hook's authority and the engine's, one after the other, first in
// the hook and then in the cluster.
func (s *secured) rotates() {
	s.settled()
	s.only("two")
	s.refuses("the token is not known", hook.Failed)
	s.token("two")
	s.answers("the token is replaced")

	hooks := tlstest.NewAuthority(s.t)
	engines := tlstest.NewAuthority(s.t)
	s.restart(hooks.Server(nil))
	s.refuses("the hook's authority is not trusted", hook.Unreachable)
	s.trust(hooks)
	s.answers("the hook's authority is replaced")
	s.restart(hooks.Server(engines))
	s.refuses("the engine's authority is not trusted", hook.Unreachable)
	s.identify(engines)
	s.answers("the engine's certificate is replaced")
}

// rotatesForAll replaces the token during calls: none of them fails because another one caused a
// new read of it.
func (s *secured) rotatesForAll() {
	const calls = 20
	s.settled()
	var arrived, answered sync.WaitGroup
	arrived.Add(calls)
	s.mu.Lock()
	s.admit = func(authorization string) bool {
		if authorization == "Bearer one" {
			arrived.Done()
			arrived.Wait()
		}
		return authorization == "Bearer two"
	}
	s.mu.Unlock()
	s.token("two")
	before := s.vault.Reads()
	for i := range calls {
		q := question(s.t, hook.Composite, hook.Sync, fmt.Sprintf("parent-%d", i))
		answered.Go(func() {
			if _, err := s.opened.Ask(s.t.Context(), q); err != nil {
				s.t.Errorf("%s: %v, want an answer", q.Parent.Name(), err)
			}
		})
	}
	answered.Wait()
	if reads := s.vault.Reads() - before; reads != 3 {
		s.t.Errorf("%d objects were read, want each of the 3 once", reads)
	}
}

// needsObjects removes from the cluster the objects that calls need.
func (s *secured) needsObjects() {
	s.checkNotCalled("nothing is there", "caBundle.configMapRef: there is no ConfigMap hooks/ca")
	s.settled()
	s.only("two")
	s.vault.Delete("Secret/hooks/token")
	s.checkNotCalled("the token is gone when it is refused", "authorization.secretRef: there is no Secret hooks/token")
	s.token("two")
	s.answers("it is back")
	s.vault.Put("Secret/hooks/engine", map[string]string{"tls.crt": "spoilt", "tls.key": "spoilt"})
	s.clock.SetTime(s.clock.Now().Add(time.Hour))
	s.checkNotCalled("the certificate is spoilt", "clientTLS: Secret hooks/engine holds no certificate with its key")
}
