package hook_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"github.com/hookloop/hookloop/internal/protocol/tlstest"
	"github.com/hookloop/hookloop/sdk/go/hook"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

var empty = hook.Composite{
	Sync: func(context.Context, *hook.SyncRequest) (*hook.SyncResponse, error) { return &hook.SyncResponse{}, nil },
}

// put writes a file, and replaces an existing one.
func put(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// askAs sends a request to a server over TLS, with a certificate that an authority issues to a
// name, or without an authority and a certificate.
func askAs(t *testing.T, target string, server, client *tlstest.Authority, name string) error {
	t.Helper()
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(server.PEM)
	if client != nil {
		pair, err := tls.X509KeyPair(client.Issue(name))
		if err != nil {
			t.Fatal(err)
		}
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	connection, err := grpc.NewClient(target, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close() //nolint:errcheck // nothing is under way
	_, err = compositev1.NewCompositeHookServiceClient(connection).Sync(t.Context(), request())
	return err
}

func TestCallersNeedACertificate(t *testing.T) {
	server := tlstest.NewAuthority(t)
	engines := tlstest.NewAuthority(t)
	others := tlstest.NewAuthority(t)
	folder := t.TempDir()
	file := func(name string) string { return filepath.Join(folder, name) }
	certificate, key := server.Issue("hook")
	put(t, file("tls.crt"), certificate)
	put(t, file("tls.key"), key)
	put(t, file("ca.crt"), engines.PEM)
	connection, _ := start(t, hook.ServeOptions{
		TLSCert:    file("tls.crt"),
		TLSKey:     file("tls.key"),
		ClientCA:   file("ca.crt"),
		ClientName: "engine",
		Options:    hook.Options{Log: slog.New(slog.DiscardHandler)},
	}, empty)
	for name, c := range map[string]struct {
		authority *tlstest.Authority
		name      string
		code      codes.Code
		want      string
	}{
		"the engine":        {engines, "engine", codes.OK, ""},
		"no certificate":    {nil, "", codes.Unavailable, ""},
		"another authority": {others, "engine", codes.Unavailable, ""},
		"another name": {engines, "intruder", codes.Unauthenticated,
			`the caller's certificate is for ["intruder" "127.0.0.1"], expected "engine"`},
	} {
		t.Run(name, func(t *testing.T) {
			if err := askAs(t, connection.Target(), server, c.authority, c.name); status.Code(err) != c.code ||
				!strings.Contains(status.Convert(err).Message(), c.want) {
				t.Errorf("got %v, want %s %s", err, c.code, c.want)
			}
		})
	}
	put(t, file("ca.crt"), others.PEM)
	if err := askAs(t, connection.Target(), server, others, "engine"); err != nil {
		t.Errorf("after the rotation: %v", err)
	}
	if err := askAs(t, connection.Target(), server, engines, "engine"); err == nil {
		t.Error("a certificate of the authority before is good after the rotation")
	}
}

func TestCallersNeedAToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	put(t, file, []byte("first\nsecond\n"))
	connection, _ := start(t, hook.ServeOptions{Options: hook.Options{Log: slog.New(slog.DiscardHandler)},
		TokenFile: file}, empty)
	ask := func(header ...string) error {
		ctx := t.Context()
		for _, value := range header {
			ctx = metadata.AppendToOutgoingContext(ctx, "authorization", value)
		}
		_, err := compositev1.NewCompositeHookServiceClient(connection).Sync(ctx, request())
		return err
	}
	for name, c := range map[string]struct {
		header []string
		code   codes.Code
	}{
		"a token":           {[]string{"Bearer first"}, codes.OK},
		"the other token":   {[]string{"Bearer second"}, codes.OK},
		"none":              {nil, codes.Unauthenticated},
		"a wrong one":       {[]string{"Bearer third"}, codes.Unauthenticated},
		"an empty one":      {[]string{"Bearer "}, codes.Unauthenticated},
		"the beginning":     {[]string{"Bearer firs"}, codes.Unauthenticated},
		"two":               {[]string{"Bearer third", "Bearer first"}, codes.Unauthenticated},
		"of another scheme": {[]string{"Basic first"}, codes.Unauthenticated},
	} {
		if err := ask(c.header...); status.Code(err) != c.code || strings.Contains(status.Convert(err).Message(), "first") {
			t.Errorf("%s: got %v, want %s", name, err, c.code)
		}
	}
	t.Run("the body is not read", func(t *testing.T) {
		for _, method := range []string{compositev1.CompositeHookService_Sync_FullMethodName,
			streamv1.HookStreamService_Connect_FullMethodName} {
			call, err := connection.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
			if err != nil {
				t.Fatal(err)
			}
			if err := call.RecvMsg(&hookv1.ObservedObject{}); status.Code(err) != codes.Unauthenticated {
				t.Errorf("%s: got %v, want UNAUTHENTICATED", method, err)
			}
		}
	})
	if _, err := healthv1.NewHealthClient(connection).Check(t.Context(), &healthv1.HealthCheckRequest{}); err != nil {
		t.Errorf("health: %v", err)
	}
	put(t, file, []byte("third"))
	if before, after := ask(
		"Bearer first",
	), ask(
		"Bearer third",
	); status.Code(before) != codes.Unauthenticated ||
		after != nil {
		t.Errorf("after the rotation: got %v with the token before, %v with the new one", before, after)
	}
	put(t, file, []byte("\n"))
	if err := ask("Bearer "); status.Code(err) != codes.Unavailable {
		t.Errorf("without tokens: got %v, want UNAVAILABLE", err)
	}
	put(t, file, []byte("fourth"))
	if err := ask("Bearer fourth"); err != nil {
		t.Errorf("with a token again: %v", err)
	}
}

func TestAnOpenServerIsWarnedOf(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	put(t, file, []byte("token"))
	for name, c := range map[string]struct {
		o    hook.ServeOptions
		want bool
	}{
		"on all addresses":               {hook.ServeOptions{Listen: "0.0.0.0:0"}, true},
		"on all addresses, with a token": {hook.ServeOptions{Listen: "0.0.0.0:0", TokenFile: file}, false},
		"on loopback":                    {hook.ServeOptions{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			log := &logged{}
			c.o.Log = slog.New(plain{log})
			_, stop := start(t, c.o, empty)
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(log.String(), "WARN anyone who reaches this address can call the hook"); got != c.want {
				t.Errorf("got the log %q, want a warning: %t", log, c.want)
			}
		})
	}
}

// TestStrangersSendLittle bounds the bytes of a caller without a token before it is rejected.
func TestStrangersSendLittle(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	put(t, file, []byte("token"))
	connection, _ := start(t, hook.ServeOptions{TokenFile: file}, empty)
	to, err := net.Dial("tcp", connection.Target())
	if err != nil {
		t.Fatal(err)
	}
	//nolint:errcheck // nothing is lost
	defer to.Close()
	// empty settings
	if _, err := to.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")); err != nil {
		t.Fatal(err)
	}
	frame := make([]byte, 9) // RFC 9113, section 4.1; the first one has the settings (3.4)
	if _, err := io.ReadFull(to, frame); err != nil {
		t.Fatal(err)
	}
	payload := make([]byte, int(frame[1])<<8|int(frame[2]))
	if _, err := io.ReadFull(to, payload); err != nil {
		t.Fatal(err)
	}
	got := map[uint16]uint32{}
	for setting := range slices.Chunk(payload, 6) {
		got[binary.BigEndian.Uint16(setting)] = binary.BigEndian.Uint32(setting[2:])
	}
	for setting, most := range map[uint16]uint32{3 /* MAX_CONCURRENT_STREAMS */ : 1000,
		6 /* MAX_HEADER_LIST_SIZE */ : 64 << 10} {
		if value, set := got[setting]; !set || value > most {
			t.Errorf("setting %d is %d (set: %t), want at most %d", setting, value, set, most)
		}
	}
}
