package endpoint_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/internal/protocol/tlstest"
	"github.com/hookloop/hookloop/transports/internal/endpoint"
	"github.com/hookloop/hookloop/transports/transporttest"
	clocktesting "k8s.io/utils/clock/testing"
)

const (
	byToken = `{"authorization":{"secretRef":{"name":"token","namespace":"hooks"}}}`
	byName  = `{"basicAuth":{"secretRef":{"name":"user","namespace":"hooks"}}}`
)

// beside is a Service in the namespace of the tests' Secrets.
var beside = endpoint.Destination{Hosts: []string{"web.hooks.svc:443"}}

// keyring returns a Keyring of a spec's fields, with a fake clock.
func keyring(
	t *testing.T,
	fields string,
	v *transporttest.Vault,
) (*endpoint.Keyring, *clocktesting.FakePassiveClock, error) {
	t.Helper()
	var s endpoint.Security
	if err := json.Unmarshal([]byte(fields), &s); err != nil {
		t.Fatal(err)
	}
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	k, err := endpoint.NewKeyring(s, "", "", beside, hook.Config{Lookup: v.Lookup, Clock: clock})
	return k, clock, err
}

func current(t *testing.T, k *endpoint.Keyring) *endpoint.Material {
	t.Helper()
	m, err := k.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestHeaders(t *testing.T) {
	v := &transporttest.Vault{}
	v.Put("Secret/hooks/token", map[string]string{"token": "abc\n", "other": "def"})
	v.Put("Secret/hooks/user", map[string]string{"username": "me", "password": "pass:word"})
	for fields, want := range map[string]string{
		`{}`:    "",
		byToken: "Bearer abc",
		`{"authorization":{"type":"Token","secretRef":{"name":"token","namespace":"hooks","key":"other"}}}`: "" +
			"Token def",
		byName: "Basic bWU6cGFzczp3b3Jk",
	} {
		k, _, err := keyring(t, fields, v)
		if err != nil {
			t.Fatal(err)
		}
		if got := current(t, k).Header; got != want {
			t.Errorf("%s: %q, want %q", fields, got, want)
		}
	}
}

// TestWhatIsWrongIsNamed checks that each error names the field, the object and the key, and no
// value.
func TestWhatIsWrongIsNamed(t *testing.T) {
	v := &transporttest.Vault{}
	v.Put("Secret/hooks/user", map[string]string{"username": "secret:user", "password": "secret"})
	v.Put("Secret/hooks/token", map[string]string{"other": "secret", "lines": "secret\nsecret", "blank": "\n"})
	v.Put("ConfigMap/hooks/ca", map[string]string{"ca.crt": "secret"})
	v.Put("Secret/hooks/pair", map[string]string{"tls.crt": "secret", "tls.key": "secret"})
	for fields, want := range map[string]string{
		byToken: "authorization.secretRef: Secret hooks/token has no key token",
		`{"authorization":{"secretRef":{"name":"token","namespace":"hooks","key":"lines"}}}`: "" +
			"authorization.secretRef: key lines of Secret hooks/token is empty or has control characters",
		`{"authorization":{"secretRef":{"name":"token","namespace":"hooks","key":"blank"}}}`: "" +
			"authorization.secretRef: key blank of Secret hooks/token is empty",
		`{"authorization":{"secretRef":{"name":"none","namespace":"hooks"}}}`: "" +
			"authorization.secretRef: there is no Secret hooks/none",
		`{"authorization":{"type":"basic","secretRef":{"name":"token","namespace":"hooks"}}}`: "" +
			"authorization.type: is \"basic\"; use basicAuth",
		byName: "basicAuth.usernameKey: the user name has a colon",
		`{"caBundle":{"configMapRef":{"name":"ca","namespace":"hooks"}}}`: "" +
			"caBundle.configMapRef: has no certificate",
		`{"caBundle":{"secretRef":{"name":"ca","namespace":"hooks"}}}`: "" +
			"caBundle.secretRef: there is no Secret hooks/ca",
		`{"clientTLS":{"secretRef":{"name":"pair","namespace":"hooks"}}}`: "" +
			"clientTLS: Secret hooks/pair holds no certificate with its key",
	} {
		k, _, err := keyring(t, fields, v)
		if err != nil {
			t.Fatalf("%s: %v", fields, err)
		}
		_, err = k.Current(t.Context())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", fields, err, want)
		}
		if err != nil && strings.Contains(strings.ReplaceAll(err.Error(), "secretRef", ""), "secret") {
			t.Errorf("%s: the error tells a value: %v", fields, err)
		}
	}
	if _, _, err := keyring(
		t,
		`{"caBundle":{"inline":"none"}}`,
		v,
	); err == nil ||
		!strings.Contains(err.Error(), "caBundle.inline: has no certificate") {
		t.Errorf("inline: error %v", err)
	}
}

