package auth

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"github.com/hookloop/hookloop/internal/protocol/grpctest"
	"github.com/hookloop/hookloop/internal/protocol/tlstest"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve is the right that most tests use.
var serve = Right{Verb: "serve", Group: "metacontroller.k8s.io", Resource: "hookworkers", Name: "hello"}

// fakeServer is a fake API server with tokens, rights and failures.
type fakeServer struct {
	*fake.Clientset
	mu         sync.Mutex
	tokens     map[string]authenticationv1.TokenReviewStatus
	allowed    map[string]bool // by user name
	why        authorizationv1.SubjectAccessReviewStatus
	down       error
	reviews    int
	lastReview *authorizationv1.SubjectAccessReviewSpec
}

func newFakeServer() *fakeServer {
	d := &fakeServer{
		Clientset: fake.NewClientset(), allowed: map[string]bool{},
		tokens: map[string]authenticationv1.TokenReviewStatus{"good": accepts("laptop", "1", "hookloop")},
	}
	d.PrependReactor("create", "tokenreviews", d.reviewToken)
	d.PrependReactor("create", "subjectaccessreviews", d.reviewAccess)
	return d
}

func accepts(name, uid string, audiences ...string) authenticationv1.TokenReviewStatus {
	return authenticationv1.TokenReviewStatus{
		Authenticated: true, Audiences: audiences, User: authenticationv1.UserInfo{
			Username: name,
			UID:      uid,
			Groups:   []string{"system:authenticated"},
			Extra:    map[string]authenticationv1.ExtraValue{"pod": {"a"}},
		},
	}
}

func (d *fakeServer) reviewToken(action clienttesting.Action) (bool, runtime.Object, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reviews++
	review := action.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview).DeepCopy()
	review.Status = d.tokens[review.Spec.Token]
	return true, review, d.down
}

func (d *fakeServer) reviewAccess(action clienttesting.Action) (bool, runtime.Object, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
	d.lastReview = &review.Spec
	review.Status = d.why
	review.Status.Allowed = d.allowed[review.Spec.User]
	return true, review, d.down
}

// change changes the state of the API server.
func (d *fakeServer) change(apply func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	apply()
}

// errDown and errForbidden are client-go's errors without an API server, and without the right to
// create reviews.
var (
	errDown      = errors.New("dial tcp 10.96.0.1:443: connect: connection refused")
	errForbidden = apierrors.NewForbidden(
		schema.GroupResource{Group: "authentication.k8s.io", Resource: "tokenreviews"}, "", errors.New("no"))
)

// guard returns a Guard that uses d.
func guard(t *testing.T, d *fakeServer, c clock.WithTickerAndDelayedExecution) *Guard {
	t.Helper()
	g, err := New(Config{Client: d, Audience: "hookloop", Clock: c})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// gateway is a Server with handlers that a test sets.
type gateway struct {
	streamv1.UnimplementedGatewayServiceServer
	*fakeServer
	t       *testing.T
	guard   *Guard
	clock   *clocktesting.FakeClock
	address string
	own     *tlstest.Authority // issues the gateway's certificate
	clients *tlstest.Authority // issues the callers' certificates
	files   TLS
	codec   *countingCodec
	// connections are the server's.
	connections *connections

	trigger func(context.Context) error
	attach  func(grpc.BidiStreamingServer[streamv1.HookMessage, streamv1.EngineMessage]) error
}

func (g *gateway) Trigger(ctx context.Context, _ *streamv1.TriggerRequest) (*streamv1.TriggerResponse, error) {
	return &streamv1.TriggerResponse{}, g.trigger(ctx)
}

func (g *gateway) Attach(stream grpc.BidiStreamingServer[streamv1.HookMessage, streamv1.EngineMessage]) error {
	return g.attach(stream)
}

// start serves a gateway on loopback until the test ends. Its Trigger requires the right to serve
// hello.
func start(t *testing.T, log logr.Logger) *gateway {
	t.Helper()
	g := &gateway{
		t: t, fakeServer: newFakeServer(), clock: clocktesting.NewFakeClock(time.Now()),
		own: tlstest.NewAuthority(t), clients: tlstest.NewAuthority(t),
	}
	g.allowed["laptop"] = true
	g.guard = guard(t, g.fakeServer, g.clock)
	g.trigger = func(ctx context.Context) error {
		caller, err := g.guard.Authenticate(ctx)
		if err != nil {
			return err
		}
		return g.guard.Allow(ctx, caller, serve)
	}
	dir := t.TempDir()
	g.files = TLS{
		Certificate: filepath.Join(dir, "tls.crt"),
		Key:         filepath.Join(dir, "tls.key"),
		ClientCA:    filepath.Join(dir, "ca.crt"),
	}
	g.certify(g.own)
	write(t, g.files.ClientCA, g.clients.PEM)
	g.codec = &countingCodec{CodecV2: encoding.GetCodecV2("proto")}
	server, err := g.guard.NewServer(ServerConfig{TLS: g.files, Log: log, Codec: g.codec})
	if err != nil {
		t.Fatal(err)
	}
	g.connections = server.connections
	g.listen(server)
	return g
}

func (g *gateway) listen(server *Server) {
	g.t.Helper()
	streamv1.RegisterGatewayServiceServer(server, g)
	g.address = grpctest.Serve(g.t, server)
}

// certify issues a new certificate for the gateway.
func (g *gateway) certify(a *tlstest.Authority) {
	certificate, key := a.Issue("gateway")
	write(g.t, g.files.Certificate, certificate)
	write(g.t, g.files.Key, key)
}

func write(t *testing.T, file string, data []byte) {
	t.Helper()
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// clientTLS returns a client's TLS configuration.
func clientTLS(t *testing.T, server *tlstest.Authority, certificates ...tls.Certificate) *tls.Config {
	t.Helper()
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool(), Certificates: certificates}
	if !config.RootCAs.AppendCertsFromPEM(server.PEM) {
		t.Fatal("the authority's certificate is not PEM")
	}
	return config
}

// clientCertificate issues a client certificate.
func clientCertificate(t *testing.T, a *tlstest.Authority, name string) tls.Certificate {
	t.Helper()
	pair, err := tls.X509KeyPair(a.Issue(name))
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// dial opens a new connection.
func (g *gateway) dial(security credentials.TransportCredentials) streamv1.GatewayServiceClient {
	g.t.Helper()
	connection, err := grpc.NewClient("passthrough:"+g.address, grpc.WithTransportCredentials(security))
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = connection.Close() })
	return streamv1.NewGatewayServiceClient(connection)
}

// trusted dials with the gateway's CA and the given client certificates.
func (g *gateway) trusted(certificates ...tls.Certificate) streamv1.GatewayServiceClient {
	g.t.Helper()
	return g.dial(credentials.NewTLS(clientTLS(g.t, g.own, certificates...)))
}

// call calls Trigger with the given values of the metadata authorization.
func call(t *testing.T, client streamv1.GatewayServiceClient, authorization ...string) *status.Status {
	t.Helper()
	ctx := t.Context()
	for _, value := range authorization {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", value)
	}
	_, err := client.Trigger(ctx, &streamv1.TriggerRequest{})
	return status.Convert(err)
}

// check compares a status with a code and with parts of its message.
func check(t *testing.T, got *status.Status, code codes.Code, says ...string) {
	t.Helper()
	if got.Code() != code {
		t.Fatalf("%s: %q, want %s", got.Code(), got.Message(), code)
	}
	for _, part := range says {
		if !strings.Contains(got.Message(), part) {
			t.Errorf("the message is %q, want it to say %q", got.Message(), part)
		}
	}
}
