package tracing

import (
	"net"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/test/kit"
	"github.com/hookloop/hookloop/test/serve"
)

// TestTop draws the table of the running engine, at its address and through the API server.
func TestTop(t *testing.T) {
	k, _ := start(t)
	greetings(k, traced, helloGRPC(k))
	greet(k, "World")
	row := regexp.MustCompile(`(?m)^composite/` + k.Name + ` +\d+\.\d +\d+ +[\d.]+ m?s\*? +[\d.]+ m?s\*? +\d+\.\d +\d+ +0`)
	show := func(args ...string) {
		t.Helper()
		out := hookloop(k, append([]string{"top", "--once", "--interval", "1s"}, args...)...)
		if !row.MatchString(out) || !strings.Contains(out, "1 engine, version ") {
			t.Errorf("hookloop top %q has no row %s:\n%s", args, row, out)
		}
		t.Log(out)
	}
	show("--metrics-url", "http://"+shared.engine.Metrics)

	engineWithoutAddress(k)
	if address := reachable(t); address == "" {
		t.Log("the machine has no address that an API server may connect to")
	} else {
		enginePod(k, address)
		show("--engine-namespace", k.Namespace)
		out := hookloop(k, "trace", "greetings."+k.Group, "hello", "-n", k.Namespace, "--engine-namespace", k.Namespace)
		if err := has(out, "last sync  composite/"+k.Name+": "); err != nil {
			t.Error(err)
		}
	}
}

// engineWithoutAddress expects one message from top, and a tree from trace, if no engine is found.
func engineWithoutAddress(k *kit.Kit) {
	k.Helper()
	const message = "no running Pod of an engine in namespace "
	out, err := exec.CommandContext(k.Context(), serve.Program("hookloop"), "top", "--once", "--kubeconfig",
		k.Cluster.Kubeconfig(), "--engine-namespace", k.Namespace).CombinedOutput()
	if err == nil || strings.Count(string(out), "\n") != 1 || has(string(out), message, "--metrics-url") != nil {
		k.Errorf("top without an engine: %v, %s", err, out)
	}
	tree := hookloop(k, "trace", "greetings."+k.Group, "hello", "-n", k.Namespace, "--engine-namespace", k.Namespace)
	if err := has(tree, "Greeting hello  ready", "last sync  unknown: "+message); err != nil {
		k.Error(err)
	}
}

// reachable returns an address of the machine that is not on the loopback: the API server connects
// to no Pod there.
func reachable(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.IsGlobalUnicast() && ip.IP.To4() != nil {
			return ip.IP.String()
		}
	}
	return ""
}

// enginePod makes a Pod with a port of metrics that leads to the engine's.
func enginePod(k *kit.Kit, address string) {
	k.Helper()
	listener, err := new(net.ListenConfig).Listen(k.Context(), "tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		k.Fatal(err)
	}
	relay := httptest.NewUnstartedServer(httputil.NewSingleHostReverseProxy(
		&url.URL{Scheme: "http", Host: shared.engine.Metrics}))
	_ = relay.Listener.Close() // in its place
	relay.Listener = listener
	relay.Start()
	k.Cleanup(relay.Close)
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		k.Fatal(err)
	}
	k.Apply(`{apiVersion: v1, kind: Pod, metadata: {name: hookloop, labels: {app.kubernetes.io/name: hookloop}},
		spec: {containers: [{name: hookloop, image: hookloop, ports: [{name: metrics, containerPort: ` + port + `}]}]}}`)
	k.Patch("v1/Pod", "hookloop", `{"status": {"phase": "Running", "podIP": "`+address+`", "podIPs": [{"ip": "`+address+
		`"}]}}`, "status")
}
