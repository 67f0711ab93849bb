package integration

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/kit"
	"github.com/hookloop/hookloop/test/serve"
)

// rbacControllers are the controllers of TestPrintedRolesAreEnough.
const rbacControllers = `
apiVersion: metacontroller.k8s.io/v1alpha1
kind: CompositeController
metadata: {name: $NAME, labels: {engine: own, test: $NAME}}
spec:
  parentResource: {apiVersion: $GROUP/v1, resource: webs}
  childResources:
  - {apiVersion: v1, resource: configmaps, updateStrategy: {method: InPlace}}
  - {apiVersion: v1, resource: secrets}
  hooks:
    sync: {webhook: {url: "$URL", timeout: 30s}}
    finalize: {webhook: {url: "$URL", timeout: 30s}}
---
apiVersion: metacontroller.k8s.io/v1alpha1
kind: DecoratorController
metadata: {name: $NAME, labels: {engine: own, test: $NAME}}
spec:
  resources: [{apiVersion: $GROUP/v1, resource: gears}]
  attachments: [{apiVersion: v1, resource: services, updateStrategy: {method: InPlace}}]
  hooks:
    sync: {webhook: {url: "$URL", timeout: 30s}}
    finalize: {webhook: {url: "$URL", timeout: 30s}}
`

// TestPrintedRolesAreEnough runs an engine with exactly the roles that "hookloop rbac --engine"
// prints, through create, update, adoption, deletion and finalize. The API server refuses no
// request, and each granted right to write is used. Then one verb is taken away, and --check prints
// only that.
func TestPrintedRolesAreEnough(t *testing.T) {
	k := start(t)
	url := mirror(t)
	k.CRD("Web", "Namespaced")
	k.CRD("Gear", "Namespaced")
	controllers := strings.ReplaceAll(k.Expand(rbacControllers), "$URL", url)
	dir := rbacFolder(k, controllers, "webs", "gears")
	kubeconfig, err := k.Cluster.ServiceAccountKubeconfig(t.Context(), k.Namespace, "engine")
	if err != nil {
		t.Fatal(err)
	}
	account := k.Namespace + "/engine"
	name := "rbac-" + k.Name
	roles, code := hookloop(k, "rbac", "-f", dir, "--engine", "--name", name, "--service-account", account)
	if code != 0 {
		t.Fatalf("hookloop rbac: exit code %d, want 0", code)
	}
	check := func() (string, int) {
		return hookloop(k, "rbac", "-f", dir, "--engine", "--name", name, "--service-account", account,
			"--check", "--as", account, "--kubeconfig", k.Cluster.Kubeconfig())
	}
	all := strings.ReplaceAll(roles, name, name+"-missing")
	if out, code := check(); code != 1 || out != all {
		t.Errorf("before the roles exist: exit code %d and\n%s\nwant 1 and the roles", code, cmp.Diff(all, out))
	}
	k.Apply(roles)
	t.Cleanup(func() {
		for _, suffix := range []string{"", "-engine"} {
			k.Delete("rbac.authorization.k8s.io/v1/ClusterRole", name+suffix)
			k.Delete("rbac.authorization.k8s.io/v1/ClusterRoleBinding", name+suffix)
		}
	})
	k.Eventually("all rights are granted", func() error {
		if out, code := check(); code != 0 || out != "" {
			return fmt.Errorf("exit code %d:\n%s", code, out)
		}
		return nil
	})
	mark := k.Mark()
	engine := rbacEngine(k, kubeconfig)
	k.Apply(controllers)
	t.Cleanup(func() {
		k.Delete(kit.CompositeController, k.Name)
		k.Delete("metacontroller.k8s.io/v1alpha1/DecoratorController", k.Name)
	})
	k.AwaitReady(v1alpha1.ReasonRunning)
	rbacStory(k)
	rbacNothingRefused(k, engine, mark, "system:serviceaccount:"+k.Namespace+":engine")
	k.Patch("rbac.authorization.k8s.io/v1/ClusterRole", name, rbacWithoutDelete(k, name))
	want := "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: " + name + "-missing\n" +
		"rules:\n" +
		"# Child (InPlace) of CompositeController " + k.Name + ".\n" +
		"- apiGroups: [\"\"]\n  resources: [configmaps]\n  verbs: [delete]\n"
	k.Eventually("--check names the verb that was taken away", func() error {
		out, code := check()
		out, _, _ = strings.Cut(out, "---\n")
		if diff := cmp.Diff(want, out); code != 1 || diff != "" {
			return fmt.Errorf("exit code %d, -want +got:\n%s", code, diff)
		}
		return nil
	})
}

