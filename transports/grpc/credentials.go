package grpc

import (
	"context"
	"net"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/transports/internal/endpoint"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// handshaker makes TLS handshakes with the certificates of the moment, so that a rotation needs no
// new connection object.
type handshaker struct{ keyring *endpoint.Keyring }

var _ credentials.TransportCredentials = (*handshaker)(nil)

// ClientHandshake makes one TLS handshake.
func (h *handshaker) ClientHandshake(
	ctx context.Context,
	authority string,
	raw net.Conn,
) (net.Conn, credentials.AuthInfo, error) {
	m, err := h.keyring.Current(ctx)
	if err != nil {
		return nil, nil, err
	}
	return credentials.NewTLS(m.TLS).ClientHandshake(ctx, authority, raw)
}

// ServerHandshake is not used by clients.
func (h *handshaker) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return credentials.NewTLS(nil).ServerHandshake(raw)
}

// Info returns the protocol.
func (h *handshaker) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

// Clone returns h, which has no state of its own.
func (h *handshaker) Clone() credentials.TransportCredentials { return h }

// OverrideServerName does nothing: it is deprecated, and the name comes from the spec.
func (h *handshaker) OverrideServerName(string) error { return nil }

// withAuthorization adds the header Authorization if the spec has credentials. A spec with
// credentials cannot be insecure, so that they are never sent in plain text.
func withAuthorization(ctx context.Context, m *endpoint.Material) context.Context {
	if m.Header == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, "authorization", m.Header)
}

// credentialsChanged reports whether a call should be repeated: it may have failed because of
// credentials or certificates, and these have been replaced meanwhile.
func (c *client) credentialsChanged(ctx context.Context, used *endpoint.Material, err error) (bool, error) {
	// A failed handshake has no code of its own: in TLS 1.3, the server rejects a client certificate
	// after the handshake, and the connection is lost.
	if code := status.Code(err); ctx.Err() != nil || code != codes.Unauthenticated && code != codes.Unavailable {
		return false, nil
	}
	changed, err := c.keyring.Renew(ctx, used)
	if err != nil {
		return false, c.credentialsError(err)
	}
	return changed, nil
}

// credentialsError returns the port's error for a hook that was not called because its credentials
// could not be read.
func (c *client) credentialsError(err error) error {
	return &hook.Error{Kind: hook.Unreachable, Hook: c.name, Reason: "HookCredentials", Err: err}
}
