package hook

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
)

// callers decides who may call a server. That a caller's certificate is of the right authority, the
// TLS handshake has checked.
type callers struct {
	name   string     // in the caller's certificate; empty: any
	tokens *tokenFile // nil: none is asked for
}

// newCallers reads the file of tokens once, so that a wrong name is an error at start.
func newCallers(o *ServeOptions, log *slog.Logger) (*callers, error) {
	c := &callers{name: o.ClientName}
	if o.TokenFile != "" {
		c.tokens = &tokenFile{path: o.TokenFile, log: log}
		if err := c.tokens.read(); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// admit refuses a call before its body is read. The health service is for everyone: probes have no
// credentials.
func (c *callers) admit(ctx context.Context, info *tap.Info) (context.Context, error) {
	if strings.HasPrefix(info.FullMethodName, "/"+healthv1.Health_ServiceDesc.ServiceName+"/") {
		return ctx, nil
	}
	if err := c.checkName(ctx); err != nil {
		return nil, err
	}
	return ctx, c.checkToken(info.Header)
}

func (c *callers) checkName(ctx context.Context) error {
	if c.name == "" {
		return nil
	}
	from, _ := peer.FromContext(ctx)
	if from == nil {
		return status.Error(codes.Unauthenticated, "the caller is not known")
	}
	secured, _ := from.AuthInfo.(credentials.TLSInfo)
	if len(secured.State.PeerCertificates) == 0 {
		return status.Error(codes.Unauthenticated, "the caller has no certificate")
	}
	names := namesOf(secured.State.PeerCertificates[0])
	if !slices.Contains(names, c.name) {
		return status.Error(codes.Unauthenticated,
			fmt.Sprintf("the caller's certificate is for %q, expected %q", names, c.name))
	}
	return nil
}

// namesOf returns the names in a certificate: its subject's common name and the alternative ones.
func namesOf(c *x509.Certificate) []string {
	names := append([]string{c.Subject.CommonName}, c.DNSNames...)
	names = append(names, c.EmailAddresses...)
	for _, u := range c.URIs {
		names = append(names, u.String())
	}
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}

func (c *callers) checkToken(header metadata.MD) error {
	if c.tokens == nil {
		return nil
	}
	sent := header.Get("authorization")
	if len(sent) != 1 {
		return status.Error(codes.Unauthenticated, "the call has no token; expected the header authorization: Bearer TOKEN")
	}
	token, bearer := strings.CutPrefix(sent[0], "Bearer ")
	if !bearer {
		return status.Error(codes.Unauthenticated, "the call has another kind of authorization; expected Bearer")
	}
	return c.tokens.check(token)
}

// warnIfOpen warns of a server that anyone may call.
func (o *ServeOptions) warnIfOpen(log *slog.Logger, at net.Addr) {
	if tcp, ok := at.(*net.TCPAddr); ok && tcp.IP.IsLoopback() || o.ClientCA != "" || o.TokenFile != "" {
		return
	}
	log.Warn("anyone who reaches this address can call the hook; set --client-ca or --token-file", "address", at.String())
}
