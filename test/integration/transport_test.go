package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/test/kit"
)

// lettersEnd is closed when the test ends that asks a transport that never returns.
var lettersEnd = make(chan struct{})

// letterConfig is what the transport "letter" reads from the spec.
type letterConfig struct {
	// To names the hook. It is required.
	To string `json:"to"`
	// Open is what is wrong with the opener: "panics" or "returns nothing"; empty for nothing.
	Open string `json:"open"`
	// Lost makes the hook unreachable.
	Lost bool `json:"lost"`
}

// openLetter is a transport that the program of these tests adds. It has no network: the hook
// answers with a ConfigMap that has the parent's spec.text, or misbehaves as the text says.
func openLetter(config hook.Config) (*hook.Opened, error) {
	var field letterConfig
	if err := json.Unmarshal(config.Field, &field); err != nil {
		return nil, err
	}
	switch {
	case field.Open == "panics":
		panic("the envelope is torn")
	case field.Open != "":
		return nil, nil
	case field.To == "":
		return nil, errors.New("to: is missing; expected the name of a hook")
	}
	name := string(config.Op) + " letter:" + field.To
	return &hook.Opened{
		Address: "letter:" + field.To,
		Timeout: 300 * time.Millisecond,
		Hook: hook.Func(func(ctx context.Context, q *hook.Question) (*hook.Answer, error) {
			if field.Lost {
				return nil, &hook.Error{Kind: hook.Unreachable, Hook: name, Err: errors.New("the letter came back")}
			}
			return answerLetter(ctx, config, q)
		}),
	}, nil
}

func answerLetter(ctx context.Context, config hook.Config, q *hook.Question) (*hook.Answer, error) {
	var parent struct{ Spec struct{ Text string } }
	if err := json.Unmarshal(q.Parent.Raw(), &parent); err != nil {
		return nil, err
	}
	text := parent.Spec.Text
	answer := &hook.Answer{Children: []json.RawMessage{json.RawMessage(fmt.Sprintf(
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"text":%q}}`, q.Parent.Name(), text))}}
	switch text {
	case "panics":
		panic("as the test asks for")
	case "returns nothing":
		return nil, nil
	case "returns both":
		return answer, errors.New("as the test asks for")
	case "returns an error of its own":
		return nil, errors.New("no stamp\nno letter")
	case "never returns":
		<-lettersEnd
		return nil, nil
	case "takes all memory":
		_, err := config.Reserve(ctx, 1<<50)
		return nil, err
	}
	if _, err := config.Reserve(ctx, int64(len(text))); err != nil { // the sync ends the reservation
		return nil, err
	}
	return answer, nil
}

const letterPage = "apiVersion: $GROUP/v1\nkind: Page\nmetadata: {name: %s, namespace: $NS}\nspec: {text: %s}"

// TestTransportOfTheProgram runs a controller over a transport that the program adds. After each way
// in which the transport misbehaves, the parent has a reason, and is synced when it behaves again.
func TestTransportOfTheProgram(t *testing.T) {
	k := start(t)
	t.Cleanup(func() { close(lettersEnd) })
	k.CRD("Page", "Namespaced")
	k.Run(kit.Composite{
		Parent:   "pages",
		Children: []string{"v1/configmaps InPlace"},
		Sync:     `transport:letter {"to": "home"}`,
		Version:  "v2",
	})
	k.Apply(fmt.Sprintf(letterPage, "home", "hello"))
	await(k, "v1/ConfigMap", "home", "data.text", "hello")
	for i, c := range []struct{ text, reason, message string }{
		{"panics", "HookFailed", "hook sync letter:home: panic: as the test asks for"},
		{"returns nothing", "InvalidHookAnswer", "returned neither an answer nor an error"},
		{"returns both", "InvalidHookAnswer", "returned an answer and an error"},
		{"returns an error of its own", "HookFailed", "hook sync letter:home: no stamp no letter"},
		{"never returns", "HookTimeout", "no answer within 300ms: the transport does not return"},
		{"takes all memory", "MemoryBudget", "the answer cannot be read: memory budget"},
	} {
		name := fmt.Sprint("page-", i) // Events about one object are limited
		k.Apply(fmt.Sprintf(letterPage, name, c.text))
		k.AwaitFault("Page", name, c.reason, c.message)
		again := strings.ReplaceAll("again after it "+c.text, " ", "-")
		k.Apply(fmt.Sprintf(letterPage, name, again))
		await(k, "v1/ConfigMap", name, "data.text", again)
	}
}

// TestTransportWithFallback has a webhook that answers in place of a transport of the program.
func TestTransportWithFallback(t *testing.T) {
	k := start(t)
	k.CRD("Page", "Namespaced")
	webhook := k.Hook(func(kit.Request) any {
		return map[string]any{"status": map[string]any{"by": "webhook"}, "children": []any{}}
	})
	k.Run(kit.Composite{
		Parent: "pages", Version: "v2", Sync: `transport:letter {"to": "home", "lost": true} or ` + webhook.URL,
	})
	k.Apply(fmt.Sprintf(letterPage, "home", "hello"))
	await(k, "Page", "home", "status.by", "webhook")
	awaitControllerCondition(k, v1alpha1.ConditionFallback, v1alpha1.ReasonWebhook, "the letter came back")
}

// TestTransportThatCannotBeOpened expects a condition of the controller, and an Event about it, with
// the field and what would be right.
func TestTransportThatCannotBeOpened(t *testing.T) {
	parallel(t)
	for name, c := range map[string]struct{ hook, message string }{
		"an unknown name": {
			`transport:telegram {}`,
			`spec.hooks.sync.transport.name: "telegram" is no transport of this program; expected one of "letter"`,
		},
		"a configuration that it refuses": {
			`transport:letter {}`, "spec.hooks.sync.transport.config: to: is missing; expected the name of a hook",
		},
		"no configuration": {
			`transport:letter`, "spec.hooks.sync.transport.config: to: is missing; expected the name of a hook",
		},
		"an opener that panics": {
			`transport:letter {"open": "panics"}`, "spec.hooks.sync.transport.config: panic: the envelope is torn",
		},
		"an opener that returns nothing": {
			`transport:letter {"open": "returns nothing"}`,
			"spec.hooks.sync.transport.config: the transport returned neither a hook nor an error",
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := start(t)
			k.CRD("Page", "Namespaced")
			k.Declare(kit.Composite{Parent: "pages", Sync: c.hook})
			awaitControllerCondition(k, v1alpha1.ConditionReady, v1alpha1.ReasonInvalidSpec, c.message)
			k.AwaitEventOf(k.Name, "CreateError", c.message)
		})
	}
}
