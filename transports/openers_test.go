package transports_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
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

// TestFallbackOfATransport asks a transport of a program that reaches nobody, so that the webhook
// answers, which is its fallback.
func TestFallbackOfATransport(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"status":{"from":"webhook"},"children":[]}`) // the caller sees what is missing
	}))
	t.Cleanup(server.Close)
	webhook := fmt.Sprintf(`{"url":"%s/sync"}`, server.URL)
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
	if want := "letter:home or " + server.URL + "/sync"; opened.Address != want {
		t.Errorf("the address is %q, want %q", opened.Address, want)
	}
	answer, err := opened.Ask(t.Context(), question(t))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(answer.Status); got != `{"from":"webhook"}` || answer.AnsweredBy != "webhook" {
		t.Errorf("got the status %s, answered by %q, want the webhook's", got, answer.AnsweredBy)
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

// TestFallbackOfATransportThatReturnsNothing names what a transport must not do, whether it opens a
// hook or asks it.
func TestFallbackOfATransportThatReturnsNothing(t *testing.T) {
	silent := hook.Func(func(context.Context, *hook.Question) (*hook.Answer, error) { return nil, nil })
	all := transports.Openers(transports.Config{More: hook.Openers{
		"closed": func(hook.Config) (*hook.Opened, error) { return nil, nil },
		"silent": func(hook.Config) (*hook.Opened, error) { return &hook.Opened{Hook: silent, Address: "silent"}, nil },
	}})
	config := hook.Config{ControllerKind: "CompositeController", ControllerName: "hello", Op: hook.Sync, Version: "v2"}
	config.Field = json.RawMessage(`{"closed":{},"silent":{},"webhook":{"url":"http://127.0.0.1:1/sync"}}`)
	_, err := all["closed+webhook"](config)
	if err == nil || !strings.HasPrefix(err.Error(), "transport.config: the transport opened no hook") {
		t.Errorf("got %v, want an error that says so", err)
	}
	opened, err := all["silent+webhook"](config)
	if err != nil {
		t.Fatal(err)
	}
	_, err = opened.Ask(t.Context(), question(t))
	if hook.ErrorKindOf(err) != hook.Invalid || !strings.Contains(err.Error(), "neither an answer nor an error") {
		t.Errorf("got %v, want an error of kind %s", err, hook.Invalid)
	}
	if err := opened.Close(); err != nil {
		t.Error(err)
	}
}