// TestRotation reads again after the lifetime, or earlier after a refused call. It continues with
// the last values while reads fail.
func TestRotation(t *testing.T) {
	v := &transporttest.Vault{}
	put := func(token string) { v.Put("Secret/hooks/token", map[string]string{"token": token}) }
	put("one")
	k, clock, err := keyring(t, byToken, v)
	if err != nil {
		t.Fatal(err)
	}
	wait := func(d time.Duration) { clock.SetTime(clock.Now().Add(d)) }
	check := func(when, want string, reads int) {
		t.Helper()
		if got := current(t, k).Header; got != "Bearer "+want || v.Reads() != reads {
			t.Errorf("%s: %q after %d reads, want %q after %d", when, got, v.Reads(), want, reads)
		}
	}
	renewed := func(when string, used *endpoint.Material) {
		t.Helper()
		if changed, err := k.Renew(t.Context(), used); err != nil || !changed {
			t.Errorf("%s: Renew = %v, %v, want another material", when, changed, err)
		}
	}
	unchanged := func(when string, used *endpoint.Material) {
		t.Helper()
		if changed, err := k.Renew(t.Context(), used); err != nil || changed {
			t.Errorf("%s: Renew = %v, %v, want the same material", when, changed, err)
		}
	}
	check("at first", "one", 1)
	first := current(t, k)
	unchanged("refused, and nothing has changed", first)
	check("a refusal brings a reading at once", "one", 2)
	put("two")
	wait(endpoint.Lifetime - 1)
	check("within the lifetime", "one", 2)
	renewed("refused, and it has changed", first)
	check("after a refusal", "two", 3)
	renewed("another call was refused for the same", first)
	unchanged("refused a moment later", current(t, k))
	check("neither brings a reading", "two", 3)
	put("three")
	wait(endpoint.Lifetime)
	check("after the lifetime", "three", 4)
	v.Fail(errors.New("the API server is down"))
	wait(endpoint.Lifetime)
	check("while the API server is down", "three", 5)
	v.Fail(nil)
	v.Delete("Secret/hooks/token")
	wait(endpoint.Lifetime)
	for range 2 {
		if _, err := k.Current(t.Context()); err == nil {
			t.Error("a Secret that is gone still counts")
		}
	}
	put("four")
	wait(time.Second)
	check("it is back, after one reading without it", "four", 7)
	put("fo\nur")
	wait(endpoint.Lifetime)
	if _, err := k.Current(t.Context()); err == nil {
		t.Error("what cannot be used is passed over")
	}
}

// TestOneVersion replaces a certificate and its key between two reads. They are never mixed.
func TestOneVersion(t *testing.T) {
	authority := tlstest.NewAuthority(t)
	v := &transporttest.Vault{}
	issue := func() {
		certificate, key := authority.Issue("hookloop")
		v.Put("Secret/hooks/pair", map[string]string{"tls.crt": string(certificate), "tls.key": string(key)})
	}
	issue()
	rotating := func(ctx context.Context, kind, namespace, name string) (*hook.Source, error) {
		defer issue()
		return v.Lookup(ctx, kind, namespace, name)
	}
	s := endpoint.Security{ClientTLS: &endpoint.ClientTLS{SecretRef: endpoint.Reference{Name: "pair", Namespace: "hooks"}}}
	k, err := endpoint.NewKeyring(s, "", "", beside, hook.Config{Lookup: rotating})
	if err != nil {
		t.Fatal(err)
	}
	current(t, k)
}

