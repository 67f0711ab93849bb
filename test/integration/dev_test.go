package integration

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/internal/localplane"
	"github.com/hookloop/hookloop/internal/proc"
	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/kit"
	"github.com/hookloop/hookloop/test/serve"
)

// mark is an environment variable by which the processes of a session are found.
const mark = "HOOKLOOP_TEST_SESSION"

// devSession is a running "hookloop dev".
type devSession struct {
	*bareCluster
	t *testing.T
	*proc.Process
}

// dev starts a session. Its output is in both the log and the process's own.
func (b *bareCluster) dev(t *testing.T, args ...string) *devSession {
	t.Helper()
	return b.devOn(t, append([]string{"--kubeconfig", b.cluster.Kubeconfig()}, args...)...)
}

// devOn starts a session on the cluster that the arguments choose.
func (b *bareCluster) devOn(t *testing.T, args ...string) *devSession {
	t.Helper()
	p, err := proc.Start(proc.Spec{
		Name: "hookloop dev", Path: serve.Program("hookloop"), Args: append([]string{"dev"}, args...),
		Env: []string{mark + "=" + t.Name()},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("hookloop dev wrote:\n%s", p.Output())
		}
	})
	return &devSession{b, t, p}
}

// prints waits until the session has printed a text that many times.
func (d *devSession) prints(ctx context.Context, times int, text string) {
	d.t.Helper()
	d.await(ctx, d.t, "the line "+text, func() error {
		select {
		case <-d.Done():
			return fmt.Errorf("the session has ended: %w", d.Err())
		default:
		}
		if n := strings.Count(d.Output(), text); n < times {
			return fmt.Errorf("printed %d times, expected %d", n, times)
		}
		return nil
	})
}

// interrupt ends the session as Ctrl-C does, and checks that no process of it is left.
func (d *devSession) interrupt(ctx context.Context) {
	d.t.Helper()
	if err := d.Signal(syscall.SIGINT); err != nil {
		d.t.Fatal(err)
	}
	d.ends(ctx)
	if err := d.Err(); err != nil {
		d.t.Errorf("the session ended with %v", err)
	}
	d.leavesNone(ctx)
}

// ends waits for the end of the session.
func (d *devSession) ends(ctx context.Context) {
	d.t.Helper()
	d.await(ctx, d.t, "the end of the session", func() error {
		select {
		case <-d.Done():
			return nil
		default:
			return fmt.Errorf("it runs")
		}
	})
}

// fails waits for the end of the session, and checks that its last line is a problem with a text.
func (d *devSession) fails(ctx context.Context, texts ...string) {
	d.t.Helper()
	d.ends(ctx)
	lines := strings.Split(strings.TrimSpace(d.Output()), "\n")
	last := lines[len(lines)-1]
	for _, text := range texts {
		if d.Err() == nil || !strings.HasPrefix(last, "hookloop: ") || !strings.Contains(last, text) {
			d.t.Errorf("the session ended with %v and the line %q, expected %q", d.Err(), last, text)
		}
	}
}

// leavesNone checks that no process with the session's mark is left.
func (d *devSession) leavesNone(ctx context.Context) {
	d.t.Helper()
	d.await(ctx, d.t, "the end of the hook", func() error {
		if left := marked(d.t.Name()); len(left) > 0 {
			return fmt.Errorf("left: %q", left)
		}
		return nil
	})
}

// marked returns the command lines of the processes of a session.
func marked(session string) []string {
	var left []string
	environments, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range environments {
		data, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(data), mark+"="+session+"\x00") {
			continue
		}
		command, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		if len(command) > 0 { // a zombie has none
			left = append(left, strings.ReplaceAll(string(command), "\x00", " "))
		}
	}
	return left
}

