package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/kit"
	"github.com/hookloop/hookloop/test/serve"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// TestAPIServerRestarts kills the API server of its own cluster several times, like a rolling
// upgrade of a control plane. After each restart, the engine acts on an edit without a growing
// delay; the test logs the time.
func TestAPIServerRestarts(t *testing.T) {
	parallel(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	c, err := cluster.New(ctx, cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	installCRDs(ctx, t, c)
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var question struct {
			Object struct {
				Data map[string]string `json:"data"`
			} `json:"object"`
		}
		if err := json.NewDecoder(r.Body).Decode(&question); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"annotations": map[string]string{"seen": question.Object.Data["text"]}})
	}))
	t.Cleanup(echo.Close)
	e, err := serve.Start(ctx, serve.Config{Kubeconfig: c.Kubeconfig()})
	if e != nil {
		t.Cleanup(func() {
			if err := e.Kill(); err != nil {
				t.Error(err)
			}
			if t.Failed() {
				t.Log(e.Output())
			}
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(c.Admin())
	if err != nil {
		t.Fatal(err)
	}
	decorate := fmt.Sprintf(
		`{"apiVersion":"metacontroller.k8s.io/v1alpha1","kind":"DecoratorController","metadata":{"name":"echo"},"spec":{
		"resources":[{"apiVersion":"v1","resource":"configmaps","labelSelector":{"matchLabels":{"echo":"yes"}}}],
		"hooks":{"sync":{"webhook":{"url":%q}}}}}`,
		echo.URL,
	)
	if err := client.RESTClient().Post().AbsPath(
		"/apis/metacontroller.k8s.io/v1alpha1/decoratorcontrollers",
	).Body(
		[]byte(decorate),
	).
		SetHeader(
			"Content-Type",
			"application/json",
		).Do(
		ctx,
	).Error(); err != nil {
		t.Fatal(err)
	}
	page := []byte(
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"page","labels":{"echo":"yes"}},"data":{"text":"0"}}`)
	if err := client.RESTClient().Post().AbsPath("/api/v1/namespaces/default/configmaps").Body(page).
		SetHeader("Content-Type", "application/json").Do(ctx).Error(); err != nil {
		t.Fatal(err)
	}
	seen := func(text string) {
		t.Helper()
		began := time.Now()
		for tick := time.NewTicker(20 * time.Millisecond); ; {
			o, err := client.CoreV1().ConfigMaps("default").Get(ctx, "page", metav1.GetOptions{})
			if err == nil && o.Annotations["seen"] == text {
				t.Logf("edit %s was acted on after %s", text, time.Since(began).Round(time.Millisecond))
				return
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				t.Fatalf("edit %s is not acted on: %v", text, err)
			}
		}
	}
	seen("0")
	for n := 1; n <= 3; n++ {
		if err := c.APIServer.Restart(); err != nil {
			t.Fatal(err)
		}
		if err := c.AwaitAPIServer(ctx); err != nil {
			t.Fatal(err)
		}
		edit := fmt.Appendf(nil, `{"data":{"text":"%d"}}`, n)
		if _, err := client.CoreV1().ConfigMaps("default").Patch(ctx, "page", types.MergePatchType, edit,
			metav1.PatchOptions{FieldManager: kit.UserAgent}); err != nil {
			t.Fatal(err)
		}
		seen(fmt.Sprint(n))
	}
}
