package endpoint

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"k8s.io/utils/clock"
)

const (
	// Lifetime is how long the contents of a Secret or ConfigMap are used before they are read again.
	Lifetime = 60 * time.Second
	// minRenewInterval is how much time must pass between two reads that refused calls cause.
	minRenewInterval = 5 * time.Second
	// faultTTL is how long a failure is cached, so that questions about a thousand parents do not
	// cause a thousand reads.
	faultTTL = time.Second
)

// Material holds the TLS configuration and the credentials for a call.
type Material struct {
	// TLS is the configuration of the client. The caller must not change it.
	TLS *tls.Config
	// Header is the value of the header Authorization. It may be empty.
	Header string
	// ID is a hash of the contents: two materials with the same ID are interchangeable.
	ID [sha256.Size]byte
}

// SameClient reports whether m and other have the same client certificate.
func (m *Material) SameClient(other *Material) bool {
	return slices.EqualFunc(m.TLS.Certificates, other.TLS.Certificates, func(a, b tls.Certificate) bool {
		return slices.EqualFunc(a.Certificate, b.Certificate, bytes.Equal)
	})
}

// Keyring reads the certificates and credentials that a [Security] names. Call [Keyring.Current]
// before each call of the hook, and [Keyring.Renew] when the hook has refused one: it reads Secrets
// and ConfigMaps again, so that a rotation needs no restart. In between they are cached for
// [Lifetime]. A Keyring is safe for concurrent use.
type Keyring struct {
	security   Security
	at         string
	serverName string
	to         Destination
	lookup     hook.Lookup
	clock      clock.PassiveClock

	mu       sync.Mutex // guards the fields below
	material *Material
	fault    error // the reason if material is nil; at most one of the two is set
	read     time.Time
	renewed  time.Time
}

// NewKeyring returns a Keyring. Messages put at before the names of fields (see [Choose]). The
// certificate of the server must have serverName; if that is empty, it must have the name in the
// address. to is where the values of Secrets would be sent. The error is about values in the spec
// itself; what the spec refers to is read later.
func NewKeyring(s Security, at, serverName string, to Destination, settings hook.Config) (*Keyring, error) {
	k := &Keyring{security: s, at: at, serverName: serverName, to: to, lookup: settings.Lookup, clock: settings.Clock}
	if k.clock == nil {
		k.clock = clock.RealClock{}
	}
	if !k.hasReferences() {
		_, err := k.Current(context.Background())
		return k, err
	}
	return k, nil
}

// hasReferences reports whether the Security refers to objects in the cluster.
func (k *Keyring) hasReferences() bool {
	s := k.security
	bundle := s.CABundle != nil && (s.CABundle.SecretRef != nil || s.CABundle.ConfigMapRef != nil)
	return bundle || s.ClientTLS != nil || s.Authorization != nil || s.BasicAuth != nil
}

// Current returns the material to use now. The error names the field, the object and the key, and
// never a value. The last values stay valid while an object cannot be read, for example because the
// API server is down. They do not if the object or the key is missing, or the value is invalid.
func (k *Keyring) Current(ctx context.Context) (*Material, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	age := k.clock.Since(k.read)
	switch {
	case k.material != nil && (!k.hasReferences() || age < Lifetime):
		return k.material, nil
	case k.fault != nil && age < faultTTL:
		return nil, k.fault
	}
	return k.load(ctx)
}

// Renew should be called after the hook has refused a call that used the given material. It reads
// everything again, unless another call has just done so, and reports whether the material now is
// another one. If it is, the call should be repeated.
func (k *Keyring) Renew(ctx context.Context, used *Material) (bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.material != nil && k.material.ID != used.ID {
		return true, nil
	}
	if !k.hasReferences() || k.clock.Since(k.renewed) < minRenewInterval {
		return false, k.fault
	}
	k.renewed = k.clock.Now()
	current, err := k.load(ctx)
	return err == nil && current.ID != used.ID, err
}

// load reads all values. It caches them, or the failure.
func (k *Keyring) load(ctx context.Context) (*Material, error) {
	m, err := k.assemble(ctx)
	var lookup *lookupError
	switch {
	case errors.As(err, &lookup) && k.material != nil:
		m = k.material
		err = nil
	case err != nil && ctx.Err() != nil: // the caller's own cancellation is not cached
		return nil, err
	}
	k.material, k.fault, k.read = m, err, k.clock.Now()
	return m, err
}
