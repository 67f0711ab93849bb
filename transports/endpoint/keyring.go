package endpoint

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
)

const (
	// Lifetime is how long what was read of a Secret or ConfigMap counts without being read again.
	Lifetime = 60 * time.Second
	// renewal is the shortest time between two readings that calls ask for because they were refused.
	renewal = 5 * time.Second
)

// Material is what one call is made with.
type Material struct {
	// TLS is for the client's side; the caller must not change it.
	TLS *tls.Config
	// Header is the value of the header Authorization; empty for none.
	Header string
	// ID differs where anything in it differs. It tells nothing of what that is.
	ID [sha256.Size]byte
}

// Keyring resolves a Security. It reads Secrets and ConfigMaps when they are needed, keeps what it has read for Lifetime, and reads anew when a
// call was refused, so that what rotates in the cluster is taken up without a restart. It is safe for concurrent use.
type Keyring struct {
	security   Security
	at         string
	serverName string
	lookup     hook.Lookup
	clock      clock.PassiveClock

	mu       sync.Mutex // guards what follows
	material *Material
	read     time.Time
}

// NewKeyring makes a Keyring. at comes before field names in messages; serverName is the name that a certificate must carry, empty for the
// address's. The error is about what the spec holds itself; what it refers to is read later.
func NewKeyring(s Security, at, serverName string, settings hook.Settings) (*Keyring, error) {
	k := &Keyring{security: s, at: at, serverName: serverName, lookup: settings.Lookup, clock: settings.Clock}
	if k.clock == nil {
		k.clock = clock.RealClock{}
	}
	if !k.refers() {
		_, err := k.Current(context.Background())
		return k, err
	}
	return k, nil
}

// refers says whether something is to be read from the cluster.
func (k *Keyring) refers() bool {
	s := k.security
	bundle := s.CABundle != nil && (s.CABundle.SecretRef != nil || s.CABundle.ConfigMapRef != nil)
	return bundle || s.ClientTLS != nil || s.Authorization != nil || s.BasicAuth != nil
}

// Current is the material to use now. The error names the field, the object and the key, and never a value. While the API server does not
// answer, what was read last still counts; an object or key that is gone does not.
func (k *Keyring) Current(ctx context.Context) (*Material, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.material != nil && (!k.refers() || k.clock.Since(k.read) < Lifetime) {
		return k.material, nil
	}
	return k.load(ctx)
}

// Renew reads again after a call was refused, and says whether anything has changed.
func (k *Keyring) Renew(ctx context.Context) (bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.refers() || k.material == nil || k.clock.Since(k.read) < renewal {
		return false, nil
	}
	before := k.material.ID
	current, err := k.load(ctx)
	return err == nil && current.ID != before, err
}

func (k *Keyring) load(ctx context.Context) (*Material, error) {
	m, err := k.assemble(ctx)
	var missing *MissingError
	if err != nil && (k.material == nil || errors.As(err, &missing)) {
		k.material = nil
		return nil, err
	}
	if err == nil {
		k.material = m
	}
	k.read = k.clock.Now()
	return k.material, nil
}

// assemble reads everything.
func (k *Keyring) assemble(ctx context.Context) (*Material, error) {
	m := &Material{TLS: &tls.Config{MinVersion: tls.VersionTLS12, ServerName: k.serverName}}
	digest := sha256.New()
	for _, part := range []func(context.Context, *Material) ([]byte, error){k.trust, k.certificate, k.authorization, k.basic} {
		used, err := part(ctx, m)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(used)
		digest.Write(sum[:])
	}
	digest.Sum(m.ID[:0])
	return m, nil
}

// trust sets the roots.
func (k *Keyring) trust(ctx context.Context, m *Material) ([]byte, error) {
	b := k.security.CABundle
	if b == nil {
		return nil, nil
	}
	field, pem := "caBundle.inline", []byte(b.Inline)
	var err error
	switch {
	case b.SecretRef != nil:
		field = "caBundle.secretRef"
		pem, err = k.value(ctx, field, "Secret", *b.SecretRef, cmp.Or(b.SecretRef.Key, "ca.crt"))
	case b.ConfigMapRef != nil:
		field = "caBundle.configMapRef"
		pem, err = k.value(ctx, field, "ConfigMap", *b.ConfigMapRef, cmp.Or(b.ConfigMapRef.Key, "ca.crt"))
	}
	if err != nil {
		return nil, err
	}
	m.TLS.RootCAs = x509.NewCertPool()
	if !m.TLS.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s%s: has no certificate; expected PEM", k.at, field)
	}
	return pem, nil
}

