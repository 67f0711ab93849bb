package controller_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/engine/internal/host"
)

// post sends a body to a webhook, and returns the status and the text of the response.
func post(t *testing.T, to http.Handler, token, body string) (int, string) {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	recorder := httptest.NewRecorder()
	to.ServeHTTP(recorder, request)
	text, err := io.ReadAll(recorder.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return recorder.Code, string(text)
}

// TestWebhook reconciles the keys of allowed, valid requests, and refuses the others.
func TestWebhook(t *testing.T) {
	w := newFixture(t)
	webhook := controller.NewWebhook(controller.WebhookOptions{
		Authorize: controller.BearerToken("s3cret"), MaxBytes: 40000,
	})
	seen := make(chan string, 100)
	const milk = `{"keys":[{"namespace":"shop","name":"milk"}]}`
	if status, _ := post(t, webhook, "s3cret", milk); status != http.StatusServiceUnavailable {
		t.Errorf("status = %d before the controller runs, want 503", status)
	}
	group := w.run(controller.New[configMap]("webhook").Source(webhook).Reconciler(reconciler(
		func(_ context.Context, req *controller.Request[configMap]) (controller.Result, error) {
			seen <- fmt.Sprint(req.Key, " ", req.Causes[0].Reason)
			return controller.Result{}, nil
		})))
	eventually(t, func() bool {
		status, _ := post(t, webhook, "s3cret", milk)
		return status == http.StatusAccepted
	}, func() string { return fmt.Sprint("no request is accepted: ", group.Problems()) })
	wants(t, seen, "shop/milk webhook")
	for name, test := range map[string]struct {
		token, body string
		status      int
		want        string
	}{
		"no token":      {"", milk, 403, "the request is not allowed"},
		"a wrong token": {"guess", milk, 403, "the request is not allowed"},
		"a large body":  {"s3cret", strings.Repeat(" ", 40001), 413, "more than 40000 bytes"},
		"no JSON":       {"s3cret", "milk", 400, `of the form {"keys"`},
		"no key":        {"s3cret", "{}", 400, "keys is empty"},
		"no name":       {"s3cret", `{"keys":[{"namespace":"shop"}]}`, 400, "key 0: name is empty"},
		"a path": {
			"s3cret", `{"keys":[{"namespace":"shop","name":"../a"}]}`, 400, `key 0: name: got "../a"`,
		},
		"no namespace": {"s3cret", `{"keys":[{"name":"milk"}]}`, 400, `key 0: namespace: got ""`},
		"many keys": {
			"s3cret", `{"keys":[` + strings.Repeat(`{"namespace":"s","name":"a"},`, 1000) + `{}]}`, 400,
			"1001 keys, expected at most 1000",
		},
	} {
		t.Run(name, func(t *testing.T) {
			status, text := post(t, webhook, test.token, test.body)
			if status != test.status || !strings.Contains(text, test.want) {
				t.Errorf("response = %d %q, want %d with %q", status, text, test.status, test.want)
			}
		})
	}
}

// TestWebhookKeys gives the user's function a Reader, and turns its errors into statuses.
func TestWebhookKeys(t *testing.T) {
	w := newFixture(t)
	w.server.Put(configMaps, body(configMaps, "milk", ""))
	webhook := controller.NewWebhook(controller.WebhookOptions{
		Authorize: func(*http.Request) error { return nil },
		Keys: func(_ context.Context, r controller.Reader, body []byte) ([]controller.Key, error) {
			switch key := (controller.Key{Namespace: "shop", Name: string(body)}); key.Name {
			case "panic":
				panic("a secret")
			case "error":
				return nil, errors.New("an error")
			default:
				_, err := controller.Get[configMap](r, key)
				return []controller.Key{key}, err
			}
		},
	})
	w.run(controller.New[configMap]("webhook").Source(webhook).Reconciler(reconciler(idle)))
	eventually(t, func() bool {
		status, _ := post(t, webhook, "", "milk")
		return status == http.StatusAccepted
	}, func() string { return "no request is accepted" })
	for body, want := range map[string]string{
		"bread": `404 ConfigMap.v1 "shop/bread" does not exist`, "error": "400 an error",
		"panic": "500 the request cannot be handled",
	} {
		status, text := post(t, webhook, "", body)
		if got := fmt.Sprint(status, " ", strings.TrimSpace(text)); got != want {
			t.Errorf("response to %q = %q, want %q", body, got, want)
		}
	}
}

// TestSourcesAreChecked reports faults of sources as those of the declaration.
func TestSourcesAreChecked(t *testing.T) {
	for want, source := range map[string]controller.Source{
		"source 0: webhook: Authorize is nil":     controller.NewWebhook(controller.WebhookOptions{}),
		"source 0: ticker: the period is 0s":      controller.Ticker(0, nil),
		"source 0: ticker: the function is nil":   controller.Ticker(1, nil),
		"source 0: triggers: the worker is empty": controller.Triggers(""),
		"source 0 is nil":                         nil,
		"source 0: webhook: MaxBytes is -1": controller.NewWebhook(controller.WebhookOptions{
			MaxBytes: -1, Authorize: controller.BearerToken(""),
		}),
	} {
		err := host.Check(nil, controller.New[configMap]("c").Source(source).Reconciler(reconciler(idle)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Check = %v, want an error with %q", err, want)
		}
	}
	if status, _ := post(t, controller.NewWebhook(controller.WebhookOptions{
		Authorize: controller.BearerToken(""),
	}), "", "{}"); status != http.StatusForbidden {
		t.Errorf("status = %d for an empty token, want 403", status)
	}
}
