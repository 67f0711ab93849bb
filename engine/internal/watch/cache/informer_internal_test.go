package cache

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/hookloop/hookloop/engine/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// TestStopBeforeTheWatchAnswers stops a watch that an older API server has not answered, because
// there was no event yet. That is the normal end of a watch, and nothing to log.
func TestStopBeforeTheWatchAnswers(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		stop()
		<-r.Context().Done()
	}))
	defer server.Close()
	i := &informer{resource: object.Resource{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Plural: "pods"}}
	config := &Config{Config: &rest.Config{Host: server.URL}, Decode: object.Decode}
	var err error
	i.client, err = clientFor(config, i.resource, func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	w, err := i.listWatch().WatchWithContext(ctx, metav1.ListOptions{})
	if w != nil || !errors.Is(err, io.EOF) {
		t.Errorf("got %v, %v, want no watch and the end of file", w, err)
	}
}
