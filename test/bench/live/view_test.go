package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

func newView() *view { return &view{children: map[string]child{}, texts: map[string]int{}} }

// sees passes an event to a view, at a second.
func sees(t *testing.T, v *view, event watch.EventType, name, version, text string, second int64) {
	t.Helper()
	o := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version},
		Data:       map[string]string{"text": text},
	}
	if err := v.see(watch.Event{Type: event, Object: o}, time.Unix(second, 0)); err != nil {
		t.Fatal(err)
	}
}

func TestViewReportsAllChildrenRight(t *testing.T) {
	v := newView()
	sees(t, v, watch.Added, "a", "1", "old", 1)
	sees(t, v, watch.Added, "b", "2", "new", 2)
	sees(t, v, watch.Added, "c", "3", "old", 3)
	sees(t, v, watch.Modified, "a", "4", "new", 4)
	sees(t, v, watch.Deleted, "c", "5", "old", 5)
	at, err := v.awaitAll(t.Context(), 2, "new")
	if err != nil || at.Unix() != 5 {
		t.Errorf("awaitAll = %v, %v, want second 5", at.Unix(), err)
	}
}

func TestViewReportsOneCorrectedChild(t *testing.T) {
	v := newView()
	sees(t, v, watch.Added, "a", "1", "new", 1) // before the edit, which is version 2
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := v.awaitOne(ctx, "a", 2, "new"); !errors.Is(err, context.Canceled) {
		t.Errorf("awaitOne = %v, want that it waited for a later version", err)
	}
	sees(t, v, watch.Modified, "a", "2", "edited", 2)
	sees(t, v, watch.Modified, "a", "3", "new", 3)
	sees(t, v, watch.Added, "b", "4", "new", 4)
	at, err := v.awaitOne(t.Context(), "a", 2, "new")
	if err != nil || at.Unix() != 3 {
		t.Errorf("awaitOne = %v, %v, want second 3", at.Unix(), err)
	}
}

func TestFailedViewReportsIt(t *testing.T) {
	v := newView()
	v.fail(errors.New("the watch is gone"))
	if _, err := v.awaitAll(t.Context(), 1, "new"); err == nil || !strings.Contains(err.Error(), "the watch is gone") {
		t.Errorf("awaitAll = %v, want the failure", err)
	}
	if err := v.see(watch.Event{Type: watch.Error, Object: &metav1.Status{Message: "expired"}},
		time.Now()); err == nil ||
		!strings.Contains(err.Error(), "expired") {
		t.Errorf("see = %v, want the API server's error", err)
	}
}
