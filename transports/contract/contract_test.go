package contract

import (
	"strings"
	"testing"

	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
)

func TestAPatchMayNotSetAndRemoveAKey(t *testing.T) {
	_, err := Answer(&hookv1.DecoratorHookServiceSyncResponse{SetLabels: map[string]string{"a": "b"}, RemoveLabels: []string{"a"}})
	if err == nil || !strings.Contains(err.Error(), `labels: "a" is both set and removed`) {
		t.Errorf("got %v, want an error that names the label", err)
	}
}
