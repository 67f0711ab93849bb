package cluster

import "testing"

// TestNewestMinor reads the version of which the control plane is built.
func TestNewestMinor(t *testing.T) {
	if minor, err := newestMinor(); err != nil || len(minor) != 2 || minor < "36" {
		t.Errorf("got %q, %v, want a minor version from 36 on", minor, err)
	}
}
