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
	// DefaultListen is the default of ServeOptions.Listen: a loopback address, because a server
	// without TLS is open to everyone who can reach it.
	DefaultListen = "127.0.0.1:9443"
	// DefaultGracePeriod is the default of Options.GracePeriod.
	DefaultGracePeriod = 10 * time.Second
)

// Options are common to Serve and Attach. The zero value has useful defaults.
type Options struct {
	// BuildID identifies the hook's build. When it changes, engines call the hook again for all
	// parents, because its responses may differ. The default is a hash of the program's file. Flag
	// --build-id, variable HOOKLOOP_HOOK_BUILD_ID.
	BuildID string
	// Triggers sends triggers over the streams of this server or attachment. The default is none.
	Triggers *Triggers
	// Log gets a record of each failed call, and of the life of connections. The default is
	// slog.Default().
	Log *slog.Logger
	// GracePeriod limits how long running calls may take after the end of the context. The default is
	// DefaultGracePeriod, 10 seconds.
	GracePeriod time.Duration
}

// ServeOptions configures Serve. The zero value serves plain text on DefaultListen.
type ServeOptions struct {
	Options
	// Listen is the address to listen on: host:port, in which port 0 selects a free port, or a unix
	// socket, unix:///run/hooks/hello.sock, for an engine in the same Pod. The default is
	// DefaultListen, 127.0.0.1:9443. Flag --listen, variable HOOKLOOP_HOOK_LISTEN.
	Listen string
	// TLSCert and TLSKey name PEM files of the server's certificate and key. They are read again for
	// each connection, so that certificates can rotate. The default is plain text. Flags --tls-cert
	// and --tls-key, variables HOOKLOOP_HOOK_TLS_CERT and HOOKLOOP_HOOK_TLS_KEY.
	TLSCert, TLSKey string
	// ClientCA names a PEM file of certificate authorities. Callers need a certificate of one of them;
	// it is read again for each connection. The default asks for no certificate. Flag --client-ca,
	// variable HOOKLOOP_HOOK_CLIENT_CA.
	ClientCA string
	// ClientName is a name that a caller's certificate must have: its common name or an alternative
	// name. The default accepts every name. It needs ClientCA. Flag --client-name, variable
	// HOOKLOOP_HOOK_CLIENT_NAME.
	ClientName string
	// TokenFile names a file of accepted bearer tokens, one a line. Calls need the header
	// "authorization: Bearer TOKEN" with one of them. The file is read again when it changes. The
	// default asks for no token. Flag --token-file, variable HOOKLOOP_HOOK_TOKEN_FILE.
	TokenFile string
	// Reflection serves gRPC reflection, so that tools such as grpcurl can list the services. The
	// default is off. Flag --reflection.
	Reflection bool
	// Listening is called once with the server's address, as soon as it accepts connections. The
	// default does nothing.
	Listening func(net.Addr)
}

// AddFlags registers a flag for each option that has one. The default of a flag is its environment
// variable, or the option's present value.
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

// withDefaults returns the options with all defaults set but that of Triggers.
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

// streams returns a server of streams for the hooks. It takes no more calls once ctx is done.
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

// programHash returns a hash of the program's file, or "" if the file cannot be read.
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
