package plan

import (
	"encoding/base64"
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// secrets is the kind with a field that the API server takes and never returns.
var secrets = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}

// asStored returns a desired object as the API server stores it: a Secret's stringData is put into
// its data. Without that, the field that is compared is never there and the one that holds the
// values is never looked at. The object itself is not changed. A stringData that the server refuses
// is left for the server to refuse.
func asStored(gvk schema.GroupVersionKind, body map[string]any) map[string]any {
	text, ok := body["stringData"].(map[string]any)
	if gvk != secrets || !ok {
		return body
	}
	data, ok := body["data"].(map[string]any)
	if !ok && body["data"] != nil {
		return body
	}
	folded := make(map[string]any, len(data)+len(text))
	maps.Copy(folded, data)
	for key, value := range text {
		switch value := value.(type) {
		case string:
			folded[key] = base64.StdEncoding.EncodeToString([]byte(value))
		case nil: // an absent one, as everywhere in what is desired
		default:
			return body
		}
	}
	out := maps.Clone(body)
	delete(out, "stringData")
	out["data"] = folded
	return out
}
