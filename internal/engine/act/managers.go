package act

import (
	"context"
	"slices"
	"strings"

	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/engine/merge"
)

// FieldManagers names who owns a field of an object beside the engine, by its
// metadata.managedFields, which it reads live. The path is as package merge writes paths. A field
// that is not there has no owner: then it is those of the closest field around it that has some. It
// returns that field's path. Applier is the engine's own name for server-side apply.
func (w *Writer) FieldManagers(
	ctx context.Context, r object.Resource, ref object.Ref, path, applier string,
) (managers []string, at string, err error) {
	data, err := w.raw(ctx, w.client.Get().AbsPath(pathOf(r, ref)...))
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
	for at := path; at != ""; at = around(at) {
		for _, m := range metadata.ManagedFields {
			ours := m.Manager == applier || slices.Contains(Managers, m.Manager)
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

// around is the path of the field that a field is in; empty for one that is in none.
func around(path string) string { return path[:max(0, strings.LastIndexAny(path, ".["))] }

func pathOf(r object.Resource, ref object.Ref) []string { return path(r, ref.Namespace, ref.Name) }
