package act

import (
	"context"
	"slices"

	"github.com/hookloop/hookloop/engine/merge"
	"github.com/hookloop/hookloop/engine/object"
)

// FieldManagers names who owns a field of an object beside the engine, by its metadata.managedFields, which it reads live. The
// path is as package merge writes paths; an owner of something inside of it counts. Applier is the engine's own name for
// server-side apply.
func (w *Writer) FieldManagers(ctx context.Context, r object.Resource, ref object.Ref, path, applier string) ([]string, error) {
	data, err := w.raw(ctx, w.client.Get().AbsPath(pathOf(r, ref)...))
	if err != nil {
		return nil, err
	}
	metadata, err := metadataOf(data)
	if err != nil {
		return nil, err
	}
	body, err := object.DecodeMap(data)
	if err != nil {
		return nil, err
	}
	var managers []string
	for _, m := range metadata.ManagedFields {
		if m.FieldsV1 == nil || m.Manager == applier || slices.Contains(Managers, m.Manager) {
			continue
		}
		owned, err := merge.ParseOwned(m.FieldsV1.GetRawBytes())
		if err != nil {
			return nil, err
		}
		if owned.Touches(body, path) && !slices.Contains(managers, m.Manager) {
			managers = append(managers, m.Manager)
		}
	}
	return managers, nil
}

func pathOf(r object.Resource, ref object.Ref) []string { return path(r, ref.Namespace, ref.Name) }