var (
	clockTime = regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d`)
	duration  = regexp.MustCompile(`[0-9.]+ ms`)
)

// normal replaces times and durations.
func normal(text string) string {
	return duration.ReplaceAllString(clockTime.ReplaceAllString(text, "TIME"), "N ms")
}

// copyExample copies the files of an example into a new folder.
func copyExample(t *testing.T, name string, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, file := range files {
		data, err := os.ReadFile(filepath.Join(cluster.Root(), "examples", name, file))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// firstSync is what a session prints of a new HelloWorld.
const firstSync = "TIME composite/hello-webhook default/hello-webhook changed in N ms (sync N ms), " +
	`because HelloWorld hello-webhook changed
  + ConfigMap hello-webhook: desired, not there
  + Deployment hello-webhook: desired, not there
  + Service hello-webhook: desired, not there
  + Pod hello-webhook: desired, not there
  ~ status of HelloWorld hello-webhook
      status.children: nothing → 0
      status.conditions[Synced]: nothing → True ReconcileSuccess: the last sync had no fault
      status.greeting: nothing → "Hello, World!"
      status.ready: nothing → "0/0"
`

// devWebhook runs the example in Python: a change of the parent and a change of the hook's file are
// seen, and at the end nothing is left, neither processes nor objects.
func devWebhook(ctx context.Context, t *testing.T, b *bareCluster) {
	dir := copyExample(t, "hello-webhook", "controller.yaml", "crd.yaml", "hook.py")
	hook := filepath.Join(dir, "hook.py")
	hello := filepath.Join(cluster.Root(), "examples", "hello-webhook", "hello.yaml")
	// The child of the hook ignores SIGTERM.
	command := `(trap "" TERM; while :; do sleep 1000; done) & exec python3 -u ` + hook + " --port 0"
	d := b.dev(t, "-f", dir, "--watch", dir, "--cleanup", "--", "sh", "-c", command)
	d.prints(ctx, 1, "CustomResourceDefinition helloworlds.example.com created")
	d.prints(ctx, 1, "composite/hello-webhook Ready=True Running: the controller is running")
	b.kubectl(ctx, "apply", "-f", hello)
	d.await(ctx, t, "the first sync", func() error {
		if !strings.Contains(normal(d.Output()), firstSync) {
			return fmt.Errorf("expected\n%s", firstSync)
		}
		return nil
	})
	b.kubectl(ctx, "patch", "helloworld", "hello-webhook", "--type=merge", "-p", `{"spec":{"who":"you"}}`)
	d.prints(ctx, 1, `      data[index.html]: "Hello, World!\n" → "Hello, you!\n"`)
	text, err := os.ReadFile(hook)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(hook, []byte(strings.Replace(string(text), "Hello, {", "Howdy, {", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	d.prints(ctx, 1, "hook.py changed: the hook is started again")
	d.prints(ctx, 1, `      data[index.html]: "Hello, you!\n" → "Howdy, you!\n"`)
	d.interrupt(ctx)
	left := b.kubectl(ctx, "get", "customresourcedefinitions,configmaps,deployments,services,pods", "-o", "name")
	if strings.Contains(left, "hello") {
		t.Errorf("left after --cleanup:\n%s", left)
	}
}

// devGRPC runs the example in Go: a changed file starts the hook again, the end of the parent is
// printed, and a session that is killed leaves no process.
func devGRPC(ctx context.Context, t *testing.T, b *bareCluster) {
	dir := copyExample(t, "hello-grpc", "controller.yaml", "crd.yaml")
	hello := filepath.Join(cluster.Root(), "examples", "hello-grpc", "hello.yaml")
	d := b.dev(t, "-f", dir, "--watch", dir, "-o", "json", "--", serve.Program("hello-grpc"))
	d.prints(ctx, 1, `"controller":"composite/hello-grpc","condition":"Ready","status":"True"`)
	b.kubectl(ctx, "apply", "-f", hello)
	d.prints(ctx, 1, `{"verb":"create","object":"Deployment hello-grpc"`)
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte("package main"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.prints(ctx, 1, "main.go changed: the hook is started again")
	d.prints(ctx, 1, `"causes":["the controller started"]`)
	b.kubectl(ctx, "delete", "-f", hello)
	d.prints(ctx, 1, `"result":"gone"`)
	if err := d.Kill(); err != nil {
		t.Fatal(err)
	}
	d.leavesNone(ctx)
}

// devFaults are command lines that end with one message, and leave nothing behind.
func devFaults(ctx context.Context, t *testing.T, b *bareCluster) {
	one := copyExample(t, "tenant", "controller.yaml")
	crd := copyExample(t, "tenant", "controller.yaml", "crd.yaml")
	two := copyExample(t, "tenant", "controller.yaml")
	same := copyExample(t, "tenant", "controller.yaml")
	none := t.TempDir()
	taken := copyExample(t, "tenant", "controller.yaml", "crd.yaml")
	controller, err := os.ReadFile(filepath.Join(one, "controller.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close() //nolint:errcheck // it has accepted nothing
	kubeconfig, err := os.ReadFile(b.cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	gone := filepath.Join(none, "gone.kubeconfig")
	server := regexp.MustCompile(`server: .*`)
	other := strings.ReplaceAll(string(controller), "127.0.0.1:8080", busy.Addr().String())
	for path, text := range map[string]string{
		filepath.Join(two, "second.yaml"):       strings.Replace(string(controller), "name: tenant", "name: second", 1),
		filepath.Join(same, "second.yaml"):      string(controller),
		filepath.Join(none, "parent.yaml"):      "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}",
		filepath.Join(taken, "controller.yaml"): other,
		gone:                                    server.ReplaceAllString(string(kubeconfig), "server: https://127.0.0.1:1"),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-f", none, "--", "true"}, ": no controller in 1 object; expected a CompositeController"},
		{[]string{"-f", two, "--", "true"}, ": got 2 controllers and one command: composite/tenant ("},
		{[]string{"-f", same, "--", "true"}, "second.yaml:4:3: CompositeController \"tenant\" is also in "},
		{[]string{"-f", one, "--", "true"}, "controller.yaml:7:3: CompositeController \"tenant\": neither the cluster " +
			"nor a file has the resource tenants.examples.hookloop.dev/v1; add its CustomResourceDefinition to the files"},
		{[]string{"-f", crd, "--", "sh", "-c", "echo no module >&2; exit 3"}, "ended before it listened: exit status 3"},
		{[]string{"-f", taken, "--", "true"}, "; another program listens at " + busy.Addr().String() +
			": end it, or let the hook listen at HOOKLOOP_HOOK_LISTEN"},
		{[]string{"-f", crd, "--hook-timeout", "1s", "--", "sleep", "1000"}, "does not listen after 1s: expected it at"},
		{[]string{"-f", crd, "--kubeconfig", "/nonexistent", "--", "true"}, "no cluster: "},
		{[]string{"-f", crd, "--kubeconfig", gone, "--", "true"}, `at https://127.0.0.1:1 does not answer: `},
		{[]string{"--intercept", "composite/web", "--gateway", "127.0.0.1:1", "--", "true"},
			`--intercept: the cluster has no CompositeController "web"`},
	} {
		d := b.dev(t, c.args...)
		d.fails(ctx, c.want)
		d.leavesNone(ctx)
	}
	if crds := b.kubectl(ctx, "get", "crds", "-o", "name"); strings.Contains(crds, "tenants") {
		t.Errorf("a session that did not start has left CRDs: %s", crds)
	}
}

