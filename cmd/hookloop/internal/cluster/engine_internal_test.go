package cluster

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// TestLongResponse asks an engine for a response without end, through the API server and directly.
func TestLongResponse(t *testing.T) {
	block := strings.Repeat("x", 1<<20)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, block); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	e, err := newEngines(Engine{}, &rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}}
	err = e.proxied(t.Context(), pod, "/metrics", nil, "").Err
	if err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("through the API server: got %v, expected that the response is too large", err)
	}
	direct := &engines{Engine: Engine{MetricsURL: server.URL}}
	_, err = direct.direct(t.Context(), "/metrics", nil, "")
	if err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("directly: got %v, expected that the response is too large", err)
	}
}
