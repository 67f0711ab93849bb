package integration

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/internal/localplane"
	"github.com/hookloop/hookloop/test/kit"
	"github.com/hookloop/hookloop/test/serve"
	rbacv1 "k8s.io/api/rbac/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// exactControllers are one controller of each kind. No two of them use the same resource, and the
// children of the composite have all update methods.
const exactControllers = `
apiVersion: metacontroller.k8s.io/v1alpha1
kind: CompositeController
metadata: {name: $NAME, labels: {engine: own, test: $NAME}}
spec:
  parentResource: {apiVersion: $GROUP/v1, resource: webs}
  childResources:
  - {apiVersion: v1, resource: configmaps, updateStrategy: {method: InPlace}}
  - {apiVersion: v1, resource: resourcequotas, updateStrategy: {method: Recreate}}
  - {apiVersion: v1, resource: serviceaccounts}
  - {apiVersion: v1, resource: services, updateStrategy: {method: RollingInPlace}}
  - {apiVersion: v1, resource: limitranges, updateStrategy: {method: RollingRecreate}}
  hooks:
    sync: {webhook: {url: "$URL", timeout: 30s}}
    finalize: {webhook: {url: "$URL", timeout: 30s}}
    customize: {webhook: {url: "$RELATED", timeout: 30s}}
  endpointConfigs:
  - {host: "$HOST", basicAuth: {secretRef: {name: password, namespace: $NS}}}
---
apiVersion: metacontroller.k8s.io/v1alpha1
kind: DecoratorController
metadata: {name: $NAME, labels: {engine: own, test: $NAME}}
spec:
  resources: [{apiVersion: $GROUP/v1, resource: gears}]
  attachments: [{apiVersion: policy/v1, resource: poddisruptionbudgets, updateStrategy: {method: InPlace}}]
  hooks:
    sync: {webhook: {url: "$URL", timeout: 30s}}
---
apiVersion: metacontroller.k8s.io/v1alpha1
kind: MapController
metadata: {name: $NAME, labels: {engine: own, test: $NAME}}
spec:
  parentResource: {apiVersion: $GROUP/v1, resource: balls}
  inputResources: [{apiVersion: v1, resource: podtemplates}]
  outputResources: [{apiVersion: networking.k8s.io/v1, resource: networkpolicies, updateStrategy: {method: InPlace}}]
  hooks:
    map: {webhook: {url: "$MAP", timeout: 30s}}
`

// TestPrintedRolesAreExact runs an engine with the roles that "hookloop rbac --engine" prints, for
// controllers of each kind, each update method, both apply strategies, and controllers of files. A
// proxy records the requests: none is refused, and each granted right is used, so an engine without
// it would be refused. unusedRights has the exceptions.
func TestPrintedRolesAreExact(t *testing.T) {
	for _, test := range []struct {
		name          string
		flags, engine []string
		files         bool
	}{
		{name: "dynamic apply"},
		{"server-side apply", []string{"--server-side-apply"}, []string{"--apply-strategy=server-side-apply"}, false},
		{"files", []string{"--from-files"}, nil, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			k := start(t)
			for _, kind := range []string{"Web", "Gear", "Ball"} {
				k.CRD(kind, "Namespaced")
			}
			e := newExact(t, k)
			dir := rbacFolder(k, e.controllers, "webs", "gears", "balls")
			account := k.Namespace + "/engine"
			name := "exact-" + k.Name
			roles, code := hookloop(k, append([]string{"rbac", "-f", dir, "--engine", "--name", name, "--related",
				"replicationcontrollers", "--service-account", account}, test.flags...)...)
			if code != 0 {
				t.Fatalf("hookloop rbac: exit code %d, want 0", code)
			}
			k.Apply(roles)
			t.Cleanup(func() {
				for _, suffix := range []string{"", "-engine"} {
					k.Delete("rbac.authorization.k8s.io/v1/ClusterRole", name+suffix)
					k.Delete("rbac.authorization.k8s.io/v1/ClusterRoleBinding", name+suffix)
				}
			})
			flags := append(slices.Clone(test.engine), "--leader-election", "--leader-election-namespace="+k.Namespace,
				"--unrestricted-secret-namespaces="+k.Namespace)
			if test.files {
				flags = append(flags, "-f", filepath.Join(dir, "controllers.yaml"))
			} else {
				flags = append(flags, "--target-label-selector="+own+",test="+k.Name)
			}
			e.start(flags)
			if !test.files {
				k.Apply(e.controllers)
				t.Cleanup(e.remove)
				k.AwaitReady(v1alpha1.ReasonRunning)
			}
			e.story()
			e.compare(roles)
		})
	}
}