// devRights runs a session as a developer who has no rights at first, and then those that "hookloop
// rbac" prints: not the right to apply CRDs.
func devRights(ctx context.Context, t *testing.T, b *bareCluster) {
	dir := copyExample(t, "tenant", "controller.yaml", "crd.yaml", "hook.py")
	kubeconfig, err := b.cluster.ServiceAccountKubeconfig(ctx, "default", "developer")
	if err != nil {
		t.Fatal(err)
	}
	command := []string{"--kubeconfig", kubeconfig, "-f", dir, "--watch", dir, "--", "python3",
		filepath.Join(cluster.Root(), "examples", "serve.py"), filepath.Join(dir, "hook.py"), "--port", "0"}
	poor := b.devOn(t, command...)
	poor.fails(ctx, "crd.yaml:1:1: tenants.examples.hookloop.dev: the cluster does not have this "+
		"CustomResourceDefinition, and your user lacks the rights to apply it: "+
		"list, watch customresourcedefinitions.apiextensions.k8s.io",
		"lacks rights: get, list, watch, patch tenants.examples.hookloop.dev (parent of CompositeController tenant); ",
		"get, list, watch, create, update, patch, delete resourcequotas (child (InPlace) of CompositeController tenant)")
	if strings.Contains(poor.Output(), "listens") {
		t.Errorf("the hook was started before the rights were checked")
	}
	role, err := exec.CommandContext(ctx, serve.Program("hookloop"), "rbac", "-f", dir).Output()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "role.yaml")
	if err := os.WriteFile(file, role, 0o600); err != nil {
		t.Fatal(err)
	}
	b.kubectl(ctx, "apply", "-f", file)
	b.kubectl(ctx, "create", "clusterrolebinding", "developer", "--clusterrole=hookloop-controllers",
		"--serviceaccount=default:developer")
	b.kubectl(ctx, "create", "clusterrolebinding", "developer-admin", "--clusterrole=admin",
		"--serviceaccount=default:developer") // to bind the roles that the hook names
	b.kubectl(ctx, "apply", "-f", filepath.Join(dir, "crd.yaml"))
	b.kubectl(ctx, "wait", "--for=condition=Established", "--timeout=60s", "-f", filepath.Join(dir, "crd.yaml"))
	b.await(ctx, t, "the rights of the developer", func() error { // the authorizer reads them from a cache
		_, err := b.cluster.Kubectl(ctx, "auth", "can-i", "delete", "namespaces",
			"--as=system:serviceaccount:default:developer")
		return err
	})
	d := b.devOn(t, command...)
	d.prints(ctx, 1, "CustomResourceDefinition tenants.examples.hookloop.dev is not applied, the cluster's own is "+
		"used: your user lacks the right")
	b.kubectl(ctx, "apply", "-f", filepath.Join(cluster.Root(), "examples", "tenant", "tenant.yaml"))
	b.kubectl(ctx, "wait", "--for=jsonpath={.status.phase}=Active", "--timeout=60s", "tenant/blue")
	b.kubectl(ctx, "delete", "tenant", "blue", "--timeout=60s")
	d.interrupt(ctx)
	b.kubectl(ctx, "delete", "-f", filepath.Join(dir, "crd.yaml"), "-f", file)
	b.kubectl(ctx, "delete", "clusterrolebinding", "developer", "developer-admin")
}

