package plan

import (
	"fmt"

	"github.com/hookloop/hookloop/engine/internal/jsonmap"
	"github.com/hookloop/hookloop/engine/object"
)

// maxAnnotations is the API server's limit for all annotations of an object, in bytes.
const maxAnnotations = 256 << 10

// lastApplied decodes the annotation; it is nil if the object has none. An annotation that is no
// JSON object was not written by the engine and counts as none: the next write replaces it.
func lastApplied(o *object.Object) map[string]any {
	if !o.HasLastApplied() {
		return nil
	}
	last, err := object.DecodeMap([]byte(o.LastApplied()))
	if err != nil {
		return nil
	}
	return last
}

// annotate puts the last-applied annotation into body.
func annotate(body, desired map[string]any) error {
	last, err := jsonmap.Encode(desired)
	if err != nil {
		return err
	}
	annotations := objectField(objectField(body, "metadata"), "annotations")
	annotations[object.LastAppliedAnnotation] = string(last)
	size := 0
	for key, value := range annotations {
		text, _ := value.(string)
		size += len(key) + len(text)
	}
	if size > maxAnnotations {
		return fmt.Errorf("its annotations would be %d bytes with the last applied state in %s, expected at most %d; "+
			"make the object smaller", size, object.LastAppliedAnnotation, maxAnnotations)
	}
	return nil
}