// unusedRights are granted rights that the story does not use, with the reason for each.
var unusedRights = []struct {
	right *regexp.Regexp
	why   string
}{
	{regexp.MustCompile(`^list `), "without a streamed first list of a watch, as before Kubernetes 1.32"},
	{regexp.MustCompile(`^get `), "single reads past the cache, after a conflict; list reveals no less"},
	{regexp.MustCompile(`^create /events$`), "an Event about a parent; controllers of files have none"},
	{regexp.MustCompile(`^patch /events$`), "an Event that is repeated"},
	{regexp.MustCompile(`^patch metacontroller\.k8s\.io/controllerrevisions$`), "the adoption of a record"},
	{regexp.MustCompile(`^update /(limitranges|resourcequotas)$`), "the dry run before a child is recreated again"},
	{regexp.MustCompile(`^patch networking\.k8s\.io/networkpolicies$`), "the adoption of an output"},
}

// exact is an engine behind a proxy that records the rights which its requests use.
type exact struct {
	*kit.Kit
	controllers string

	mu      sync.Mutex // guards the fields below
	used    sets.Set[string]
	refused []string
}

// newExact makes the hooks and the controllers.
func newExact(t *testing.T, k *kit.Kit) *exact {
	k.Helper()
	hook := mirror(t)
	at, err := url.Parse(hook)
	if err != nil {
		k.Fatal(err)
	}
	related := k.Hook(func(kit.Request) any {
		return map[string]any{"relatedResources": []any{map[string]any{
			"apiVersion": "v1", "resource": "replicationcontrollers", "labelSelector": map[string]any{},
		}}}
	})
	mapped := k.Hook(func(r kit.Request) any {
		_, name, _ := strings.Cut(r.MapKey, "/")
		version, _ := r.Input["metadata"].(map[string]any)["annotations"].(map[string]any)["version"].(string)
		return map[string]any{"outputs": []any{map[string]any{
			"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
			"metadata": map[string]any{
				"name": name[strings.LastIndex(name, "/")+1:], "labels": map[string]any{"version": version},
			},
			"spec": map[string]any{"podSelector": map[string]any{}},
		}}}
	})
	k.Object("v1/Secret", "password").Set("stringData.username", "ann").Set("stringData.password", "secret").Apply()
	return &exact{Kit: k, used: sets.New[string](), controllers: strings.NewReplacer(
		"$URL", hook, "$RELATED", related.URL, "$MAP", mapped.URL, "$HOST", at.Host).Replace(k.Expand(exactControllers))}
}

// start runs the engine as its ServiceAccount, behind the proxy.
func (e *exact) start(flags []string) {
	e.Helper()
	config, err := e.Cluster.ServiceAccount(e.Context(), e.Namespace, "engine")
	if err != nil {
		e.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		e.Fatal(err)
	}
	host, err := url.Parse(config.Host)
	if err != nil {
		e.Fatal(err)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(host) }, Transport: transport, FlushInterval: -1,
		ModifyResponse: e.record,
		ErrorHandler:   func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	})
	e.Cleanup(func() {
		proxy.CloseClientConnections()
		proxy.Close()
		utilnet.CloseIdleConnectionsFor(transport)
	})
	kubeconfig := filepath.Join(e.TempDir(), "kubeconfig")
	if err := localplane.WriteKubeconfig(&rest.Config{Host: proxy.URL}, kubeconfig); err != nil {
		e.Fatal(err)
	}
	engine, err := serve.Start(e.Context(), serve.Config{Kubeconfig: kubeconfig, Flags: flags})
	if engine != nil {
		e.Own(engine.Process)
	}
	if err != nil {
		e.Fatal(err)
	}
}

// record notes the right that a request uses.
func (e *exact) record(r *http.Response) error {
	prefixes := &request.RequestInfoFactory{
		APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
	}
	i, err := prefixes.NewRequestInfo(r.Request)
	if err != nil || !i.IsResourceRequest {
		return err
	}
	right := strings.TrimSuffix(i.Verb+" "+i.APIGroup+"/"+i.Resource+"/"+i.Subresource, "/")
	e.mu.Lock()
	defer e.mu.Unlock()
	e.used.Insert(right, right+" "+i.Name)
	if r.StatusCode == http.StatusForbidden {
		e.refused = append(e.refused, right+" "+i.Namespace+"/"+i.Name)
	}
	return nil
}

// remove deletes the controllers.
func (e *exact) remove() {
	for _, kind := range []string{"CompositeController", "DecoratorController", "MapController"} {
		e.Delete("metacontroller.k8s.io/v1alpha1/"+kind, e.Name)
	}
}

// exactChildren are the children of the composite, with a place for the version.
var exactChildren = []struct{ kind, fields string }{
	{"ConfigMap", "data: {version: VERSION}"},
	{"ResourceQuota", "spec: {hard: {pods: COUNT}}"},
	{"ServiceAccount", ""},
	{"Service", "spec: {ports: [{port: PORT}]}"},
	{"LimitRange", "spec: {limits: [{type: Pod, max: {cpu: COUNT}}]}"},
}

