package act

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/hookloop/hookloop/engine/internal/plan/merge"
	"github.com/hookloop/hookloop/engine/object"
)

// FieldManagers returns the field managers that own a field of an object beside the engine, from a
// live read of metadata.managedFields. Path has the form of package merge's paths. If no manager
// owns the field, it returns the managers of the closest field around it that has some, and that
// field's path. Applier is the engine's own field manager for server-side apply.
func (w *Writer) FieldManagers(
	ctx context.Context, r object.Resource, ref object.Ref, path, applier string,
) (managers []string, at string, err error) {
	data, err := w.raw(ctx, apiRequest{method: http.MethodGet, segments: pathOf(r, ref)})
	if err != nil {
		return nil, "", err
	}
	metadata, err := metadataOf(data)
	if err != nil {
		return nil, "", err
	}
	body, err := object.DecodeMap(data)
	if err != nil {
		return nil, "", err
	}
	for at := path; at != ""; at = parentPath(at) {
		for _, m := range metadata.ManagedFields {
			ours := m.Manager == applier || slices.Contains(engineManagers, m.Manager)
			if m.FieldsV1 == nil || ours || slices.Contains(managers, m.Manager) {
				continue
			}
			owned, err := merge.ParseOwned(m.FieldsV1.GetRawBytes())
			if err != nil {
				return nil, "", err
			}
			if owned.Touches(body, at) {
				managers = append(managers, m.Manager)
			}
		}
		if len(managers) > 0 {
			return managers, at, nil
		}
	}
	return nil, "", nil
}

// parentPath returns the path of the field that contains a field; empty for a field at the top.
func parentPath(path string) string { return path[:max(0, strings.LastIndexAny(path, ".["))] }

func pathOf(r object.Resource, ref object.Ref) []string { return path(r, ref.Namespace, ref.Name) }
