package transports_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/transports"
)

// TestOpenersListsAll registers a transport of a program in the same way as Hookloop's own. Each of
// them but the functions of the process may have a webhook as its fallback.
func TestOpenersListsAll(t *testing.T) {
	all := transports.Openers(transports.Config{More: hook.Openers{"tcp": Open}})
	want := []string{"grpc", "grpc+webhook", "inproc", "tcp", "tcp+webhook", "webhook"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(all))); diff != "" {
		t.Errorf("transports (-want +got):\n%s", diff)
	}
	for name, open := range all {
		if open == nil {
			t.Errorf("%s has no opener", name)
		}
	}
}

// TestFallbackOfATransport opens a transport of a program with a webhook as its fallback.
func TestFallbackOfATransport(t *testing.T) {
	webhook := `{"url":"http://127.0.0.1:1/sync"}`
	lost := func(config hook.Config) (*hook.Opened, error) {
		if string(config.Field) != `{"to":"home"}` {
			return nil, errors.New("to: is missing")
		}
		return &hook.Opened{Address: "letter:home", Hook: hook.Func(
			func(context.Context, *hook.Question) (*hook.Answer, error) {
				return nil, &hook.Error{Kind: hook.Unreachable, Hook: "sync letter:home", Err: errors.New("it came back")}
			})}, nil
	}
	open := transports.Openers(transports.Config{More: hook.Openers{"letter": lost}})["letter+webhook"]
	config := hook.Config{ControllerKind: "CompositeController", ControllerName: "hello", Op: hook.Sync, Version: "v2"}
	config.Field = json.RawMessage(`{"letter":{"to":"home"},"webhook":` + webhook + `}`)
	opened, err := open(config)
	if err != nil {
		t.Fatal(err)
	}
	if want := "letter:home or http://127.0.0.1:1/sync"; opened.Address != want {
		t.Errorf("the address is %q, want %q", opened.Address, want)
	}
	if err := opened.Close(); err != nil {
		t.Error(err)
	}
	config.Field = json.RawMessage(`{"letter":{},"webhook":` + webhook + `}`)
	_, err = open(config)
	if err == nil || !strings.HasPrefix(err.Error(), "transport.config: to: is missing") {
		t.Errorf("got %v, want the path of the field in the spec", err)
	}
}