// TestWhoGivesUpIsNoFault cancels a call during a read. The failure is not cached for others.
func TestWhoGivesUpIsNoFault(t *testing.T) {
	v := &transporttest.Vault{}
	v.Put("Secret/hooks/token", map[string]string{"token": "one"})
	k, _, err := keyring(t, byToken, v)
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	v.Fail(context.Canceled)
	if _, err := k.Current(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that the call was given up", err)
	}
	v.Fail(nil)
	current(t, k)
}

func TestChoose(t *testing.T) {
	const entries = `[{"host":"Other.test"},{"host":"HOOKS.test:8443","basicAuth":{}},` +
		`{"host":"hooks.test","basicAuth":{}},{"host":"[::1]:443","basicAuth":{}}]`
	tests := []struct{ name, own, host, want string }{
		{"own fields switch it off", `{"basicAuth":{}}`, "hooks.test:8443", ""},
		{"by host and port, without case", `{}`, "hooks.TEST:8443", "endpointConfigs[1]."},
		{"a missing port is the default", `{}`, "hooks.test", "endpointConfigs[2]."},
		{"the default port is none", `{}`, "hooks.test:443", "endpointConfigs[2]."},
		{"another port", `{}`, "hooks.test:80", ""},
		{"IPv6", `{}`, "[::1]", "endpointConfigs[3]."},
		{"none", `{}`, "none.test", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var own endpoint.Security
			if err := json.Unmarshal([]byte(test.own), &own); err != nil {
				t.Fatal(err)
			}
			_, at, err := endpoint.Choose(own, json.RawMessage(entries), test.host, "443")
			if err != nil || at != test.want {
				t.Errorf("chosen %q, %v, want %q", at, err, test.want)
			}
		})
	}
}

// TestSecretsStayWhereTheyMayGo refuses each kind of credentials for a foreign address, with the
// same error whether or not the Secret exists, until its owner allows the address. A CA bundle,
// which is not sent, is not restricted.
func TestSecretsStayWhereTheyMayGo(t *testing.T) {
	foreign := endpoint.Destination{Hosts: []string{"evil.example.com:443"}}
	for field, fields := range map[string]string{
		"authorization.secretRef": byToken, "basicAuth.secretRef": byName,
		"clientTLS.secretRef": `{"clientTLS":{"secretRef":{"name":"pair","namespace":"hooks"}}}`,
	} {
		authority := tlstest.NewAuthority(t)
		certificate, key := authority.Issue("hookloop")
		v := &transporttest.Vault{}
		var s endpoint.Security
		if err := json.Unmarshal([]byte(fields), &s); err != nil {
			t.Fatal(err)
		}
		refused := func(when string) {
			t.Helper()
			k, err := endpoint.NewKeyring(s, "", "", foreign, hook.Config{Lookup: v.Lookup})
			if err != nil {
				t.Fatal(err)
			}
			_, err = k.Current(t.Context())
			if err == nil || !strings.HasPrefix(err.Error(), field+": there is no Secret hooks/") ||
				!strings.Contains(err.Error(),
					"that may be sent to evil.example.com:443 over TLS; expected a Service in namespace hooks") ||
				!strings.Contains(err.Error(), "--unrestricted-secret-namespaces") {
				t.Errorf("%s, %s: got %v, want a refusal that names the rule", field, when, err)
			}
		}
		refused("without the Secret")
		v.Put("Secret/hooks/token", map[string]string{"token": "secret"})
		v.Put("Secret/hooks/user", map[string]string{"username": "secret", "password": "secret"})
		v.Put("Secret/hooks/pair", map[string]string{"tls.crt": string(certificate), "tls.key": string(key)})
		refused("with it")
		v.Annotations = map[string]string{endpoint.AllowedHostsAnnotation: "evil.example.com"}
		k, err := endpoint.NewKeyring(s, "", "", foreign, hook.Config{Lookup: v.Lookup})
		if err != nil {
			t.Fatal(err)
		}
		current(t, k)
	}
	v := &transporttest.Vault{}
	v.Put("Secret/hooks/ca", map[string]string{"ca.crt": string(tlstest.NewAuthority(t).PEM)})
	ca := endpoint.Security{CABundle: &endpoint.CABundle{SecretRef: &endpoint.Reference{Name: "ca", Namespace: "hooks"}}}
	k, err := endpoint.NewKeyring(ca, "", "", foreign, hook.Config{Lookup: v.Lookup})
	if err != nil {
		t.Fatal(err)
	}
	current(t, k)
}
