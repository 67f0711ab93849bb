package hook

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"io"
	"log/slog"
	"net"
	"os"
	"time"

	"go.opentelemetry.io/otel/trace"
)

const (
	// DefaultListen is used if ServeOptions.Listen is empty. It is a loopback address, because
	// anyone who can reach a server without TLS can call it.
	DefaultListen = "127.0.0.1:9443"
	// DefaultGracePeriod is used if Options.GracePeriod is 0.
	DefaultGracePeriod = 10 * time.Second
)

// Options are used by both [Serve] and [Attach]. The zero value works.
type Options struct {
	// BuildID identifies this build of the hook. When it changes, Hookloop calls the hook again for
	// all parents, because the new build may return other responses. If it is empty, a hash of the
	// program's file is used. Flag --build-id, variable HOOKLOOP_HOOK_BUILD_ID.
	BuildID string
	// Triggers lets the program ask Hookloop for syncs: set it, then call [Triggers.Send]. It may
	// be nil.
	Triggers *Triggers
	// Log receives a record for each failed call and for each change of a connection. If it is nil,
	// slog.Default() is used.
	Log *slog.Logger
	// GracePeriod limits how long running calls may continue after the context ends. If it is 0,
	// DefaultGracePeriod (10 seconds) is used.
	GracePeriod time.Duration
}

// ServeOptions configures [Serve]. The zero value serves plain text on [DefaultListen].
type ServeOptions struct {
	Options
	// Listen is host:port, where port 0 picks a free port, or a unix socket such as
	// unix:///run/hooks/hello.sock for an engine in the same Pod. If it is empty, DefaultListen is
	// used. Flag --listen, variable HOOKLOOP_HOOK_LISTEN.
	Listen string
	// TLSCert and TLSKey name PEM files with the server's certificate and key. Each new connection
	// reads the files again, so that you can rotate certificates. If both are empty, the server
	// uses plain text. Flags --tls-cert and --tls-key, variables HOOKLOOP_HOOK_TLS_CERT and
	// HOOKLOOP_HOOK_TLS_KEY.
	TLSCert, TLSKey string
	// ClientCA names a PEM file with certificate authorities. Callers must then present a
	// certificate that one of these authorities signed. Each new connection reads the file again.
	// If it is empty, callers need no certificate. Flag --client-ca, variable
	// HOOKLOOP_HOOK_CLIENT_CA.
	ClientCA string
	// ClientName is the name that the caller's certificate must have, as its common name or as an
	// alternative name. If it is empty, any name is accepted. It can only be used with ClientCA.
	// Flag --client-name, variable HOOKLOOP_HOOK_CLIENT_NAME.
	ClientName string
	// TokenFile names a file with the accepted bearer tokens, one on each line. Callers must then
	// send the header "authorization: Bearer TOKEN". The file is read again when it changes. If it
	// is empty, callers need no token. Flag --token-file, variable HOOKLOOP_HOOK_TOKEN_FILE.
	TokenFile string
	// Reflection turns gRPC reflection on, so that tools such as grpcurl can list the services.
	// Flag --reflection.
	Reflection bool
	// Listening is called once with the server's address, as soon as the server accepts
	// connections. It may be nil.
	Listening func(net.Addr)
}

// AddFlags registers a flag for each option that can be set on a command line. A flag defaults to
// its environment variable, or else to the value that the option has now.
func (o *ServeOptions) AddFlags(fs *flag.FlagSet) {
	f := flags{fs}
	f.text(&o.Listen, "listen", cmp.Or(o.Listen, DefaultListen),
		"address or unix:///path to listen on; port 0 takes a free one")
	f.text(&o.TLSCert, "tls-cert", o.TLSCert, "PEM file with the certificate; empty means plain text")
	f.text(&o.TLSKey, "tls-key", o.TLSKey, "PEM file with the certificate's key")
	f.text(&o.ClientCA, "client-ca", o.ClientCA,
		"PEM file with the authorities of callers' certificates; empty asks for none")
	f.text(&o.ClientName, "client-name", o.ClientName, "with --client-ca: name that a caller's certificate must have")
	f.text(&o.TokenFile, "token-file", o.TokenFile, tokenUsage)
	f.text(&o.BuildID, "build-id", o.BuildID, buildUsage)
	fs.BoolVar(&o.Reflection, "reflection", o.Reflection, "serve gRPC reflection")
}

// withDefaults fills in every option that is not set, except Triggers.
func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	o.GracePeriod = cmp.Or(o.GracePeriod, DefaultGracePeriod)
	if o.BuildID == "" {
		o.BuildID = programHash()
	}
	return o
}

// streams returns a server for streams that calls these hooks. It accepts no more calls after ctx
// is done.
func (o Options) streams(ctx context.Context, provider trace.TracerProvider, hooks *catalog) *streams {
	s := &streams{
		methods: hooks.methods(), calls: callLog{o.Log}, build: o.BuildID, log: o.Log,
		stopping: ctx.Done(), triggers: &triggers{}, tracer: provider.Tracer("github.com/hookloop/hookloop/sdk/go/hook"),
	}
	if o.Triggers != nil {
		s.triggers = &o.Triggers.triggers
	}
	return s
}

// programHash hashes the program's file. It returns "" if the file cannot be read.
func programHash() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	file, err := os.Open(path) //nolint:gosec // the program itself
	if err != nil {
		return ""
	}
	defer file.Close() //nolint:errcheck // nothing was written
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
