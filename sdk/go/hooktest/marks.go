package hooktest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/hookloop/hookloop/internal/protocol/answers"
)

// marks returns an error if the object looks as if another controller or input owned it.
func (v *validator) marks(metadata map[string]any) error {
	annotations, _ := metadata["annotations"].(map[string]any)
	for _, mark := range answers.Rules.AllMarks() {
		if value := annotations[mark.Key]; value != nil && v.field != mark.List {
			return fmt.Errorf(
				"metadata.annotations[%q] is %q; expected none, because it names the %s that an object belongs to",
				mark.Key, value, mark.Names)
		}
	}
	if v.field != "outputs" {
		return nil
	}
	mapController := answers.Rules.Marks.MapController.Key
	mapKey := answers.Rules.Marks.MapKey.Key
	if value := annotations[mapController]; value != nil && v.controller != "" && value != v.controller {
		return fmt.Errorf("metadata.annotations[%q] is %q; expected %q, or none", mapController, value, v.controller)
	}
	if v.mapKey == "" {
		return nil
	}
	if value := annotations[mapKey]; value != nil && value != v.mapKey {
		return fmt.Errorf("metadata.annotations[%q] is %q; expected %q, or none", mapKey, value, v.mapKey)
	}
	sum := sha256.Sum256([]byte(v.mapKey))
	hash := hex.EncodeToString(sum[:16])
	labels, _ := metadata["labels"].(map[string]any)
	if value := labels[mapKey]; value != nil && value != hash {
		return fmt.Errorf("metadata.labels[%q] is %q; expected %q, or none", mapKey, value, hash)
	}
	return nil
}
