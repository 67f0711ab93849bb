package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
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
	p, err := proc.Start(proc.Spec{
		Name: "hookloop dev", Path: serve.Program("hookloop"),
		Args: append([]string{"dev", "--kubeconfig", b.cluster.Kubeconfig()}, args...), Env: []string{mark + "=" + t.Name()},
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
	d.await(ctx, d.t, "the end of the session", func() error {
		select {
		case <-d.Done():
			return nil
		default:
			return fmt.Errorf("it runs")
		}
	})
	if err := d.Err(); err != nil {
		d.t.Errorf("the session ended with %v", err)
	}
	d.leavesNone(ctx)
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

// devGRPC runs the example in Go: a changed file starts the hook again, and a session that is
// killed leaves no process.
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
	if err := d.Kill(); err != nil {
		t.Fatal(err)
	}
	d.leavesNone(ctx)
}

// devFaults are command lines that end with one message.
func devFaults(ctx context.Context, t *testing.T, b *bareCluster) {
	one := copyExample(t, "hello-webhook", "controller.yaml")
	none, two := t.TempDir(), copyExample(t, "hello-webhook", "controller.yaml")
	data, err := os.ReadFile(filepath.Join(two, "controller.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		filepath.Join(two, "second.yaml"):  strings.Replace(string(data), "name: hello-webhook", "name: second", 1),
		filepath.Join(none, "parent.yaml"): "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}",
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
		{[]string{"-f", two, "--", "true"}, ": got 2 controllers and one command: composite/hello-webhook ("},
		{[]string{"-f", one, "--", "sh", "-c", "echo no module >&2; exit 3"}, "ended before it listened: exit status 3"},
		{[]string{"-f", one, "--hook-timeout", "1s", "--", "sleep", "1000"}, "does not listen after 1s: expected it at"},
		{[]string{"-f", one, "--kubeconfig", "/nonexistent", "--", "true"}, "no cluster: "},
		{[]string{"--intercept", "composite/web", "--gateway", "127.0.0.1:1", "--", "true"},
			`--intercept: the cluster has no CompositeController "web"`},
	} {
		d := b.dev(t, c.args...)
		d.await(ctx, t, strings.Join(c.args, " "), func() error {
			select {
			case <-d.Done():
				return nil
			default:
				return fmt.Errorf("the session runs")
			}
		})
		lines := strings.Split(strings.TrimSpace(d.Output()), "\n")
		last := lines[len(lines)-1]
		if d.Err() == nil || !strings.HasPrefix(last, "hookloop: ") || !strings.Contains(last, c.want) {
			t.Errorf("hookloop dev %v: ended with %v and the line %q, expected %q", c.args, d.Err(), last, c.want)
		}
	}
}

// TestDevIntercept names the missing right, then takes over the parents of one team from a
// controller in the cluster.
func TestDevIntercept(t *testing.T) {
	k := start(t)
	e := openEntrance(k)
	deployed := mirrorWith(k, "deployed", "--listen", "127.0.0.1:0")
	run(t, k, kit.Composite{Sync: "stream:" + listening(k, deployed), Labels: e.labels})
	k.Apply("{apiVersion: $GROUP/v1, kind: Web, metadata: {name: mine, labels: {team: blue}}, spec: {}}")
	k.Apply("{apiVersion: $GROUP/v1, kind: Web, metadata: {name: theirs, labels: {team: red}}, spec: {}}")
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
