package kit

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Condition returns a condition of an object's status, or nil if the status has none of that type.
func Condition(o *unstructured.Unstructured, conditionType string) map[string]any {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == conditionType {
			return c
		}
	}
	return nil
}

// AwaitFault waits until a parent reports that its sync fails. The condition Synced must have the
// reason and a message that contains part, and a warning Event must have the same text.
func (k *Kit) AwaitFault(kind, name, reason, part string) {
	k.Helper()
	k.Eventually(fmt.Sprintf("%s %s has the condition Synced=False, %s: %s", kind, name, reason, part), func() error {
		c := Condition(k.Get(kind, name), "Synced")
		message, _ := c["message"].(string)
		if c["status"] != "False" || c["reason"] != reason || !strings.Contains(message, part) {
			return fmt.Errorf("its condition is %v", c)
		}
		return nil
	})
	k.Eventually(fmt.Sprintf("%s %s has a SyncError Event: %s", kind, name, part), func() error {
		messages := k.Events(name, "SyncError")
		if !slices.ContainsFunc(messages, func(m string) bool { return strings.Contains(m, part) }) {
			return fmt.Errorf("its Events are %q", messages)
		}
		return nil
	})
}

// AwaitSynced waits until a parent no longer reports a fault: its condition Synced is True or
// absent.
func (k *Kit) AwaitSynced(kind, name string) {
	k.Helper()
	k.Eventually(fmt.Sprintf("%s %s has no condition Synced=False", kind, name), func() error {
		if c := Condition(k.Get(kind, name), "Synced"); c != nil && c["status"] != "True" {
			return fmt.Errorf("its condition is %v", c)
		}
		return nil
	})
}

// AwaitControllerEvent waits for an Event about the kit's controller with the reason.
func (k *Kit) AwaitControllerEvent(reason string) {
	k.Helper()
	k.AwaitEventOf(k.Name, reason, "")
}

// AwaitEventOf waits for an Event about a cluster-scoped object with the reason and a message that
// contains part.
func (k *Kit) AwaitEventOf(name, reason, part string) {
	k.Helper()
	k.Eventually(fmt.Sprintf("%s has an Event %s: %s", name, reason, part), func() error {
		// The API server keeps Events about cluster-scoped objects in the namespace default.
		messages := k.eventsIn(metav1.NamespaceDefault, name, reason)
		if !slices.ContainsFunc(messages, func(m string) bool { return strings.Contains(m, part) }) {
			return fmt.Errorf("its Events are %q", messages)
		}
		return nil
	})
}

// Events returns the messages of all Events about an object in the kit's namespace that have the
// reason.
func (k *Kit) Events(name, reason string) []string {
	k.Helper()
	return k.eventsIn(k.Namespace, name, reason)
}

// ControllerEvents returns the Events about the kit's controller that have the reason.
func (k *Kit) ControllerEvents(reason string) []unstructured.Unstructured {
	k.Helper()
	return k.eventObjects(metav1.NamespaceDefault, k.Name, reason)
}

func (k *Kit) eventsIn(namespace, name, reason string) []string {
	k.Helper()
	var messages []string
	for _, e := range k.eventObjects(namespace, name, reason) {
		message, _ := e.Object["message"].(string)
		messages = append(messages, message)
	}
	return messages
}

// EngineEvents returns the Events that engines recorded in the kit's namespace, and those about
// cluster-scoped objects with names that begin with the kit's name.
func (k *Kit) EngineEvents() []unstructured.Unstructured {
	k.Helper()
	var found []unstructured.Unstructured
	for _, namespace := range []string{k.Namespace, metav1.NamespaceDefault} {
		for _, e := range k.listEvents(namespace) {
			component, _, _ := unstructured.NestedString(e.Object, "source", "component")
			about, _, _ := unstructured.NestedString(e.Object, "involvedObject", "name")
			if component == "hookloop" && (namespace == k.Namespace || strings.HasPrefix(about, k.Name)) {
				found = append(found, e)
			}
		}
	}
	return found
}

func (k *Kit) eventObjects(namespace, name, reason string) []unstructured.Unstructured {
	k.Helper()
	return slices.DeleteFunc(k.listEvents(namespace), func(e unstructured.Unstructured) bool {
		about, _, _ := unstructured.NestedString(e.Object, "involvedObject", "name")
		return about != name || e.Object["reason"] != reason
	})
}

func (k *Kit) listEvents(namespace string) []unstructured.Unstructured {
	k.Helper()
	client, err := k.resource(k.gvk("v1/Event"), namespace)
	if err != nil {
		k.Fatal(err)
	}
	list, err := client.List(k.Context(), metav1.ListOptions{})
	if err != nil {
		k.Fatal(err)
	}
	return list.Items
}
