package hook_test

import (
	"testing"

	"github.com/hookloop/hookloop/engine/hook"
)

// TestKinds: each row of the table is complete, and found by both of its names.
func TestKinds(t *testing.T) {
	for _, k := range hook.Descriptors() {
		if k.Plural == "" || k.ParentField == "" || k.ChildrenField == "" || k.Service == "" || len(k.Operations) == 0 {
			t.Errorf("the row of %s is not complete: %+v", k.ControllerKind, k)
		}
		if found, ok := hook.DescriptorOf(k.Declared); !ok || found.ControllerKind != k.ControllerKind {
			t.Errorf("DescriptorOf(%q) = %q, %v; want %q", k.Declared, found.ControllerKind, ok, k.ControllerKind)
		}
		if got := k.Descriptor().Declared; got != k.Declared {
			t.Errorf("%s.Descriptor() is of %q, want %q", k.ControllerKind, got, k.Declared)
		}
	}
	if _, ok := hook.DescriptorOf("Deployment"); ok {
		t.Error("DescriptorOf finds a kind of controller for Deployment")
	}
}
