package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/internal/proc"
	"github.com/hookloop/hookloop/internal/protocol/tlstest"
	"github.com/hookloop/hookloop/sdk/go/hook"
	"github.com/hookloop/hookloop/server"
	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/confine"
	"github.com/hookloop/hookloop/test/kit"
	"github.com/hookloop/hookloop/test/serve"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// entrance is an engine of the test's own with a gateway, and the credentials for dialling in.
type entrance struct {
	*kit.Kit
	engine  *serve.Engine
	labels  map[string]any
	gateway hook.Gateway
}

// openEntrance starts the engine. The ServiceAccount laptop has a token of the gateway's audience,
// and no rights.
func openEntrance(k *kit.Kit) *entrance {
	k.Helper()
	return openEntranceWithin(k, nil)
}

// openEntranceWithin is openEntrance under a memory limit.
func openEntranceWithin(k *kit.Kit, limit *confine.Group) *entrance {
	k.Helper()
	settings, dial := newGateway(k)
	engine, labels := engineWithin(k, limit, "--gateway-address="+settings.Address,
		"--gateway-tls-cert="+settings.TLSCert, "--gateway-tls-key="+settings.TLSKey)
	return &entrance{k, engine, labels, dial}
}

// newGateway returns the settings of a gateway, and those of the ServiceAccount laptop to dial it.
func newGateway(k *kit.Kit) (server.Gateway, hook.Gateway) {
	k.Helper()
	authority := tlstest.NewAuthority(k.TB)
	dir := k.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			k.Fatal(err)
		}
		return path
	}
	ports, err := cluster.FreePorts(1)
	if err != nil {
		k.Fatal(err)
	}
	certificate, key := authority.Issue("gateway")
	address := fmt.Sprintf("127.0.0.1:%d", ports[0])
	k.Object("v1/ServiceAccount", "laptop").Apply()
	return server.Gateway{
			Address: address, TLSCert: write("tls.crt", certificate), TLSKey: write("tls.key", key), Audience: "hookloop",
		}, hook.Gateway{
			Address: address, CAFile: write("ca.crt", authority.PEM), TokenFile: write("token", []byte(tokenOf(k, "hookloop"))),
		}
}

