package hooktest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// The annotations that name the controller of an attachment or output, and the input of an output.
// Outputs carry a hash of their input's key as a label of the same name.
const (
	decoratorAnnotation = "metacontroller.k8s.io/decorator-controller"
	mapAnnotation       = "metacontroller.k8s.io/map-controller"
	mapKeyMark          = "metacontroller.k8s.io/map-key"
)

// marks validates that an object does not look like that of another controller or input.
func (v *validator) marks(metadata map[string]any) error {
	annotations, _ := metadata["annotations"].(map[string]any)
	for _, mark := range []struct{ key, of, field string }{
		{decoratorAnnotation, "decorator", "attachments"},
		{mapAnnotation, "map controller", "outputs"},
		{mapKeyMark, "input of a map controller", "outputs"},
	} {
		if value := annotations[mark.key]; value != nil && v.field != mark.field {
			return fmt.Errorf(
				"metadata.annotations[%q] is %q; expected none, because it names the %s that an object belongs to",
				mark.key, value, mark.of)
		}
	}
	if v.field != "outputs" {
		return nil
	}
	if value := annotations[mapAnnotation]; value != nil && v.controller != "" && value != v.controller {
		return fmt.Errorf("metadata.annotations[%q] is %q; expected %q, or none", mapAnnotation, value, v.controller)
	}
	if v.mapKey == "" {
		return nil
	}
	if value := annotations[mapKeyMark]; value != nil && value != v.mapKey {
		return fmt.Errorf("metadata.annotations[%q] is %q; expected %q, or none", mapKeyMark, value, v.mapKey)
	}
	sum := sha256.Sum256([]byte(v.mapKey))
	hash := hex.EncodeToString(sum[:16])
	labels, _ := metadata["labels"].(map[string]any)
	if value := labels[mapKeyMark]; value != nil && value != hash {
		return fmt.Errorf("metadata.labels[%q] is %q; expected %q, or none", mapKeyMark, value, hash)
	}
	return nil
}