// written are the syncs of a session that wrote something, without their causes: how many events a
// sync has collected differs from run to run.
func written(output string) string {
	var out strings.Builder
	keep := false
	for line := range strings.Lines(normal(output)) {
		if !strings.HasPrefix(line, "  ") {
			keep = !strings.Contains(line, " converged in ") && !strings.Contains(line, " at https://") &&
				!strings.Contains(line, "listens on")
			line, _, _ = strings.Cut(strings.TrimSuffix(line, "\n"), ", because")
			line += "\n"
		}
		if keep && !strings.HasPrefix(line, "    hook │") {
			out.WriteString(line)
		}
	}
	return out.String()
}

// devTenant compares what a session prints of a Tenant's life with a golden file: its children in
// another namespace, a change, a finalization that waits, and the end.
func devTenant(ctx context.Context, t *testing.T, b *bareCluster) {
	example := filepath.Join(cluster.Root(), "examples", "tenant")
	dir := copyExample(t, "tenant", "controller.yaml", "crd.yaml", "hook.py")
	d := b.dev(t, "-f", dir, "--watch", dir, "--cleanup", "--", "python3", filepath.Join(example, "..", "serve.py"),
		filepath.Join(dir, "hook.py"), "--port", "0")
	await := func(path, value string, object ...string) {
		b.kubectl(ctx, append([]string{"wait", "--timeout=60s", "--for=jsonpath={" + path + "}=" + value}, object...)...)
	}
	patch := func(body string) { b.kubectl(ctx, "patch", "tenant", "blue", "--type=merge", "-p", body) }
	d.prints(ctx, 1, "composite/tenant Ready=True Running: the controller is running")
	b.kubectl(ctx, "apply", "-f", filepath.Join(example, "tenant.yaml"))
	await(".status.phase", "Active", "tenant/blue")
	await(".status.hard.pods", "4", "resourcequota/tenant", "-n", "tenant-blue") // it is written by Kubernetes, too
	patch(`{"spec":{"viewers":["bob"],"quota":{"pods":"6"}}}`)
	await(".status.observedGeneration", "2", "tenant/blue")
	await(".status.hard.pods", "6", "resourcequota/tenant", "-n", "tenant-blue")
	patch(`{"spec":{"hold":true}}`)
	await(".status.observedGeneration", "3", "tenant/blue")
	b.kubectl(ctx, "delete", "tenant", "blue", "--wait=false")
	await(".status.phase", "Held", "tenant/blue")
	patch(`{"spec":{"hold":false}}`)
	b.kubectl(ctx, "wait", "--for=delete", "--timeout=60s", "tenant/blue")
	d.prints(ctx, 1, `"metacontroller.io/compositecontroller-tenant" → nothing`)
	d.prints(ctx, 1, "composite/tenant blue gone")
	golden(t, "dev.txt", written(d.Output()))
	d.interrupt(ctx)
}