// certificate sets the client's certificate.
func (k *Keyring) certificate(ctx context.Context, m *Material) ([]byte, error) {
	c := k.security.ClientTLS
	if c == nil {
		return nil, nil
	}
	certificate, err := k.value(ctx, "clientTLS.secretRef", "Secret", c.SecretRef, cmp.Or(c.CertKey, "tls.crt"))
	if err != nil {
		return nil, err
	}
	key, err := k.value(ctx, "clientTLS.secretRef", "Secret", c.SecretRef, cmp.Or(c.PrivateKeyKey, "tls.key"))
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil { // the error could quote what it could not read
		return nil, fmt.Errorf("%sclientTLS: Secret %s/%s holds no certificate with its key; expected PEM", k.at, c.SecretRef.Namespace, c.SecretRef.Name)
	}
	m.TLS.Certificates = []tls.Certificate{pair}
	return bytes.Join([][]byte{certificate, key}, []byte{0}), nil
}

// authorization sets the header by field authorization.
func (k *Keyring) authorization(ctx context.Context, m *Material) ([]byte, error) {
	a := k.security.Authorization
	if a == nil {
		return nil, nil
	}
	if strings.EqualFold(a.Type, "basic") {
		return nil, fmt.Errorf("%sauthorization.type: is %q; use basicAuth", k.at, a.Type)
	}
	credentials, err := k.word(ctx, "authorization.secretRef", a.SecretRef, cmp.Or(a.SecretRef.Key, "token"))
	if err != nil {
		return nil, err
	}
	m.Header = cmp.Or(a.Type, "Bearer") + " " + credentials
	return []byte(m.Header), nil
}

// basic sets the header by field basicAuth (RFC 7617).
func (k *Keyring) basic(ctx context.Context, m *Material) ([]byte, error) {
	b := k.security.BasicAuth
	if b == nil {
		return nil, nil
	}
	if k.security.Authorization != nil {
		return nil, fmt.Errorf("%sbasicAuth: is set beside authorization; expected one of them", k.at)
	}
	user, err := k.word(ctx, "basicAuth.secretRef", b.SecretRef, cmp.Or(b.UsernameKey, "username"))
	if err != nil {
		return nil, err
	}
	if strings.Contains(user, ":") {
		return nil, fmt.Errorf("%sbasicAuth.usernameKey: the user name has a colon, which ends a user name; expected one without", k.at)
	}
	password, err := k.word(ctx, "basicAuth.secretRef", b.SecretRef, cmp.Or(b.PasswordKey, "password"))
	if err != nil {
		return nil, err
	}
	m.Header = "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
	return []byte(m.Header), nil
}

// word is a value that goes into a header: without the line end that files have, and on one line.
func (k *Keyring) word(ctx context.Context, field string, r Reference, key string) (string, error) {
	value, err := k.value(ctx, field, "Secret", r, key)
	if err != nil {
		return "", err
	}
	word := strings.TrimRight(string(value), "\r\n")
	if strings.ContainsFunc(word, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", fmt.Errorf("%s%s: key %s of Secret %s/%s has control characters; expected one line of text", k.at, field, key, r.Namespace, r.Name)
	}
	return word, nil
}

// MissingError says that a Secret or ConfigMap, or a key of it, is not there.
type MissingError struct{ What string }

func (e *MissingError) Error() string { return e.What }

// value reads one key.
func (k *Keyring) value(ctx context.Context, field, kind string, r Reference, key string) ([]byte, error) {
	if k.lookup == nil {
		return nil, fmt.Errorf("%s%s: nothing can be read from the cluster here; expected an inline value", k.at, field)
	}
	data, err := k.lookup(ctx, kind, r.Namespace, r.Name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, &MissingError{fmt.Sprintf("%s%s: there is no %s %s/%s", k.at, field, kind, r.Namespace, r.Name)}
	case err != nil:
		return nil, fmt.Errorf("%s%s: %w", k.at, field, err)
	case len(data[key]) == 0:
		return nil, &MissingError{fmt.Sprintf("%s%s: %s %s/%s has no key %s", k.at, field, kind, r.Namespace, r.Name, key)}
	}
	return data[key], nil
}
