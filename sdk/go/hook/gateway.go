package hook

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc/filters"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
)

// Gateway says where a hook dials in ("hookloop serve --gateway-address"), and with which
// credentials. Use it in [AttachOptions], or to send a [Gateway.Trigger].
type Gateway struct {
	// Address is host:port. Flag --attach, variable HOOKLOOP_HOOK_ATTACH.
	Address string
	// CAFile names a PEM file with the authorities that may sign the gateway's certificate. If it
	// is empty, the system's authorities are used. Flag --ca-file, variable HOOKLOOP_HOOK_CA_FILE.
	CAFile string
	// ServerName must be in the gateway's certificate. If it is empty, the host in Address is used.
	// Flag --server-name, variable HOOKLOOP_HOOK_SERVER_NAME.
	ServerName string
	// TokenFile names a file with a ServiceAccount token that was issued for the gateway's
	// audience. Each attempt reads it again. Flag --token-file, variable HOOKLOOP_HOOK_TOKEN_FILE.
	TokenFile string
	// CertFile and KeyFile name PEM files with a client certificate, which can be used instead of a
	// token. Each connection reads them again. Flags --client-cert and --client-key, variables
	// HOOKLOOP_HOOK_CLIENT_CERT and HOOKLOOP_HOOK_CLIENT_KEY.
	CertFile, KeyFile string
}

// AddFlags registers a flag for each field. A flag defaults to its environment variable, or else to
// the value that the field has now.
func (g *Gateway) AddFlags(fs *flag.FlagSet) {
	f := flags{fs}
	f.text(&g.Address, "attach", g.Address, "dial in at this gateway, host:port, instead of listening")
	f.text(&g.CAFile, "ca-file", g.CAFile,
		"PEM file with the authorities of the gateway's certificate; empty means the system's")
	f.text(&g.ServerName, "server-name", g.ServerName,
		"name in the gateway's certificate, if it is not the address's host")
	f.text(&g.TokenFile, "token-file", g.TokenFile, tokenUsage)
	f.text(&g.CertFile, "client-cert", g.CertFile, "PEM file with a client certificate, instead of a token")
	f.text(&g.KeyFile, "client-key", g.KeyFile, "PEM file with the client certificate's key")
}

// dialBackoff limits how often gRPC itself reconnects. An attachment waits between attempts too and
// resets this backoff before each one; its wait must not be shorter.
var dialBackoff = grpc.ConnectParams{
	Backoff: backoff.Config{
		BaseDelay:  defaultRetry.first,
		Multiplier: 1.6,
		Jitter:     0.2,
		MaxDelay:   defaultRetry.longest,
	},
	MinConnectTimeout: 5 * time.Second,
}

// dialPing finds dead connections. The gateway allows one ping every 5 seconds.
var dialPing = keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 2 * time.Second}

// connect returns a connection that dials when it is first used.
func (g *Gateway) connect() (*grpc.ClientConn, error) {
	if (g.CertFile == "") != (g.KeyFile == "") {
		return nil, errors.New("client certificate: one of certificate and key is missing; expected both files, or neither")
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: g.ServerName}
	if g.CAFile != "" {
		pool, err := readAuthorities(g.CAFile)
		if err != nil {
			return nil, fmt.Errorf("authorities: %w", err)
		}
		config.RootCAs = pool
	}
	if g.CertFile != "" {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(g.CertFile, g.KeyFile)
			return &pair, err
		}
	}
	return grpc.NewClient(g.Address,
		grpc.WithTransportCredentials(credentials.NewTLS(config)), grpc.WithKeepaliveParams(dialPing),
		grpc.WithConnectParams(dialBackoff),
		grpc.WithStaticStreamWindowSize(streamWindow), grpc.WithStaticConnWindowSize(connectionWindow),
		grpc.WithStatsHandler(otelgrpc.NewClientHandler(otelgrpc.WithFilter(
			filters.Not(filters.ServiceName(streamv1.GatewayService_ServiceDesc.ServiceName))))))
}

// authorize returns a context that adds the token to outgoing calls.
func (g *Gateway) authorize(ctx context.Context) (context.Context, error) {
	if g.TokenFile == "" {
		return ctx, nil
	}
	token, err := os.ReadFile(g.TokenFile)
	if err != nil {
		return nil, fmt.Errorf("token: %w", err)
	}
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+strings.TrimSpace(string(token))), nil
}

// Trigger asks Hookloop to sync the parents that t selects, and returns how many it will sync. It
// makes a single call and needs no attachment; the credentials must allow serving the worker. The
// error is a gRPC status with the codes that [Triggers.Send] describes.
func (g *Gateway) Trigger(ctx context.Context, worker string, t Trigger) (parents int, err error) {
	if err := t.check(); err != nil {
		return 0, err
	}
	connection, err := g.connect()
	if err != nil {
		return 0, err
	}
	defer connection.Close() //nolint:errcheck // the call has ended
	ctx, err = g.authorize(ctx)
	if err != nil {
		return 0, err
	}
	r, err := streamv1.NewGatewayServiceClient(connection).Trigger(ctx,
		&streamv1.TriggerRequest{Worker: worker, Trigger: t.message(0)})
	return int(r.GetParents()), err
}