// story adopts orphans, creates, changes and deletes children of each kind, and finalizes. It ends
// when the lease has been renewed, too.
func (e *exact) story() {
	e.Helper()
	for _, c := range exactChildren {
		e.Apply("{apiVersion: v1, kind: " + c.kind + ", metadata: {name: orphan, namespace: $NS, labels: {app: web}}, " +
			e.at(c.fields, "one") + "}")
	}
	for _, version := range []string{"one", "two"} {
		e.Apply(e.web(version))
		e.Apply("apiVersion: $GROUP/v1\nkind: Gear\nmetadata: {name: gear, namespace: $NS}\n" +
			"spec: {answer: {labels: {seen: " + version + "}, status: {seen: " + version + "}, " +
			"attachments: [{apiVersion: policy/v1, kind: PodDisruptionBudget, " +
			"metadata: {name: gear, labels: {version: " + version + "}}, " +
			"spec: {selector: {matchLabels: {app: gear}}}}]}}")
		e.Apply("{apiVersion: v1, kind: PodTemplate, metadata: {name: input, namespace: $NS, annotations: {version: " +
			version + "}}, template: {spec: {containers: [{name: a, image: a}]}}}")
		e.Object("Ball", "ball").Apply()
		for _, c := range exactChildren {
			if c.kind != "ServiceAccount" || version == "one" { // its method is OnDelete
				await(e.Kit, "v1/"+c.kind, "page", "metadata.labels.version", version)
			}
			awaitGone(e.Kit, "v1/"+c.kind, "orphan")
		}
		await(e.Kit, "policy/v1/PodDisruptionBudget", "gear", "metadata.labels.version", version)
		await(e.Kit, "Gear", "gear", "metadata.labels.seen", version)
		await(e.Kit, "networking.k8s.io/v1/NetworkPolicy", "input", "metadata.labels.version", version)
	}
	e.Apply(`
apiVersion: $GROUP/v1
kind: Gear
metadata:
  name: gear
  namespace: $NS
spec:
  answer:
    attachments: []
`)
	awaitGone(e.Kit, "policy/v1/PodDisruptionBudget", "gear")
	e.Delete("v1/PodTemplate", "input")
	awaitGone(e.Kit, "networking.k8s.io/v1/NetworkPolicy", "input")
	e.Delete("Web", "web")
	awaitGone(e.Kit, "Web", "web")
	e.Eventually("the leader renews its lease", func() error {
		e.mu.Lock()
		defer e.mu.Unlock()
		if !e.used.Has("update coordination.k8s.io/leases") {
			return errors.New("it has not")
		}
		return nil
	})
}

// at fills a version in.
func (e *exact) at(text, version string) string {
	count := `"1"`
	port := "80"
	if version == "two" {
		count = `"2"`
		port = "81"
	}
	return strings.NewReplacer("VERSION", version, "COUNT", count, "PORT", port).Replace(text)
}

// web is the composite's parent with children of a version.
func (e *exact) web(version string) string {
	var children []string
	for _, c := range exactChildren {
		children = append(children, "{apiVersion: v1, kind: "+c.kind+", metadata: {name: page, labels: {app: web, version: "+
			version+"}}, "+e.at(c.fields, version)+"}")
	}
	return "apiVersion: $GROUP/v1\nkind: Web\nmetadata: {name: web, namespace: $NS}\n" +
		"spec: {selector: {matchLabels: {app: web}}, finally: {finalized: true}, answer: {status: {version: " + version +
		"}, children: [" + strings.Join(children, ", ") + "]}}"
}

// compare compares the printed rights with those that were used.
func (e *exact) compare(roles string) {
	e.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.refused) > 0 {
		e.Errorf("the API server has refused:\n%s", strings.Join(e.refused, "\n"))
	}
	var unused []string
	for document := range strings.SplitSeq(roles, "---\n") {
		var role rbacv1.ClusterRole // a Role has the same rules
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			e.Fatal(err)
		}
		for _, rule := range role.Rules {
			for _, right := range rightsOf(rule) {
				if !e.used.Has(right) {
					unused = append(unused, right)
				}
			}
		}
	}
	for _, exception := range unusedRights {
		unused = slices.DeleteFunc(unused, exception.right.MatchString)
	}
	if len(unused) > 0 {
		e.Errorf("granted, but not used:\n%s", strings.Join(unused, "\n"))
	}
}

// rightsOf are the single rights of a rule, as record notes them.
func rightsOf(rule rbacv1.PolicyRule) []string {
	var all []string
	for _, resource := range rule.Resources {
		for _, verb := range rule.Verbs {
			all = append(all, strings.TrimSuffix(verb+" "+rule.APIGroups[0]+"/"+resource+" "+
				strings.Join(rule.ResourceNames, ""), " "))
		}
	}
	return all
}
