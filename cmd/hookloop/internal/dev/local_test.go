package dev

import (
	"strings"
	"testing"

	"github.com/hookloop/hookloop/internal/proc"
)

// TestPlaneEnds ends the session when a process of the control plane ends, even without a fault.
func TestPlaneEnds(t *testing.T) {
	p, err := proc.Start(proc.Spec{Name: "etcd", Path: "/bin/echo", Args: []string{"bye"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := whileRunning(t.Context(), p)
	<-ctx.Done()
	if err := stop(); err == nil || !strings.Contains(err.Error(), "etcd has ended: exit status 0; its log ends: bye") {
		t.Errorf("got %v, expected that etcd has ended with exit status 0", err)
	}
}
