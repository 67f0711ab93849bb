// Package integration tests package auth on a real control plane, with the rights that the
// production manifests grant to the engine.
//
// "make controlplane" builds the programs first, and "make integration" runs these tests.
package integration

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"github.com/hookloop/hookloop/internal/protocol/grpctest"
	"github.com/hookloop/hookloop/internal/protocol/tlstest"
	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/kit"
	"github.com/hookloop/hookloop/transports/gateway/internal/auth"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
)

// TestMain runs the tests on a control plane of their own.
func TestMain(m *testing.M) { cluster.Main(m) }

// door is a gateway that only checks access: it accepts callers that may serve the kit's worker,
// and closes their streams when they lose the right. It queries the API server with the rights of
// the production manifests only.
type door struct {
	streamv1.UnimplementedGatewayServiceServer
	*kit.Kit
	guard     *auth.Guard
	authority *tlstest.Authority
	address   string

	mu  sync.Mutex // guards log
	log strings.Builder
}

// Trigger requires the right for one call.
func (d *door) Trigger(ctx context.Context, _ *streamv1.TriggerRequest) (*streamv1.TriggerResponse, error) {
	caller, err := d.guard.Authenticate(ctx)
	if err != nil {
		return nil, err
	}
	return &streamv1.TriggerResponse{}, d.guard.Allow(ctx, caller, d.right())
}

// Attach sends a message to accepted callers, and keeps the stream open.
func (d *door) Attach(stream grpc.BidiStreamingServer[streamv1.HookMessage, streamv1.EngineMessage]) error {
	caller, err := d.guard.Authenticate(stream.Context())
	if err != nil {
		return err
	}
	if err := d.guard.Allow(stream.Context(), caller, d.right()); err != nil {
		return err
	}
	kept, cancel := d.guard.Recheck(stream.Context(), caller, d.right())
	defer cancel()
	if err := stream.Send(&streamv1.EngineMessage{}); err != nil {
		return err
	}
	<-kept.Done()
	return context.Cause(kept)
}

func (d *door) right() auth.Right {
	return auth.Right{Verb: "serve", Group: "metacontroller.k8s.io", Resource: "hookworkers", Name: d.Name}
}

