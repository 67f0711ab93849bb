package integration

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/kit"
	"github.com/hookloop/hookloop/test/serve"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// breaker is a proxy of an API server with watches that a test can cut. The API server itself ends
// a watch only minutes after the right to it is revoked.
type breaker struct {
	proxy http.Handler

	mu      sync.Mutex // guards cancels
	cancels []context.CancelFunc
}

// ServeHTTP forwards a request.
func (b *breaker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	if r.URL.Query().Get("watch") != "" {
		b.mu.Lock()
		b.cancels = append(b.cancels, cancel)
		b.mu.Unlock()
	}
	b.proxy.ServeHTTP(w, r.WithContext(ctx))
}

// cut ends the open watches.
func (b *breaker) cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, cancel := range b.cancels {
		cancel()
	}
	b.cancels = nil
}

// breakerFor starts a breaker in front of the API server, for a client with the rights of config,
// and writes a kubeconfig for it.
func breakerFor(k *kit.Kit, config *rest.Config) (*breaker, string) {
	k.Helper()
	target, err := url.Parse(config.Host)
	if err != nil {
		k.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		k.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport = transport
	proxy.FlushInterval = -1
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	b := &breaker{proxy: proxy}
	server := httptest.NewServer(b)
	k.Cleanup(func() {
		b.cut()
		server.Close()
	})
	file := filepath.Join(k.TempDir(), "kubeconfig")
	if err := cluster.WriteKubeconfig(&rest.Config{Host: server.URL}, file); err != nil {
		k.Fatal(err)
	}
	return b, file
}

// engineWithRoles runs an engine as a ServiceAccount with the rights of the production manifests
// and those that bind gives it.
func engineWithRoles(k *kit.Kit, rules map[string]string) (e *serve.Engine, cut func()) {
	k.Helper()
	config, err := k.Cluster.ServiceAccount(k.Context(), k.Namespace, "engine")
	if err != nil {
		k.Fatal(err)
	}
	k.ApplyFile(filepath.Join(cluster.Root(), "manifests", "production", "engine-role.yaml"))
	grant(k, "hookloop-engine")
	for name, rule := range rules {
		k.Apply(
			"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: " + name + "-$NAME}, " +
				"rules: [" + rule + "]}")
		k.Cleanup(func() { k.Delete("rbac.authorization.k8s.io/v1/ClusterRole", name+"-"+k.Name) })
		grant(k, name+"-"+k.Name)
	}
	b, kubeconfig := breakerFor(k, config)
	e, err = serve.Start(k.Context(), serve.Config{
		Kubeconfig: kubeconfig,
		Flags:      []string{"--stale-view-after=1s", "--target-label-selector=" + own + ",test=" + k.Name},
	})
	if e != nil {
		k.Own(e.Process)
	}
	if err != nil {
		k.Fatal(err)
	}
	return e, b.cut
}

// grant binds a ClusterRole to the engine's ServiceAccount.
func grant(k *kit.Kit, role string) {
	k.Helper()
	k.Apply("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: " + role + "-$NS}\n" +
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: " + role + "}\n" +
		"subjects: [{kind: ServiceAccount, name: engine, namespace: $NS}]")
	k.Cleanup(func() { revoke(k, role) })
}

func revoke(k *kit.Kit, role string) {
	k.Helper()
	k.Delete("rbac.authorization.k8s.io/v1/ClusterRoleBinding", role+"-"+k.Namespace)
}

// awaitForbidden waits until the API server refuses watches of a resource to the engine's
// ServiceAccount: it notices a revoked right a moment later.
func awaitForbidden(k *kit.Kit, resource string) {
	k.Helper()
	reviews := kubernetes.NewForConfigOrDie(k.Cluster.Admin()).AuthorizationV1().SubjectAccessReviews()
	k.Eventually("watches of "+resource+" are forbidden", func() error {
		review, err := reviews.Create(k.Context(), &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{
				User:               "system:serviceaccount:" + k.Namespace + ":engine",
				ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "watch", Group: k.Group, Resource: resource},
			},
		}, metav1.CreateOptions{})
		if err == nil && review.Status.Allowed {
			err = errors.New("they are allowed")
		}
		return err
	})
}

// TestStaleView revokes the right to watch the children while the controller runs. The engine
// decides nothing from objects that may be stale. The condition, an Event and a metric name the
// resource, and all recover with the right.
func TestStaleView(t *testing.T) {
	k := start(t)
	k.CRD("Web", "Namespaced")
	k.CRD("Ball", "Namespaced")
	all := func(resource string) string {
		return "{apiGroups: [$GROUP], resources: [" + resource + "], verbs: ['*']}"
	}
	e, cut := engineWithRoles(k, map[string]string{"webs": all("webs, webs/status"), "balls": all("balls")})
	ball := func(text string) string {
		return "{apiVersion: $GROUP/v1, kind: Ball, metadata: {name: ball}, spec: {text: " + text + "}}"
	}
	k.Run(kit.Composite{
		Parent:   "webs",
		Children: []string{"$GROUP/v1/balls InPlace"},
		Sync:     mirror(t),
		Labels:   map[string]any{"engine": "own", "test": k.Name},
	})
	k.Apply(parent("web", ball("one")))
	await(k, "Ball", "ball", "spec.text", "one")

	revoke(k, "balls-"+k.Name)
	awaitForbidden(k, "balls") // a watch that begins earlier stays open
	cut()
	k.AwaitReady(v1alpha1.ReasonStaleView)
	ready := kit.Condition(k.Get(kit.CompositeController, k.Name), v1alpha1.ConditionReady)
	for _, want := range []string{"the view of balls." + k.Group + "/v1 is stale since ", "is forbidden"} {
		if message := fmt.Sprint(ready["message"]); ready["status"] != "False" || !strings.Contains(message, want) {
			t.Errorf("the condition is %v, want False, with %q", ready, want)
		}
	}
	k.AwaitControllerEvent(v1alpha1.ReasonStaleView)
	text, err := serve.Fetch(t.Context(), "http://"+e.Metrics+"/metrics")
	if age := `hookloop_cache_view_age_seconds{resource="balls.` + k.Group + `/v1"}`; err != nil ||
		!strings.Contains(text, age) ||
		strings.Contains(text, age+" 0\n") {
		t.Errorf("metric %s is not above 0 (%v)", age, err)
	}
	k.Apply(parent("web")) // without the ball
	k.AwaitFault("Web", "web", "StaleView", "the view of balls."+k.Group+"/v1 is stale since ")
	if got := field(k, "Ball", "ball", "spec.text"); got != "one" {
		t.Errorf("the ball has %q, want it untouched", got)
	}

	k.Apply(parent("web", ball("two")))
	grant(k, "balls-"+k.Name)
	k.AwaitReady(v1alpha1.ReasonRunning)
	await(k, "Ball", "ball", "spec.text", "two")
	k.AwaitSynced("Web", "web")
}