// TestCheckOfTenant grants the rights of the example tenant without one verb. --check prints only
// this, as the reference shows it.
func TestCheckOfTenant(t *testing.T) {
	k := start(t)
	dir := filepath.Join(cluster.Root(), "examples", "tenant")
	name := "tenant-" + k.Name
	account := k.Namespace + "/engine"
	role, code := hookloop(k, "rbac", "-f", dir, "--name", name)
	const all = "[get, list, watch, create, update, patch, delete]"
	less := strings.Replace(role, "resources: [namespaces, resourcequotas]\n  verbs: "+all,
		"resources: [namespaces]\n  verbs: "+strings.Replace(all, ", delete", "", 1)+
			"\n- apiGroups: [\"\"]\n  resources: [resourcequotas]\n  verbs: "+all, 1)
	if code != 0 || less == role {
		t.Fatalf("hookloop rbac: exit code %d and\n%s\nwant a rule about namespaces and resourcequotas", code, role)
	}
	k.Apply(strings.Replace(less, "  labels:\n    rbac.hookloop.dev/aggregate-to-hookloop: \"true\"\n", "", 1))
	k.Apply("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: " + name + "}\n" +
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: " + name + "}\n" +
		"subjects: [{kind: ServiceAccount, name: engine, namespace: $NS}]")
	t.Cleanup(func() {
		k.Delete("rbac.authorization.k8s.io/v1/ClusterRole", name)
		k.Delete("rbac.authorization.k8s.io/v1/ClusterRoleBinding", name)
	})
	page, err := os.ReadFile(filepath.Join(cluster.Root(), "docs", "reference", "command-line.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, want, _ := strings.Cut(string(page), "$ hookloop rbac -f examples/tenant --check --as hookloop-system/hookloop\n")
	want, _, _ = strings.Cut(want, "hookloop: 1 of ")
	k.Eventually("--check prints the block of the reference", func() error {
		out, code := hookloop(k, "rbac", "-f", dir, "--check", "--as", account, "--kubeconfig", k.Cluster.Kubeconfig())
		if diff := cmp.Diff(want, out); code != 1 || diff != "" {
			return fmt.Errorf("exit code %d, -want +got:\n%s", code, diff)
		}
		return nil
	})
}

// rbacFolder writes the controllers and the CRDs into a folder, as a user has them.
func rbacFolder(k *kit.Kit, controllers string, plurals ...string) string {
	k.Helper()
	dir := k.TempDir()
	files := map[string]string{"controllers.yaml": controllers}
	for _, plural := range plurals {
		text, err := k.Cluster.Kubectl(k.Context(), "get", "crd", plural+"."+k.Group, "-o", "json")
		if err != nil {
			k.Fatal(err)
		}
		files[plural+".json"] = text
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			k.Fatal(err)
		}
	}
	return dir
}

// hookloop runs a client command, and returns its standard output and exit code.
func hookloop(k *kit.Kit, args ...string) (string, int) {
	k.Helper()
	command := exec.CommandContext(k.Context(), serve.Program("hookloop"), args...)
	var errs strings.Builder
	command.Stderr = &errs
	out, err := command.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		k.Fatal(err)
	}
	if errs.Len() > 0 {
		k.Logf("hookloop %s: %s", args[0], errs.String())
	}
	return string(out), command.ProcessState.ExitCode()
}

func rbacEngine(k *kit.Kit, kubeconfig string) *serve.Engine {
	k.Helper()
	engine, err := serve.Start(k.Context(), serve.Config{Kubeconfig: kubeconfig, Flags: []string{
		"--target-label-selector=" + own + ",test=" + k.Name,
		"--leader-election", "--leader-election-namespace=" + k.Namespace,
	}})
	if engine != nil {
		k.Own(engine.Process)
	}
	if err != nil {
		k.Fatal(err)
	}
	return engine
}

