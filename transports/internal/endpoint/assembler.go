package endpoint

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/hookloop/hookloop/engine/hook"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// assembler makes a Material from the objects of the cluster. It reads each object only once, so that
// a certificate and its key, or a user and a password, are of the same version.
type assembler struct {
	security *Security
	at       string
	to       Destination
	lookup   hook.Lookup
	sources  map[string]*hook.Source
}

// lookupError means that an object could not be read, so that nobody knows whether it exists.
type lookupError struct{ error }

func (e *lookupError) Unwrap() error { return e.error }

// assemble reads all referenced values.
func (k *Keyring) assemble(ctx context.Context) (*Material, error) {
	r := &assembler{security: &k.security, at: k.at, to: k.to, lookup: k.lookup, sources: map[string]*hook.Source{}}
	m := &Material{TLS: &tls.Config{MinVersion: tls.VersionTLS12, ServerName: k.serverName}}
	digest := sha256.New()
	for _, part := range []func(context.Context, *Material) ([]byte, error){
		r.trust, r.certificate, r.authorization, r.basic,
	} {
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

// trust sets the root CAs.
func (r *assembler) trust(ctx context.Context, m *Material) ([]byte, error) {
	b := r.security.CABundle
	if b == nil {
		return nil, nil
	}
	field := "caBundle.inline"
	pem := []byte(b.Inline)
	var err error
	switch {
	case b.SecretRef != nil:
		field = "caBundle.secretRef"
		pem, err = r.value(ctx, field, "Secret", *b.SecretRef, cmp.Or(b.SecretRef.Key, "ca.crt"))
	case b.ConfigMapRef != nil:
		field = "caBundle.configMapRef"
		pem, err = r.value(ctx, field, "ConfigMap", *b.ConfigMapRef, cmp.Or(b.ConfigMapRef.Key, "ca.crt"))
	}
	if err != nil {
		return nil, err
	}
	m.TLS.RootCAs = x509.NewCertPool()
	if !m.TLS.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s%s: has no certificate; expected PEM", r.at, field)
	}
	return pem, nil
}

// certificate sets the client certificate.
func (r *assembler) certificate(ctx context.Context, m *Material) ([]byte, error) {
	c := r.security.ClientTLS
	if c == nil {
		return nil, nil
	}
	certificate, err := r.secret(ctx, "clientTLS.secretRef", c.SecretRef, cmp.Or(c.CertKey, "tls.crt"))
	if err != nil {
		return nil, err
	}
	key, err := r.secret(ctx, "clientTLS.secretRef", c.SecretRef, cmp.Or(c.PrivateKeyKey, "tls.key"))
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil { // the error could quote a value
		return nil, fmt.Errorf("%sclientTLS: Secret %s/%s holds no certificate with its key; expected PEM", r.at,
			c.SecretRef.Namespace, c.SecretRef.Name)
	}
	m.TLS.Certificates = []tls.Certificate{pair}
	return bytes.Join([][]byte{certificate, key}, []byte{0}), nil
}

// authorization sets the header from the field authorization.
func (r *assembler) authorization(ctx context.Context, m *Material) ([]byte, error) {
	a := r.security.Authorization
	if a == nil {
		return nil, nil
	}
	if strings.EqualFold(a.Type, "basic") {
		return nil, fmt.Errorf("%sauthorization.type: is %q; use basicAuth", r.at, a.Type)
	}
	credentials, err := r.headerValue(ctx, "authorization.secretRef", a.SecretRef, cmp.Or(a.SecretRef.Key, "token"))
	if err != nil {
		return nil, err
	}
	m.Header = cmp.Or(a.Type, "Bearer") + " " + credentials
	return []byte(m.Header), nil
}

// basic sets the header from the field basicAuth (RFC 7617).
func (r *assembler) basic(ctx context.Context, m *Material) ([]byte, error) {
	b := r.security.BasicAuth
	if b == nil {
		return nil, nil
	}
	if r.security.Authorization != nil {
		return nil, fmt.Errorf("%sbasicAuth: is set beside authorization; expected one of them", r.at)
	}
	user, err := r.headerValue(ctx, "basicAuth.secretRef", b.SecretRef, cmp.Or(b.UsernameKey, "username"))
	if err != nil {
		return nil, err
	}
	if strings.Contains(user, ":") {
		return nil, fmt.Errorf(
			"%sbasicAuth.usernameKey: the user name has a colon, which ends a user name; expected one without",
			r.at)
	}
	password, err := r.headerValue(ctx, "basicAuth.secretRef", b.SecretRef, cmp.Or(b.PasswordKey, "password"))
	if err != nil {
		return nil, err
	}
	m.Header = "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
	return []byte(m.Header), nil
}

// headerValue returns a value for a header: one line, without the line end of a file.
func (r *assembler) headerValue(ctx context.Context, field string, from Reference, key string) (string, error) {
	value, err := r.secret(ctx, field, from, key)
	if err != nil {
		return "", err
	}
	word := strings.TrimRight(string(value), "\r\n")
	if word == "" || strings.ContainsFunc(word, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return "", fmt.Errorf(
			"%s%s: key %s of Secret %s/%s is empty or has control characters; expected one line of text", r.at,
			field, key, from.Namespace, from.Name)
	}
	return word, nil
}

// secret returns one key of a Secret, if its value may be sent to the hook.
func (r *assembler) secret(ctx context.Context, field string, from Reference, key string) ([]byte, error) {
	if r.lookup == nil || r.to.allows(from.Namespace, "") {
		return r.value(ctx, field, "Secret", from, key)
	}
	source, err := r.object(ctx, "Secret", from)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, &lookupError{fmt.Errorf("%s%s: %w", r.at, field, err)}
	}
	if err != nil || !r.to.allows(from.Namespace, source.Annotations[AllowedHostsAnnotation]) {
		return nil, r.to.refusal(r.at, field, from)
	}
	return r.value(ctx, field, "Secret", from, key)
}

// value returns one key of an object.
func (r *assembler) value(ctx context.Context, field, kind string, from Reference, key string) ([]byte, error) {
	if r.lookup == nil {
		return nil, fmt.Errorf("%s%s: nothing can be read from the cluster here; expected an inline value", r.at, field)
	}
	source, err := r.object(ctx, kind, from)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%s%s: there is no %s %s/%s", r.at, field, kind, from.Namespace, from.Name)
	case err != nil:
		return nil, &lookupError{fmt.Errorf("%s%s: %w", r.at, field, err)}
	case len(source.Data[key]) == 0:
		return nil, fmt.Errorf("%s%s: %s %s/%s has no key %s", r.at, field, kind, from.Namespace, from.Name, key)
	}
	return source.Data[key], nil
}

// object reads an object at most once.
func (r *assembler) object(ctx context.Context, kind string, from Reference) (*hook.Source, error) {
	name := kind + "/" + from.Namespace + "/" + from.Name
	if source, ok := r.sources[name]; ok {
		return source, nil
	}
	source, err := r.lookup(ctx, kind, from.Namespace, from.Name)
	if err == nil {
		r.sources[name] = source
	}
	return source, err
}
