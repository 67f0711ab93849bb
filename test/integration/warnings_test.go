package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookloop/hookloop/test/kit"
)

// hrad returns a Deployment with an unknown field.
func hrad(field string) string {
	return "{apiVersion: apps/v1, kind: Deployment, metadata: {name: server}, spec: {" + field + "replicas: 0, " +
		"selector: {matchLabels: {app: web}}, " +
		"template: {metadata: {labels: {app: web}}, spec: {containers: [{name: server, image: nginx}]}}}}"
}

// TestUnknownFieldOfAChild: the API server drops a misspelt field and warns. The parent reports
// child and field once, until the hook is fixed.
func TestUnknownFieldOfAChild(t *testing.T) {
	k := start(t)
	run(t, k, kit.Composite{Children: []string{"apps/v1/deployments InPlace"}, Resync: 1})
	part := `Deployment.apps/v1 "` + k.Namespace + `/server": unknown field "spec.hrad"`
	await := func(want string) {
		t.Helper()
		k.Eventually("ChildWarnings: "+want, func() error {
			if message, _ := kit.Condition(k.Get("Web", "web"), "ChildWarnings")["message"].(string); message != want {
				return fmt.Errorf("it is %q", message)
			}
			return nil
		})
	}
	k.Apply(parent("web", hrad("hrad: 1, ")))
	await(part)
	k.Settled(3 * time.Second / 2) // more than a resync period
	k.Eventually("there is one Event", func() error {
		if events := k.Events("web", "ChildWarning"); !slices.Equal(events, []string{part}) {
			return fmt.Errorf("there are %q", events)
		}
		return nil
	})
	k.Apply(parent("web", hrad("")))
	await("")
}

// TestStrictFieldValidation rejects the child instead.
func TestStrictFieldValidation(t *testing.T) {
	k := start(t)
	k.CRD("Web", "Namespaced")
	_, labels := ownEngine(k, "--field-validation=Strict")
	k.Run(
		kit.Composite{Parent: "webs", Children: []string{"apps/v1/deployments InPlace"}, Sync: mirror(t), Labels: labels})
	k.Apply(parent("web", hrad("hrad: 1, ")))
	k.AwaitFault("Web", "web", "WriteBadRequest", `unknown field "spec.hrad"`)
	if o := k.Find("apps/v1/Deployment", "server"); o != nil {
		t.Error("the child was created")
	}
	k.Apply(parent("web", hrad("")))
	k.Eventually("the child is created", func() error {
		_, err := k.Lookup("apps/v1/Deployment", "server")
		return err
	})
	if message, _ := kit.Condition(k.Get("Web", "web"), "Synced")["message"].(string); strings.Contains(message, "hrad") {
		k.Eventually("the fault goes", func() error {
			if c := kit.Condition(k.Get("Web", "web"), "Synced"); c["status"] == "False" {
				return fmt.Errorf("%v", c)
			}
			return nil
		})
	}
}
