package grpc

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
)

func TestFieldsAreChecked(t *testing.T) {
	cases := []struct{ field, want string }{
		{`{"timeout":""}`, "target: expected exactly one of target, service and worker"},
		{`{"target":"a:1","service":{"name":"b","namespace":"c","port":1}}`, "target: expected exactly one of"},
		{`{"service":{"name":"b","namespace":"c"}}`, `service: name is "b", namespace "c" and port 0; expected all three`},
		{`{"target":"unix:///run/hook.sock"}`, "target: \"/run/hook.sock\" is in no folder that --hook-socket-folders names"},
		{`{"target":"unix:hook.sock"}`, "target: expected the absolute path of a unix socket"},
		{`{"target":"unix-abstract:hook"}`, "expected host:port, dns:///host:port or unix:///path"},
		{`{"target":"xds:///hook"}`, "expected host:port, dns:///host:port or unix:///path"},
		{`{"worker":"a"}`, "worker: hooks cannot dial in, because there is no gateway; expected serve --gateway-address"},
		{`{"target":"a:1","mode":"Telex"}`, `mode: "Telex"; expected Stream or Unary`},
		{`{"target":"a:1","timeout":"soon"}`, `timeout: "soon" is no duration`},
		{`{"target":"a:1","caBundle":{"inline":"x"}}`, "caBundle.inline: has no certificate"},
		{`{"target":"a:1","caBundle":{"inline":"x"},"insecure":true}`, "insecure: is plain text"},
	}
	for _, c := range cases {
		if _, err := (&Transport{}).Open(settings(c.field)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.field, err, c.want)
		}
	}
	for field, address := range map[string]string{
		`{"service":{"name":"b","namespace":"c","port":9443}}`: "dns:///b.c:9443",
		`{"target":"[::1]:9443"}`:                              "[::1]:9443",
		`{"target":"unixhost:9443","timeout":"-1s"}`:           "unixhost:9443",
	} {
		opened := open(t, settings(field))
		if opened.Address != address {
			t.Errorf("%s: got address %q, want %q", field, opened.Address, address)
		}
	}
}

func TestAServerWithoutTheServiceIsNamed(t *testing.T) {
	target := serve(t, func(*grpc.Server) {})
	got := failure(t, fmt.Sprintf(`{"target":%q,"insecure":true}`, target), hook.Decorator)
	if got.Kind != hook.Failed ||
		!strings.Contains(got.Error(), "does not serve hookloop.decorator.v1.DecoratorHookService/Sync") {
		t.Errorf("got %s %v, want a failure that names the method", got.Kind, got)
	}
}

func TestAnUnhealthyHookIsUnreachable(t *testing.T) {
	state := health.NewServer()
	state.SetServingStatus("", healthv1.HealthCheckResponse_NOT_SERVING)
	sick := serveWith(t, state, registerEmpty)
	target := serve(t, registerEmpty)
	if got := failure(
		t,
		fmt.Sprintf(`{"target":%q,"insecure":true}`, sick),
		hook.Composite,
	); got.Kind != hook.Unreachable {
		t.Errorf("unhealthy: got %s %v, want %s", got.Kind, got, hook.Unreachable)
	}
	if got := failure(t, fmt.Sprintf(`{"target":%q,"insecure":true}`, target), hook.Composite); got.Kind != hook.Failed {
		t.Errorf("healthy: got %s %v, want %s, because the call arrives", got.Kind, got, hook.Failed)
	}
}

func TestMetadataAddressesAreRefused(t *testing.T) {
	got := failure(t, `{"target":"169.254.169.254:80","insecure":true}`, hook.Composite)
	if got.Kind != hook.Unreachable || !strings.Contains(got.Error(), "link-local or metadata address") {
		t.Errorf("got %s %v, want a refusal", got.Kind, got)
	}
}

func TestPlainTextOnlyIfTheSpecSaysSo(t *testing.T) {
	files := httptest.NewTLSServer(http.NotFoundHandler()) // for its certificate, which is for example.com
	t.Cleanup(files.Close)
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: files.Certificate().Raw})
	target := serve(t, registerEmpty, grpc.Creds(credentials.NewServerTLSFromCert(&files.TLS.Certificates[0])))
	cases := map[string]struct {
		field string
		want  hook.ErrorKind
	}{
		"trusted and named": {
			fmt.Sprintf(`{"target":%q,"serverName":"example.com","caBundle":{"inline":%q}}`, target, bundle),
			hook.Failed,
		},
		"another name": {
			fmt.Sprintf(`{"target":%q,"serverName":"other.test","caBundle":{"inline":%q}}`, target, bundle),
			hook.Unreachable,
		},
		"not trusted":       {fmt.Sprintf(`{"target":%q,"serverName":"example.com"}`, target), hook.Unreachable},
		"plain text to TLS": {fmt.Sprintf(`{"target":%q,"insecure":true}`, target), hook.Unreachable},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := failure(t, c.field, hook.Composite); got.Kind != c.want {
				t.Errorf("got %s %v, want %s", got.Kind, got, c.want)
			}
		})
	}
}

// registerEmpty serves the composite service without a method, so that it rejects all calls.
func registerEmpty(s *grpc.Server) {
	compositev1.RegisterCompositeHookServiceServer(s, compositev1.UnimplementedCompositeHookServiceServer{})
}

// settings returns the settings of a hook that is unary by default.
func settings(field string) hook.Config {
	if !strings.Contains(field, `"mode"`) {
		field = `{"mode":"Unary",` + field[1:]
	}
	return hook.Config{
		Kind:           hook.Composite,
		ControllerKind: "CompositeController",
		ControllerName: "hello",
		Op:             hook.Sync,
		Version:        "v2",
		Field:          json.RawMessage(field),
	}
}

// open opens a hook until the test ends.
func open(t *testing.T, s hook.Config) *hook.Opened {
	t.Helper()
	opened, err := (&Transport{}).Open(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := opened.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return opened
}

// ask sends one question to the sync hook.
func ask(t *testing.T, opened *hook.Opened, contract hook.ControllerKind) error {
	t.Helper()
	o, err := object.Decode([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`))
	if err != nil {
		t.Fatal(err)
	}
	_, err = opened.Ask(t.Context(), &hook.Question{Kind: contract, Op: hook.Sync, Controller: o, Parent: o})
	return err
}

// failure asks one question and returns the error.
func failure(t *testing.T, field string, contract hook.ControllerKind) *hook.Error {
	t.Helper()
	err := ask(t, open(t, settings(field)), contract)
	got, ok := err.(*hook.Error) //nolint:errorlint // the port returns the type itself
	if !ok {
		t.Fatalf("got %v, want a *hook.Error", err)
	}
	return got
}
