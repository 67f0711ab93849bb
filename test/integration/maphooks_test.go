package integration

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/hookloop/hookloop/sdk/go/hook"
	"github.com/hookloop/hookloop/test/kit"
	corev1 "k8s.io/api/core/v1"
)

// copyHook copies an annotation of each input, and the related settings, into a ConfigMap. It keeps
// copies with a text that begins with "keep" when their input is gone, and deletes all when the
// parent is finalized.
var copyHook = hook.Mapper{Map: copyInput, Tombstone: keepCopies, Finalize: removeCopies, Customize: selectSettings}

func copyInput(_ context.Context, req *hook.MapRequest) (*hook.MapResponse, error) {
	input, err := hook.Input[corev1.Secret](req)
	if err != nil {
		return nil, err
	}
	settings, err := hook.Related[corev1.ConfigMap](req, "configmaps.v1")
	if err != nil {
		return nil, err
	}
	if input.Annotations["text"] == "refused" {
		return nil, hook.Reject("Refused", "the text of %s is refused", req.MapKey)
	}
	text := input.Annotations["text"]
	for _, s := range settings {
		text += " " + s.Data["text"]
	}
	return &hook.MapResponse{Outputs: []hook.Child{{Object: copyOf(req.Input.Name, text)}}}, nil
}

func copyOf(name, text string) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "copy-" + name},
		"data": map[string]any{"text": text},
	}
}

func keepCopies(_ context.Context, req *hook.TombstoneRequest) (*hook.TombstoneResponse, error) {
	resp := hook.Keep()
	for _, output := range req.Outputs["ConfigMap.v1"] {
		o, err := hook.Decode[corev1.ConfigMap](output)
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(o.Data["text"], "keep") {
			resp.Outputs = append(resp.Outputs, output)
		}
	}
	return resp, nil
}

func removeCopies(_ context.Context, req *hook.MapRequest) (*hook.MapResponse, error) {
	return &hook.MapResponse{Finalized: len(req.Outputs["ConfigMap.v1"]) == 0}, nil
}

func selectSettings(_ context.Context, req *hook.CustomizeRequest) (*hook.CustomizeResponse, error) {
	return &hook.CustomizeResponse{Related: []hook.RelatedRule{
		{APIVersion: "v1", Resource: "configmaps", Namespace: req.Parent.Namespace, Names: []string{"settings"}},
	}}, nil
}

// serveMap serves a map hook on a free port until the test ends, and returns its address.
func serveMap(t *testing.T, h hook.Mapper) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	address := make(chan string, 1)
	ended := make(chan error, 1)
	options := hook.ServeOptions{Options: hook.Options{Log: slog.New(slog.DiscardHandler)}}
	options.Listen = "127.0.0.1:0"
	options.Listening = func(a net.Addr) { address <- a.String() }
	go func() { ended <- hook.Serve(ctx, options, h) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case a := <-address:
		return a
	case <-time.After(time.Minute):
		t.Fatal("the hook does not listen")
		return ""
	}
}