// rbacStory makes the engine create, update, adopt and delete children, and finalize parents.
func rbacStory(k *kit.Kit) {
	k.Helper()
	web := func(children string) string {
		return "apiVersion: $GROUP/v1\nkind: Web\nmetadata: {name: web, namespace: $NS}\n" +
			"spec: {selector: {matchLabels: {app: web}}, finally: {finalized: true}, " +
			"answer: {children: [" + children + "]}}"
	}
	labelled := "metadata: {name: NAME, labels: {app: web}}"
	child := func(kind, name, data string) string {
		return "{apiVersion: v1, kind: " + kind + ", " + strings.Replace(labelled, "NAME", name, 1) + data + "}"
	}
	for _, kind := range []string{"ConfigMap", "Secret"} { // orphans, which are adopted
		k.Object("v1/"+kind, "orphan").Label("app", "web").Apply()
	}
	k.Apply(web(child("ConfigMap", "page", ", data: {text: one}") + ", " + child("Secret", "key", "")))
	await(k, "v1/ConfigMap", "page", "data.text", "one")
	awaitGone(k, "v1/ConfigMap", "orphan")
	awaitGone(k, "v1/Secret", "orphan")
	k.Apply(web(child("ConfigMap", "page", ", data: {text: two}") + ", " + child("Secret", "key", "")))
	await(k, "v1/ConfigMap", "page", "data.text", "two")
	gear := func(port string) string {
		return "apiVersion: $GROUP/v1\nkind: Gear\nmetadata: {name: gear, namespace: $NS}\n" +
			"spec: {finally: {finalized: true}, answer: {labels: {seen: " + port + "}, status: {seen: " + port + "}, " +
			"attachments: [{apiVersion: v1, kind: Service, metadata: {name: gear}, spec: {ports: [{port: " +
			strings.Trim(port, `"`) + "}]}}]}}"
	}
	for _, port := range []string{`"80"`, `"81"`} {
		k.Apply(gear(port))
		await(k, "Gear", "gear", "status.seen", strings.Trim(port, `"`))
		await(k, "Gear", "gear", "metadata.labels.seen", strings.Trim(port, `"`))
	}
	for _, kind := range []string{"Web", "Gear"} {
		k.Delete(kind, strings.ToLower(kind))
		awaitGone(k, kind, strings.ToLower(kind))
	}
}

// rbacNothingRefused checks that no request of the engine was refused, and that it has used each
// right to write.
func rbacNothingRefused(k *kit.Kit, engine *serve.Engine, mark cluster.Mark, user string) {
	k.Helper()
	metrics, err := serve.Fetch(k.Context(), "http://"+engine.Metrics+"/metrics")
	if err != nil {
		k.Fatal(err)
	}
	if !strings.Contains(metrics, `rest_client_requests_total{code="200"`) {
		k.Error("/metrics has no requests")
	}
	for line := range strings.Lines(metrics) {
		if strings.HasPrefix(line, `rest_client_requests_total{code="403"`) {
			k.Errorf("the API server has refused requests: %s\n%s", line, engine.Output())
		}
	}
	writes, err := k.Cluster.Writes(mark)
	if err != nil {
		k.Fatal(err)
	}
	used := map[string]bool{}
	for _, w := range writes {
		if w.User != user {
			continue
		}
		if w.Code == 403 {
			k.Errorf("the API server has refused: %s", w)
		}
		used[strings.TrimSuffix(w.Verb+" "+w.Resource+"/"+w.Subresource, "/")] = true
	}
	var unused []string
	for _, right := range []string{
		"patch webs", "patch webs/status", "patch gears", "patch gears/status",
		"create configmaps", "update configmaps", "patch configmaps", "delete configmaps",
		"create secrets", "patch secrets", "delete secrets", "create services", "update services", "delete services",
	} {
		if !used[right] {
			unused = append(unused, right)
		}
	}
	if len(unused) > 0 {
		k.Errorf("granted, but not used: %s; used: %v", strings.Join(unused, ", "), used)
	}
}

// rbacWithoutDelete returns a patch of the role that takes the verb delete on ConfigMaps away.
func rbacWithoutDelete(k *kit.Kit, name string) string {
	k.Helper()
	rules, _ := k.Get("rbac.authorization.k8s.io/v1/ClusterRole", name).Object["rules"].([]any)
	var texts []string
	for _, rule := range rules {
		r, _ := rule.(map[string]any)
		verbs, _ := r["verbs"].([]any)
		if fmt.Sprint(r["resources"]) == "[configmaps]" {
			verbs = slices.DeleteFunc(slices.Clone(verbs), func(v any) bool { return v == "delete" })
		}
		texts = append(texts, fmt.Sprintf("{apiGroups: %q, resources: %s, verbs: %s}",
			r["apiGroups"], quoted(r["resources"]), quoted(verbs)))
	}
	return "rules: [" + strings.Join(texts, ", ") + "]"
}

// quoted is a list in YAML.
func quoted(list any) string {
	items, _ := list.([]any)
	var texts []string
	for _, item := range items {
		texts = append(texts, fmt.Sprintf("%q", item))
	}
	return "[" + strings.Join(texts, ", ") + "]"
}
