package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/sdk/go/hook"
	"github.com/hookloop/hookloop/server"
	"github.com/hookloop/hookloop/test/kit"
)

// hooksInProcess are the hooks of the shared engine's process.
var hooksInProcess = map[string]server.Hook{
	"page": hook.Composite{Sync: makePage, Finalize: removePage}, "copies": copyHook,
}

type pageParent struct {
	Spec struct {
		Text string `json:"text"`
	} `json:"spec"`
}

// makePage makes a ConfigMap with the parent's text, and panics if the text is "panic".
func makePage(_ context.Context, req *hook.SyncRequest) (*hook.SyncResponse, error) {
	parent, err := hook.Parent[pageParent](req)
	if err != nil {
		return nil, err
	}
	if parent.Spec.Text == "panic" {
		panic("as the test asks for")
	}
	child := map[string]any{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"metadata":   map[string]any{"name": req.Parent.Name},
		"data":       map[string]string{"text": parent.Spec.Text},
	}
	return &hook.SyncResponse{
		Status: map[string]any{"text": parent.Spec.Text}, Children: []hook.Child{{Object: child}},
	}, nil
}

// removePage answers finalized after its ConfigMap is deleted.
func removePage(_ context.Context, req *hook.SyncRequest) (*hook.SyncResponse, error) {
	return &hook.SyncResponse{Finalized: len(req.Children["ConfigMap.v1"]) == 0}, nil
}

// TestHookInProcess runs a controller with a Go function of the engine's process as its hook,
// through a panic, until its parent is deleted.
func TestHookInProcess(t *testing.T) {
	k := start(t)
	k.CRD("Page", "Namespaced")
	k.Run(kit.Composite{
		Parent:   "pages",
		Children: []string{"v1/configmaps InPlace"},
		Sync:     "inproc:page",
		Finalize: "inproc:page",
		Version:  "v2",
	})
	awaitControllerCondition(k, v1alpha1.ConditionHooksMatch, v1alpha1.ReasonMatch, "")
	page := "apiVersion: $GROUP/v1\nkind: Page\nmetadata: {name: home, namespace: $NS}\nspec: {text: %s}"
	shows := func(text string) {
		t.Helper()
		k.Eventually("the page has the text "+text, func() error {
			o, err := k.Lookup("v1/ConfigMap", "home")
			if err != nil {
				return err
			}
			if got := fmt.Sprint(o.Object["data"]); got != "map[text:"+text+"]" {
				return fmt.Errorf("its data is %s", got)
			}
			return nil
		})
	}
	k.Apply(fmt.Sprintf(page, "hello"))
	shows("hello")
	k.Apply(fmt.Sprintf(page, "panic"))
	awaitSynced(k, "HookFailed", "panic: as the test asks for")
	k.Apply(fmt.Sprintf(page, "again"))
	shows("again")
	k.Delete("Page", "home")
	k.Eventually("the page is gone", func() error {
		if _, err := k.Lookup("Page", "home"); err == nil {
			return errors.New("it is still there")
		}
		return nil
	})
}

// awaitSynced waits until the page's condition Synced is false for a reason, with a text in its
// message.
func awaitSynced(k *kit.Kit, reason, part string) {
	k.Helper()
	k.Eventually("Synced is false: "+reason, func() error {
		o, err := k.Lookup("Page", "home")
		if err != nil {
			return err
		}
		synced := kit.Condition(o, "Synced")
		if synced["reason"] != reason || !strings.Contains(fmt.Sprint(synced["message"]), part) {
			return fmt.Errorf("it is %v", synced)
		}
		return nil
	})
}

// TestHookInProcessThatIsNotRegistered expects a condition of the controller with the name.
func TestHookInProcessThatIsNotRegistered(t *testing.T) {
	k := start(t)
	k.CRD("Page", "Namespaced")
	k.Declare(kit.Composite{Parent: "pages", Sync: "inproc:other"})
	awaitControllerCondition(k, v1alpha1.ConditionReady, v1alpha1.ReasonInvalidSpec,
		`spec.hooks.sync.inproc: name: "other" is not registered in this program; expected one of "copies", "page"`)
}
