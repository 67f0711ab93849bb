package plan

import (
	"encoding/base64"
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// secrets is the kind with a field that the API server accepts and never returns.
var secrets = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}

// asStored returns a desired object as the API server stores it: with a Secret's stringData in its
// data. Otherwise the compared field would never be there, and the field with the values never be
// compared. It does not change its argument. A stringData that the server refuses stays, so that
// the server refuses it.
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
		case nil: // null means an absent field, as in all desired objects
		default:
			return body
		}
	}
	out := maps.Clone(body)
	delete(out, "stringData")
	out["data"] = folded
	return out
}
