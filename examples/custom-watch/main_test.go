package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/controllertest"
	"github.com/hookloop/hookloop/examples/custom-watch/api"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// send sends a heartbeat, and returns the status of the response.
func send(t *testing.T, p *probes, token, body string) int {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
	request.Header.Set("Authorization", "Bearer "+token)
	recorder := httptest.NewRecorder()
	p.webhook.ServeHTTP(recorder, request)
	return recorder.Code
}

// TestHeartbeats sends heartbeats to a running controller.
func TestHeartbeats(t *testing.T) {
	types := runtime.NewScheme()
	if err := api.AddToScheme(types); err != nil {
		t.Fatal(err)
	}
	env := controllertest.New(t, controllertest.Options{
		Scheme: types, CRDs: controllertest.ReadCRDs(t, "crd.yaml"),
		Objects: []controllertest.Object{&api.Probe{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "backup"},
			Spec:       api.ProbeSpec{Period: metav1.Duration{Duration: time.Hour}},
		}},
	})
	p := newProbes("s3cret", time.Hour)
	want := func(message, alive string) {
		t.Helper()
		env.UntilQuiet(t.Context())
		status := controllertest.Get[*api.Probe](env, controllertest.Key{Namespace: "shop", Name: "backup"}).Status
		if got := fmt.Sprint(status.Message, " ", status.Conditions[0].Status); got != message+" "+alive {
			t.Errorf("status = %q, want %q and %s", got, message, alive)
		}
	}
	env.Run(p.controller())
	want("", "False")
	const beat = `{"namespace":"shop","name":"backup","message":"5 files"}`
	if status := send(t, p, "s3cret", beat); status != http.StatusAccepted {
		t.Fatalf("status = %d, want 202", status)
	}
	want("5 files", "True")
	for body, status := range map[string]int{
		`{"namespace":"shop","name":"other"}`:                                          http.StatusNotFound,
		`{"message":"` + strings.Repeat("x", maxMessage+1) + `"}`:                      http.StatusBadRequest,
		`{"namespace":"shop","name":"backup","x":"` + strings.Repeat("x", 5000) + `"}`: http.StatusRequestEntityTooLarge,
	} {
		if got := send(t, p, "s3cret", body); got != status {
			t.Errorf("status = %d for %.60s, want %d", got, body, status)
		}
	}
	if got := send(t, p, "guess", beat); got != http.StatusForbidden {
		t.Errorf("status = %d for a wrong token, want 403", got)
	}
	want("5 files", "True")
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.heartbeats) != 0 {
		t.Errorf("%d heartbeats are kept, want none after their status is written", len(p.heartbeats))
	}
}