// tokenOf creates a token of the ServiceAccount laptop for an audience.
func tokenOf(k *kit.Kit, audience string) string {
	k.Helper()
	out, err := k.Cluster.Kubectl(k.Context(), "-n", k.Namespace, "create", "token", "laptop", "--audience",
		audience, "--duration", "8h")
	if err != nil {
		k.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// flags returns the flags of a hook that dials in.
func (e *entrance) flags(more ...string) []string {
	g := e.gateway
	return append([]string{"--attach", g.Address, "--ca-file", g.CAFile, "--token-file", g.TokenFile}, more...)
}

// allow gives the ServiceAccount laptop a right.
func (e *entrance) allow(verb, resource, name string) {
	e.Helper()
	e.Apply(fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: $NAME-%[1]s}
rules: [{apiGroups: [metacontroller.k8s.io], resources: [%[2]s], resourceNames: [%[3]s], verbs: [%[1]s]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: $NAME-%[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: $NAME-%[1]s}
subjects: [{kind: ServiceAccount, name: laptop, namespace: $NS}]`, verb, resource, name))
}

// awaitOutput waits until a process has printed a text.
func awaitOutput(k *kit.Kit, p *proc.Process, text string) {
	k.Helper()
	k.Eventually(fmt.Sprintf("%s prints %q", p.Name(), text), func() error {
		if !strings.Contains(p.Output(), text) {
			return errors.New("it has not")
		}
		return nil
	})
}

// awaitControllerCondition waits until a condition of the controller has a reason and a message
// that contains part.
func awaitControllerCondition(k *kit.Kit, conditionType, reason, part string) {
	k.Helper()
	k.Eventually("the controller has the condition "+conditionType+" with the reason "+reason, func() error {
		c := kit.Condition(k.Get(kit.CompositeController, k.Name), conditionType)
		if c["reason"] != reason || !strings.Contains(fmt.Sprint(c["message"]), part) {
			return fmt.Errorf("it is %v, want one with %q", c, part)
		}
		return nil
	})
}

// awaitParentEvent waits for an Event about an object of the kit.
func awaitParentEvent(k *kit.Kit, name, reason, part string) {
	k.Helper()
	k.Eventually(fmt.Sprintf("%s has an Event %s: %s", name, reason, part), func() error {
		messages := k.Events(name, reason)
		if !slices.ContainsFunc(messages, func(m string) bool { return strings.Contains(m, part) }) {
			return fmt.Errorf("its Events are %q", messages)
		}
		return nil
	})
}

// TestDialIn serves parents by a hook that does not listen. Without the right it is refused with a
// reason; then it gets the right.
func TestDialIn(t *testing.T) {
	k := start(t)
	e := openEntrance(k)
	run(t, k, kit.Composite{Sync: "worker:" + k.Name, Children: []string{"v1/configmaps InPlace"}, Labels: e.labels})
	k.Apply(parent("web", page("page", "text: one")))
	k.AwaitFault("Web", "web", "HookUnreachable", `no hook that serves worker \"`+k.Name)

	refused := mirrorWith(k, "refused", e.flags("--worker", k.Name)...)
	awaitOutput(k, refused,
		`cannot serve resource \"hookworkers\" in API group \"metacontroller.k8s.io\" with the name \"`+k.Name)
	if _, err := e.gateway.Trigger(t.Context(), k.Name, hook.Trigger{}); status.Code(err) != codes.PermissionDenied {
		t.Errorf("a trigger without the right: got %v, want PermissionDenied", err)
	}
	if err := refused.Stop(time.Second); err != nil {
		t.Error(err)
	}

	e.allow("serve", "hookworkers", k.Name)
	laptop := mirrorWith(k, "laptop", e.flags("--worker", k.Name)...)
	awaitOutput(k, laptop, "attached to")
	await(k, "v1/ConfigMap", "page", "data.text", "one")
	await(k, "Web", "web", "status.by", "laptop")
	awaitControllerCondition(
		k,
		v1alpha1.ConditionHooksMatch,
		v1alpha1.ReasonNotDeclared,
		"the hook has a function for finalize, but spec.hooks.finalize is not declared: parents are deleted without it "+
			"being called",
	)
	k.AwaitControllerEvent("HooksMismatch")
	k.Patch("Web", "web", "spec: {answer: {children: ["+page("page", "text: two")+"]}}")
	await(k, "v1/ConfigMap", "page", "data.text", "two")
	parents, err := e.gateway.Trigger(t.Context(), k.Name,
		hook.Trigger{Parents: []hook.ParentName{{Namespace: k.Namespace, Name: "web"}}, Reason: "a test"})
	if err != nil || parents != 1 {
		t.Errorf("a trigger: got %d parents, %v, want 1", parents, err)
	}
	awaitOutput(k, e.engine.Process, `"reason":"a test"`)
	_, err = e.gateway.Trigger(t.Context(), k.Name, hook.Trigger{LabelSelector: "a in ("})
	if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "label_selector") {
		t.Errorf("a trigger with a selector that is none: got %v, want InvalidArgument", err)
	}
}

// TestTriggersAreLimited sends too many triggers to the gateway. The surplus is refused with a
// reason, and the hook still serves.
func TestTriggersAreLimited(t *testing.T) {
	k := start(t)
	e := openEntrance(k)
	run(t, k, kit.Composite{Sync: "worker:" + k.Name, Labels: e.labels})
	e.allow("serve", "hookworkers", k.Name)
	k.Eventually("a trigger is refused", func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		for range 200 {
			if _, err := e.gateway.Trigger(ctx, k.Name, hook.Trigger{}); err != nil {
				if status.Code(err) == codes.ResourceExhausted {
					return nil
				}
				return err
			}
		}
		return errors.New("none was")
	})
}

// TestIntercept takes the parents of one team from a running controller. They return as soon as the
// laptop is gone.
func TestIntercept(t *testing.T) {
	k := start(t)
	e := openEntrance(k)
	deployed := mirrorWith(k, "deployed", "--listen", "127.0.0.1:0")
	run(t, k, kit.Composite{Sync: "stream:" + listening(k, deployed), Labels: e.labels})
	k.Object("Web", "mine").Label("team", "blue").Set("spec", map[string]any{}).Apply()
	k.Object("Web", "theirs").Label("team", "red").Set("spec", map[string]any{}).Apply()
	for _, web := range []string{"mine", "theirs"} {
		await(k, "Web", web, "status.by", "deployed")
	}
	flags := e.flags("--intercept", "CompositeController/"+k.Name, "--labels", "team=blue")
	refused := mirrorWith(k, "refused", flags...)
	awaitOutput(k, refused, `cannot intercept resource \"compositecontrollers\"`)
	if err := refused.Stop(time.Second); err != nil {
		t.Error(err)
	}
	e.allow("intercept", "compositecontrollers", k.Name)
	laptop := mirrorWith(k, "laptop", flags...)
	await(k, "Web", "mine", "status.by", "laptop")
	await(k, "Web", "theirs", "status.by", "deployed")
	by := "system:serviceaccount:" + k.Namespace + ":laptop"
	awaitControllerCondition(k, v1alpha1.ConditionIntercepted, v1alpha1.ReasonIntercepted, by+" (labels team=blue)")
	k.AwaitControllerEvent("Intercepted")
	awaitParentEvent(k, "mine", "Intercepted", by+" answers in place of the controller's hook")
	if err := laptop.Kill(); err != nil {
		t.Fatal(err)
	}
	await(k, "Web", "mine", "status.by", "deployed")
	awaitControllerCondition(k, v1alpha1.ConditionIntercepted, v1alpha1.ReasonNotIntercepted,
		"the controller's hooks answer")
	awaitParentEvent(k, "mine", "InterceptEnded", "The controller's hook answers again")
}
