package grpc

import (
	"context"
	"net"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/transports/endpoint"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// handshaker is TLS whose certificates are looked up for each connection.
type handshaker struct{ keyring *endpoint.Keyring }

var _ credentials.TransportCredentials = (*handshaker)(nil)

// ClientHandshake makes one TLS connection.
func (h *handshaker) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	m, err := h.keyring.Current(ctx)
	if err != nil {
		return nil, nil, err
	}
	connection, info, err := credentials.NewTLS(m.TLS).ClientHandshake(ctx, authority, raw)
	if err != nil { // the next try has what there is then
		if _, lookErr := h.keyring.Renew(ctx); lookErr != nil {
			return nil, nil, lookErr
		}
	}
	return connection, info, err
}

// ServerHandshake is not for clients.
func (h *handshaker) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return credentials.NewTLS(nil).ServerHandshake(raw)
}

// Info names the protocol.
func (h *handshaker) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

// Clone returns h, which has no state of its own.
func (h *handshaker) Clone() credentials.TransportCredentials { return h }

// OverrideServerName is for interfaces that are deprecated; the name comes from the spec.
func (h *handshaker) OverrideServerName(string) error { return nil }

// authorized adds the header Authorization, if the spec has credentials for one. They are never sent in plain text: the spec excludes that.
func (c *client) authorized(ctx context.Context) (context.Context, error) {
	m, err := c.keyring.Current(ctx)
	if err != nil {
		return ctx, &hook.Error{Kind: hook.Unreachable, Hook: c.name, Reason: "HookCredentials", Err: err}
	}
	if m.Header == "" {
		return ctx, nil
	}
	return metadata.AppendToOutgoingContext(ctx, "authorization", m.Header), nil
}

// renewed says whether a call was refused for credentials that have been replaced meanwhile.
func (c *client) renewed(ctx context.Context, err error) bool {
	if status.Code(err) != codes.Unauthenticated {
		return false
	}
	changed, err := c.keyring.Renew(ctx)
	return changed && err == nil
}