// copiesByJSON is copyHook as a webhook: one URL for all operations, which differ in their fields.
func copiesByJSON(r kit.Request) any {
	outputs := []any{}
	switch {
	case r.MapKey == "":
		return map[string]any{"relatedResources": []any{map[string]any{
			"apiVersion": "v1", "resource": "configmaps", "namespace": r.Parent.GetNamespace(),
			"names": []any{"settings"}}}}
	case r.Finalizing:
		return map[string]any{"outputs": outputs, "finalized": len(r.Outputs["ConfigMap.v1"]) == 0}
	case r.Input == nil:
		for _, o := range r.Outputs["ConfigMap.v1"] {
			if strings.HasPrefix(o.(map[string]any)["data"].(map[string]any)["text"].(string), "keep") {
				outputs = append(outputs, o)
			}
		}
		return map[string]any{"outputs": outputs}
	}
	metadata := r.Input["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	text, _ := annotations["text"].(string)
	if text == "refused" {
		return kit.Answer{Code: 400, Body: "the text of " + r.MapKey + " is refused"}
	}
	for _, s := range r.Related["ConfigMap.v1"] {
		text += " " + s.(map[string]any)["data"].(map[string]any)["text"].(string)
	}
	return map[string]any{"outputs": append(outputs, copyOf(metadata["name"].(string), text))}
}

// secret is an input of the copies.
func secret(name, text string) string {
	return "{apiVersion: v1, kind: Secret, metadata: {name: " + name + ", namespace: $NS, labels: {app: x}, " +
		"annotations: {text: " + text + "}}}"
}

// TestMapHooks runs a parent with its inputs from creation to deletion, over each transport.
func TestMapHooks(t *testing.T) {
	parallel(t)
	for name, address := range map[string]func(*kit.Kit) string{
		"webhook v1": func(k *kit.Kit) string { return k.Hook(copiesByJSON).URL },
		"webhook v2": func(k *kit.Kit) string { return k.Hook(copiesByJSON).URL },
		"unary":      func(*kit.Kit) string { return "grpc:" + serveMap(t, copyHook) },
		"stream":     func(*kit.Kit) string { return "stream:" + serveMap(t, copyHook) },
		"in process": func(*kit.Kit) string { return "inproc:copies" },
	} {
		t.Run(name, func(t *testing.T) {
			k := start(t)
			version := "v2"
			if name == "webhook v1" {
				version = "v1"
			}
			mapLife(k, kit.Mapping{Version: version}, address(k))
		})
	}
}

// mapLife declares a map controller and runs a parent from creation to deletion.
func mapLife(k *kit.Kit, m kit.Mapping, address string) {
	k.Helper()
	k.CRD("Web", "Namespaced")
	m.Parent = "webs"
	m.Inputs = []string{"v1/secrets"}
	m.Outputs = []string{"v1/configmaps InPlace"}
	m.Map = address
	m.Tombstone = address
	m.Finalize = address
	m.Customize = address
	k.RunMap(m)
	settings := "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: $NS}, "
	k.Apply(settings + "data: {text: red}}")
	k.Object("Web", "web").Set("spec.selector.matchLabels.app", "x").Apply()
	k.Apply(secret("a", "one"))
	k.Apply(secret("b", "keep"))
	await(k, "v1/ConfigMap", "copy-a", "data.text", "one red")
	await(k, "v1/ConfigMap", "copy-b", "data.text", "keep red")

	k.Patch("v1/Secret", "a", "metadata: {annotations: {text: two}}")
	await(k, "v1/ConfigMap", "copy-a", "data.text", "two red")
	k.Patch("v1/Secret", "a", "metadata: {annotations: {text: refused}}")
	await(k, "Web", "web", "status.failed.total", "1")
	k.Apply(settings + "data: {text: blue}}")
	await(k, "v1/ConfigMap", "copy-b", "data.text", "keep blue")
	await(k, "v1/ConfigMap", "copy-a", "data.text", "two red") // its hook refuses it
	k.Patch("v1/Secret", "a", "metadata: {annotations: {text: three}}")
	await(k, "v1/ConfigMap", "copy-a", "data.text", "three blue")
	await(k, "Web", "web", "status.outputs.configmaps.total", "2")
	await(k, "Web", "web", "status.failed.total", "")

	k.Delete("v1/Secret", "a")
	k.Delete("v1/Secret", "b")
	await(k, "v1/ConfigMap", "copy-a", "metadata.name", "")
	await(k, "Web", "web", "status.detached.outputs", "1")
	await(k, "v1/ConfigMap", "copy-b", "data.text", "keep blue")

	k.Delete("Web", "web")
	await(k, "v1/ConfigMap", "copy-b", "metadata.name", "")
	k.Eventually("the Web is gone", func() error {
		if o := k.Find("Web", "web"); o != nil {
			text, _ := json.Marshal(o.Object)
			return errors.New("it is there: " + string(text))
		}
		return nil
	})
}

// TestMapHookDialsIn does the same with a hook that dials in to the gateway.
func TestMapHookDialsIn(t *testing.T) {
	k := start(t)
	e := openEntrance(k)
	e.allow("serve", "hookworkers", k.Name)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- hook.Attach(ctx, hook.AttachOptions{
			Gateway: e.gateway, Worker: k.Name, Options: hook.Options{Log: slog.New(slog.DiscardHandler)},
		}, copyHook)
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	mapLife(k, kit.Mapping{Labels: e.labels, Version: "v2"}, "worker:"+k.Name)
}

// TestInterceptOfAMapController takes one parent with all its inputs from a running controller, and
// gives it back when the laptop is gone.
func TestInterceptOfAMapController(t *testing.T) {
	k := start(t)
	e := openEntrance(k)
	e.allow("intercept", "mapcontrollers", k.Name)
	k.CRD("Web", "Namespaced")
	k.RunMap(kit.Mapping{
		Parent: "webs", Inputs: []string{"v1/secrets"}, Outputs: []string{"v1/configmaps InPlace"}, Version: "v2",
		Map: "stream:" + serveMap(t, hook.Mapper{Map: textOf("deployed")}), Labels: e.labels,
	})
	for _, team := range []string{"blue", "red"} {
		k.Object("Web", team).Label("team", team).Set("spec.selector.matchLabels.app", "x").Apply()
	}
	inputs := []string{"a", "b", "c"}
	for _, input := range inputs {
		k.Apply(secret(input, "any"))
	}
	shows := func(team, text string) {
		t.Helper()
		for _, input := range inputs {
			await(k, "v1/ConfigMap", team+"-"+input, "data.text", text)
		}
	}
	shows("blue", "deployed")
	shows("red", "deployed")
	ctx, leave := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- hook.Attach(ctx, hook.AttachOptions{
			Gateway: e.gateway, Options: hook.Options{Log: slog.New(slog.DiscardHandler)},
			Intercept: &hook.Intercept{
				ControllerKind: "MapController", ControllerName: k.Name, LabelSelector: "team=blue",
			},
		}, hook.Mapper{Map: textOf("laptop")})
	}()
	shows("blue", "laptop")
	shows("red", "deployed")
	leave()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	shows("blue", "deployed")
}

// textOf returns a function that makes a ConfigMap with a text, named after parent and input.
func textOf(text string) hook.MapFunc {
	return func(_ context.Context, req *hook.MapRequest) (*hook.MapResponse, error) {
		o := copyOf("", text)
		o["metadata"] = map[string]any{"name": req.Parent.Name + "-" + req.Input.Name}
		return &hook.MapResponse{Outputs: []hook.Child{{Object: o}}}, nil
	}
}