// open serves a door until the test ends. It checks open streams often; client certificates are
// those of clients.
func open(t *testing.T, clients []byte) *door {
	t.Helper()
	t.Parallel()
	d := &door{Kit: kit.New(t), authority: tlstest.NewAuthority(t)}
	d.delegate()
	config, err := d.Cluster.ServiceAccount(t.Context(), d.Namespace, "engine")
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1                         // the streams are checked all the time
	config.ContentType = "application/json" // so that the log shows bodies as text
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	d.guard, err = auth.New(auth.Config{
		Client: client, Audience: auth.DefaultAudience, Clock: clock.RealClock{}, Recheck: 50 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := auth.TLS{Certificate: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key")}
	certificate, key := d.authority.Issue("gateway")
	contents := map[string][]byte{files.Certificate: certificate, files.Key: key}
	if clients != nil {
		files.ClientCA = filepath.Join(dir, "ca.crt")
		contents[files.ClientCA] = clients
	}
	for name, data := range contents {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d.listen(t, auth.ServerConfig{TLS: files, Log: d.logger()})
	return d
}

// delegate binds the ServiceAccount engine to its role of the production manifests.
func (d *door) delegate() {
	d.ApplyFile(filepath.Join(cluster.Root(), "manifests", "production", "engine-role.yaml"))
	d.Apply(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: $NAME-engine}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: hookloop-engine}
subjects: [{kind: ServiceAccount, name: engine, namespace: $NS}]`)
}

// logger keeps all log lines of any verbosity.
func (d *door) logger() logr.Logger {
	return funcr.New(func(prefix, args string) {
		d.mu.Lock()
		defer d.mu.Unlock()
		fmt.Fprintln(&d.log, prefix, args)
	}, funcr.Options{Verbosity: 10})
}

func (d *door) listen(t *testing.T, s auth.ServerConfig) {
	t.Helper()
	server, err := d.guard.NewServer(s)
	if err != nil {
		t.Fatal(err)
	}
	streamv1.RegisterGatewayServiceServer(server, d)
	d.address = grpctest.Serve(t, server)
}

// dial opens a connection, with or without a client certificate.
func (d *door) dial(t *testing.T, certificates ...tls.Certificate) streamv1.GatewayServiceClient {
	t.Helper()
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool(), Certificates: certificates}
	config.RootCAs.AppendCertsFromPEM(d.authority.PEM)
	connection, err := grpc.NewClient("passthrough:"+d.address, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return streamv1.NewGatewayServiceClient(connection)
}

// grant applies the YAML of docs/guides/dial-in.md, with the kit's names: the ServiceAccount laptop
// may serve one worker.
func (d *door) grant(t *testing.T) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(cluster.Root(), "docs", "guides", "dial-in.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(data), "```yaml\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		d.Apply(strings.NewReplacer("shop", "$NS", "hello", "$NAME").Replace(block))
	}
}

// mayServe checks, by the command of the page, whether the ServiceAccount laptop has the right.
func (d *door) mayServe(t *testing.T, want string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "review.yaml")
	review := d.Expand(`
apiVersion: authorization.k8s.io/v1
kind: SubjectAccessReview
spec:
  user: system:serviceaccount:$NS:laptop
  resourceAttributes: {group: metacontroller.k8s.io, resource: hookworkers, name: $NAME, verb: serve}`)
	if err := os.WriteFile(file, []byte(review), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := d.Cluster.Kubectl(t.Context(), "create", "-f", file, "-o", "jsonpath={.status.allowed}")
	if err != nil || out != want {
		t.Errorf("kubectl printed %q (%v), want %q", out, err, want)
	}
}

// token creates a token of the ServiceAccount laptop for an audience.
func (d *door) token(audience string) string {
	d.Helper()
	out, err := d.Cluster.Kubectl(d.Context(), "-n", d.Namespace, "create", "token", "laptop", "--audience", audience)
	if err != nil {
		d.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// bearing returns the context of a call with a token.
func bearing(t *testing.T, token string) context.Context {
	t.Helper()
	return metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
}

// awaitCall repeats a call until it ends with a code, because the API server applies roles and
// bindings a moment after the write.
func (d *door) awaitCall(ctx context.Context, client streamv1.GatewayServiceClient, code codes.Code, part string) {
	d.Helper()
	d.Eventually("a call ends with "+code.String(), func() error {
		_, err := client.Trigger(ctx, &streamv1.TriggerRequest{})
		if got := status.Convert(err); got.Code() != code || !strings.Contains(got.Message(), part) {
			return fmt.Errorf("%s: %q, want %s with %q", got.Code(), got.Message(), code, part)
		}
		return nil
	})
}

// attach opens a stream that the door accepts.
func (d *door) attach(
	ctx context.Context,
	client streamv1.GatewayServiceClient,
) grpc.BidiStreamingClient[streamv1.HookMessage, streamv1.EngineMessage] {
	d.Helper()
	stream, err := client.Attach(ctx)
	if err != nil {
		d.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		d.Fatal(err)
	}
	return stream
}

// TestDialInWithToken follows a ServiceAccount's right: refused without it, accepted with it, and
// removed from an open stream when the right is revoked.
func TestDialInWithToken(t *testing.T) {
	d := open(t, nil)
	d.Object("v1/ServiceAccount", "laptop").Apply()
	client := d.dial(t)
	token := d.token("hookloop")
	ctx := bearing(t, token)
	refusal := d.Expand(
		`User "system:serviceaccount:$NS:laptop" cannot serve resource "hookworkers" in API group "metacontroller.k8s.io" ` +
			`with the name "$NAME"; grant it with a ClusterRole rule {apiGroups: ["metacontroller.k8s.io"], ` +
			`resources: ["hookworkers"], ` +
			`resourceNames: ["$NAME"], verbs: ["serve"]}`,
	)
	d.awaitCall(ctx, client, codes.PermissionDenied, refusal)
	d.mayServe(t, "false")

	d.grant(t)
	d.awaitCall(ctx, client, codes.OK, "")
	d.mayServe(t, "true")
	stream := d.attach(ctx, client)
	d.Delete("rbac.authorization.k8s.io/v1/ClusterRoleBinding", d.Expand("serve-$NAME"))
	_, err := stream.Recv()
	if got := status.Convert(err); got.Code() != codes.PermissionDenied || got.Message() != refusal {
		t.Errorf("the stream ends with %s: %q, want PermissionDenied: %q", got.Code(), got.Message(), refusal)
	}
	d.awaitCall(ctx, client, codes.PermissionDenied, refusal)
	d.mu.Lock()
	defer d.mu.Unlock()
	if strings.Contains(d.log.String(), token) {
		t.Error("the log has the token")
	}
}

// TestDialInWithAnotherToken uses tokens of other audiences and expired tokens, which are refused.
func TestDialInWithAnotherToken(t *testing.T) {
	d := open(t, nil)
	d.grant(t)
	client := d.dial(t)
	good := bearing(t, d.token("hookloop"))
	d.awaitCall(good, client, codes.OK, "")
	for name, ctx := range map[string]context.Context{
		"another audience": bearing(t, d.token("https://kubernetes.default.svc")),
		"no token at all":  bearing(t, "nonsense"),
		"nothing":          t.Context(),
	} {
		_, err := client.Trigger(ctx, &streamv1.TriggerRequest{})
		if got := status.Convert(err); got.Code() != codes.Unauthenticated ||
			!strings.Contains(got.Message(), `of the audience "hookloop"`) {
			t.Errorf("%s: %s: %q, want Unauthenticated that names the audience", name, got.Code(), got.Message())
		}
	}
	stream := d.attach(good, client)
	d.Delete("v1/ServiceAccount", "laptop")
	if _, err := stream.Recv(); status.Code(err) != codes.Unauthenticated {
		t.Errorf("without its ServiceAccount the stream ends with %v, want Unauthenticated", err)
	}
	d.awaitCall(good, client, codes.Unauthenticated, "the token is not accepted")
}

// TestDialInWithCertificate recognizes a user of the test's CA, and its group.
func TestDialInWithCertificate(t *testing.T) {
	c := cluster.Start(t)
	user, err := c.User("ann", "dialling-in")
	if err != nil {
		t.Fatal(err)
	}
	d := open(t, user.CAData)
	pair, err := tls.X509KeyPair(user.CertData, user.KeyData)
	if err != nil {
		t.Fatal(err)
	}
	client := d.dial(t, pair)
	d.awaitCall(t.Context(), client, codes.PermissionDenied, d.Expand(`User "ann" cannot serve resource "hookworkers"`))
	d.Apply(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: serve-$NAME}
rules: [{apiGroups: [metacontroller.k8s.io], resources: [hookworkers], resourceNames: [$NAME], verbs: [serve]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: serve-$NAME}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: serve-$NAME}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: dialling-in}]`)
	d.awaitCall(t.Context(), client, codes.OK, "")
	stream := d.attach(t.Context(), client)
	d.Delete("rbac.authorization.k8s.io/v1/ClusterRoleBinding", d.Expand("serve-$NAME"))
	if _, err := stream.Recv(); status.Code(err) != codes.PermissionDenied {
		t.Errorf("the stream ends with %v, want PermissionDenied", err)
	}
}
