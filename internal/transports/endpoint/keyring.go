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
	// Lifetime is how long what was read of a Secret or ConfigMap counts without being read again.
	Lifetime = 60 * time.Second
	// minRenewInterval is the shortest time between two readings that calls ask for because they were
	// refused.
	minRenewInterval = 5 * time.Second
	// faultTTL is how long a fault counts without another reading, so that a thousand parents' calls
	// do not bring a thousand readings.
	faultTTL = time.Second
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

// SameClient reports whether a connection made with m names the same client as one made with other.
func (m *Material) SameClient(other *Material) bool {
	return slices.EqualFunc(m.TLS.Certificates, other.TLS.Certificates, func(a, b tls.Certificate) bool {
		return slices.EqualFunc(a.Certificate, b.Certificate, bytes.Equal)
	})
}

// Keyring resolves a Security. It reads Secrets and ConfigMaps when they are needed, keeps what it
// has read for Lifetime, and reads anew when a call was refused, so that what rotates in the
// cluster is taken up without a restart. It is safe for concurrent use.
type Keyring struct {
	security   Security
	at         string
	serverName string
	to         Destination
	lookup     hook.Lookup
	clock      clock.PassiveClock

	mu       sync.Mutex // guards the fields below
	material *Material
	fault    error // why there is no material; at most one of the two is set
	read     time.Time
	renewed  time.Time
}

// NewKeyring makes a Keyring. at comes before field names in messages; serverName is the name that
// a certificate must carry, empty for the address's; to is where values of Secrets would go. The
// error is about what the spec holds itself; what it refers to is read later.
func NewKeyring(s Security, at, serverName string, to Destination, settings hook.Settings) (*Keyring, error) {
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

// refers reports whether something is to be read from the cluster.
func (k *Keyring) hasReferences() bool {
	s := k.security
	bundle := s.CABundle != nil && (s.CABundle.SecretRef != nil || s.CABundle.ConfigMapRef != nil)
	return bundle || s.ClientTLS != nil || s.Authorization != nil || s.BasicAuth != nil
}

// Current is the material to use now. The error names the field, the object and the key, and never
// a value. While the objects cannot be read, what was read last still counts; of an object or key
// that is gone, or holds what cannot be used, it does not.
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

// Renew is for a call that was refused: it reads again, unless another call did so since used was
// current or a moment ago. It reports whether there is now other material than used.
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

// load reads everything and keeps it, or the reason why it cannot be used.
func (k *Keyring) load(ctx context.Context) (*Material, error) {
	m, err := k.assemble(ctx)
	var lookup *lookupError
	switch {
	case errors.As(err, &lookup) && k.material != nil:
		m, err = k.material, nil
	case err != nil && ctx.Err() != nil: // this caller has gone, which is nothing to tell others
		return nil, err
	}
	k.material, k.fault, k.read = m, err, k.clock.Now()
	return m, err
}
