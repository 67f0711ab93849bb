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
	// Lifetime is the time for which the contents of a Secret or ConfigMap are used before they are
	// read again.
	Lifetime = 60 * time.Second
	// minRenewInterval is the minimum interval between two reads that refused calls cause.
	minRenewInterval = 5 * time.Second
	// faultTTL is the time for which a failure is cached, so that a thousand parents' calls do not
	// cause a thousand reads.
	faultTTL = time.Second
)

// Material is the TLS configuration and credentials of a call.
type Material struct {
	// TLS is the client's configuration; the caller must not modify it.
	TLS *tls.Config
	// Header is the value of the header Authorization; may be empty.
	Header string
	// ID is a digest of the contents.
	ID [sha256.Size]byte
}

// SameClient reports whether m and other have the same client certificate.
func (m *Material) SameClient(other *Material) bool {
	return slices.EqualFunc(m.TLS.Certificates, other.TLS.Certificates, func(a, b tls.Certificate) bool {
		return slices.EqualFunc(a.Certificate, b.Certificate, bytes.Equal)
	})
}

// Keyring resolves a Security. It reads Secrets and ConfigMaps on demand, caches them for Lifetime,
// and reads again after a refused call, so that rotations need no restart. It is safe for
// concurrent use.
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

// NewKeyring returns a Keyring. at is the prefix of field names in messages; serverName is the
// required name in the server's certificate, empty for the address's; to is the destination of
// Secrets' values. The error covers the spec's own values; references are read later.
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

// Current returns the current material. The error names the field, the object and the key, and
// never a value. If an object cannot be read, the last values remain valid; if an object or key is
// missing or invalid, they do not.
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

// Renew reads again after a refused call, unless another call did so recently or since used was
// current. It reports whether the material now differs from used.
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

// load reads all values and caches them, or the failure.
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
