package kit

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Condition is a condition of an object's status; nil where it has none of that type.
func Condition(o *unstructured.Unstructured, conditionType string) map[string]any {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == conditionType {
			return c
		}
	}
	return nil
}

// AwaitFault waits until a parent says that its sync fails: by the condition Synced with the reason and a message that contains says,
// and by a warning Event with the same text.
func (k *Kit) AwaitFault(kind, name, reason, says string) {
	k.Helper()
	k.Eventually(fmt.Sprintf("%s %s has the condition Synced=False, %s: %s", kind, name, reason, says), func() error {
		c := Condition(k.Get(kind, name), "Synced")
		message, _ := c["message"].(string)
		if c["status"] != "False" || c["reason"] != reason || !strings.Contains(message, says) {
			return fmt.Errorf("its condition is %v", c)
		}
		return nil
	})
	k.Eventually(fmt.Sprintf("%s %s has a SyncError Event: %s", kind, name, says), func() error {
		messages := k.Events(name, "SyncError")
		if !slices.ContainsFunc(messages, func(m string) bool { return strings.Contains(m, says) }) {
			return fmt.Errorf("its Events are %q", messages)
		}
		return nil
	})
}

// AwaitSynced waits until a parent no longer says that its sync fails.
func (k *Kit) AwaitSynced(kind, name string) {
	k.Helper()
	k.Eventually(fmt.Sprintf("%s %s has no condition Synced any more", kind, name), func() error {
		if c := Condition(k.Get(kind, name), "Synced"); c != nil {
			return fmt.Errorf("its condition is %v", c)
		}
		return nil
	})
}

// Events are the messages of the Events with a reason about an object in the kit's namespace.
func (k *Kit) Events(name, reason string) []string {
	k.Helper()
	var messages []string
	for _, e := range k.List("v1/Event") {
		about, _, _ := unstructured.NestedString(e.Object, "involvedObject", "name")
		if about == name && e.Object["reason"] == reason {
			message, _ := e.Object["message"].(string)
			messages = append(messages, message)
		}
	}
	return messages
}