// TestDevLocal runs a session on a control plane of its own: it serves kubectl, and is gone with
// the session.
func TestDevLocal(t *testing.T) {
	parallel(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	dir := copyExample(t, "tenant", "controller.yaml", "crd.yaml", "hook.py")
	assets, err := localplane.Find(ctx, localplane.Search{Built: cluster.Built(), Complete: true})
	if err != nil {
		t.Fatal(err)
	}
	bare := &bareCluster{t: t}
	d := bare.devOn(t, "--local", "-f", dir, "--watch", dir, "--", "python3",
		filepath.Join(cluster.Root(), "examples", "serve.py"), filepath.Join(dir, "hook.py"), "--port", "0")
	d.prints(ctx, 1, "composite/tenant Ready=True Running: the controller is running")
	found := regexp.MustCompile(`export KUBECONFIG=(\S+)`).FindStringSubmatch(d.Output())
	if found == nil {
		t.Fatal("the session has printed no kubeconfig")
	}
	kubectl := exec.CommandContext(ctx, assets.Kubectl.Path, append(assets.Kubectl.Args,
		"--kubeconfig", found[1], "apply", "-f", filepath.Join(cluster.Root(), "examples", "tenant", "tenant.yaml"))...)
	if out, err := kubectl.CombinedOutput(); err != nil {
		t.Fatalf("kubectl: %v\n%s", err, out)
	}
	d.prints(ctx, 1, "+ RoleBinding tenant-blue/admins")
	d.interrupt(ctx)
	if _, err := os.Stat(filepath.Dir(found[1])); !os.IsNotExist(err) {
		t.Errorf("the folder %s after the session: %v, want that it is removed", filepath.Dir(found[1]), err)
	}
}

// TestDevIntercept names the missing right, then takes over the parents of one team from a
// controller in the cluster.
func TestDevIntercept(t *testing.T) {
	k := start(t)
	e := openEntrance(k)
	deployed := mirrorWith(k, "deployed", "--listen", "127.0.0.1:0")
	run(t, k, kit.Composite{Sync: "stream:" + listening(k, deployed), Labels: e.labels})
	k.Object("Web", "mine").Label("team", "blue").Set("spec", map[string]any{}).Apply()
	k.Object("Web", "theirs").Label("team", "red").Set("spec", map[string]any{}).Apply()
	k.Apply(`
apiVersion: v1
kind: Service
metadata:
  name: door
  namespace: $NS
  labels:
    app.kubernetes.io/name: hookloop
spec:
  ports:
  - name: gateway
    port: 9555
`)
	for address, want := range map[string]string{
		"":            "--gateway: got no value, expected the address of the gateway",
		"127.0.0.1:1": "--gateway: the gateway does not answer: dial tcp 127.0.0.1:1",
	} {
		lost := k.Process(proc.Spec{
			Name: "hookloop dev", Path: serve.Program("hookloop"),
			Args: []string{"dev", "--kubeconfig", k.Cluster.Kubeconfig(), "--intercept", "composite/" + k.Name,
				"--gateway", address, "--", os.Args[0]},
		})
		awaitOutput(k, lost, want)
		awaitOutput(k, lost, "kubectl --kubeconfig "+k.Cluster.Kubeconfig()+" -n "+k.Namespace+" port-forward service/door "+
			"9444:9555, with --gateway 127.0.0.1:9444 --gateway-name door."+k.Namespace+".svc")
	}
	intercept := func(account string) *proc.Process {
		return k.Process(proc.Spec{
			Name: "hookloop dev", Path: serve.Program("hookloop"), Env: []string{asHook + "=laptop"},
			Args: []string{
				"dev", "--kubeconfig", k.Cluster.Kubeconfig(), "--intercept", "composite/" + k.Name, "-l", "team=blue",
				"--gateway", e.gateway.Address, "--gateway-ca", e.gateway.CAFile, "--watch", t.TempDir(),
				"--service-account", k.Namespace + "/" + account, "--", os.Args[0],
			},
		})
	}
	awaitOutput(k, intercept("nobody"), "lacks the right to intercept composite/"+k.Name)
	awaitOutput(k, intercept("laptop"), "resourceNames: ["+k.Name+"], verbs: [intercept]")
	e.allow("intercept", "compositecontrollers", k.Name)
	laptop := intercept("laptop")
	await(k, "Web", "mine", "status.by", "laptop")
	await(k, "Web", "theirs", "status.by", "deployed")
	awaitOutput(k, laptop, "composite/"+k.Name+" Intercepted=True Intercepted: ")
	if err := laptop.Stop(time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := laptop.Err(); err != nil {
		t.Errorf("the session ended with %v", err)
	}
	await(k, "Web", "mine", "status.by", "deployed")
	awaitControllerCondition(k, v1alpha1.ConditionIntercepted, v1alpha1.ReasonNotIntercepted,
		"the controller's hooks answer")
}
