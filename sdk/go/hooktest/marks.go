package hooktest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// The engine marks objects with these annotations: the first two name the controller of an
// attachment or an output, the last one names an output's input. An output also carries a label of
// this name with a hash of the input's key.
const (
	decoratorAnnotation = "metacontroller.k8s.io/decorator-controller"
	mapAnnotation       = "metacontroller.k8s.io/map-controller"
	mapKeyMark          = "metacontroller.k8s.io/map-key"
)

// marks returns an error if the object looks as if another controller or input owned it.
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
