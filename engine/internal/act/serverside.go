package act

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"time"

	"github.com/hookloop/hookloop/engine/internal/jsonmap"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/plan/merge"
	"github.com/hookloop/hookloop/engine/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
)

// engineManagers are the engine's field managers for all writes but server-side apply: those of its
// dynamic apply, and of Metacontroller's. The API server derives them from the user agent.
var engineManagers = []string{"hookloop", "metacontroller"}

// recordApply turns the managedFields of a created object into those of an apply. Children are
// created by POST, which never takes over an existing object. But the API server records a POST as
// an update of all fields, including its defaults.
func (w *Writer) recordApply(ctx context.Context, a plan.Action, created []byte) (*object.Object, error) {
	o, err := metadataOf(created)
	if err != nil {
		return nil, err
	}
	for i := range o.ManagedFields {
		m := &o.ManagedFields[i]
		if m.Manager != a.Manager || m.Operation != metav1.ManagedFieldsOperationUpdate || m.Subresource != "" ||
			m.FieldsV1 == nil {
			continue
		}
		owned, err := merge.ParseOwned(m.FieldsV1.GetRawBytes())
		if err != nil {
			return nil, err
		}
		kept, err := owned.Less(owned.Dropped(a.Applied)).FieldsV1()
		if err != nil {
			return nil, err
		}
		m.FieldsV1.SetRawBytes(kept)
		m.Operation = metav1.ManagedFieldsOperationApply
	}
	claimed, err := w.Patch(ctx, a.Resource, a.Ref, types.JSONPatchType, []map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": o.ManagedFields},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": o.ResourceVersion},
	}, "")
	if Gone(err) { // deleted meanwhile
		return nil, ErrStale
	}
	return claimed, err
}

// metadataOf decodes an object's metadata with managedFields.
func metadataOf(data []byte) (*metav1.PartialObjectMetadata, error) {
	o := &metav1.PartialObjectMetadata{}
	return o, json.Unmarshal(data, o)
}

// serverSide applies the action's body by force: the hook owns the fields that it names. The UID
// and the resourceVersion are preconditions.
func (w *Writer) serverSide(ctx context.Context, a plan.Action) (*object.Object, error) {
	var taken *object.Object
	if a.Takeover {
		var err error
		taken, err = w.takeOver(ctx, a)
		if err != nil {
			return nil, err
		}
	}
	if taken != nil {
		a.ResourceVersion = taken.ResourceVersion()
	}
	body := maps.Clone(a.Body)
	metadata, _ := body["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	metadata["uid"], metadata["resourceVersion"] = string(a.UID), a.ResourceVersion
	body["metadata"] = metadata
	data, err := jsonmap.Encode(body)
	if err != nil {
		return nil, err
	}
	applied, err := w.write(ctx, a.Resource,
		w.validated(applying(pathOf(a.Resource, a.Ref), data).param("fieldManager", a.Manager)))
	if err != nil {
		return taken, err
	}
	return applied, nil
}

// applying returns a request that applies fields by force.
func applying(segments []string, body []byte) apiRequest {
	q := apiRequest{method: http.MethodPatch, segments: segments, contentType: string(types.ApplyPatchType), body: body}
	return q.param("force", "true")
}

// takeOver makes the field manager the owner of fields that the engine has written by other means,
// so that the apply removes those that it leaves out. It returns the written object, or nil if
// there was nothing to take over.
func (w *Writer) takeOver(ctx context.Context, a plan.Action) (*object.Object, error) {
	data, err := w.raw(ctx, apiRequest{method: http.MethodGet, segments: pathOf(a.Resource, a.Ref)})
	if err != nil {
		return nil, err
	}
	o, err := metadataOf(data)
	if err != nil {
		return nil, err
	}
	if o.UID != a.UID || o.ResourceVersion != a.ResourceVersion {
		return nil, ErrStale
	}
	before := sets.New(append([]string{a.Manager}, engineManagers...)...)
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(o, before, a.Manager)
	if err != nil || len(bytes.TrimSpace(patch)) == 0 {
		return nil, err
	}
	return w.Patch(ctx, a.Resource, a.Ref, types.JSONPatchType, json.RawMessage(patch), "")
}

// requestTimeout bounds one request. It is a little longer than the API server's own limit of a
// minute, so that a server or proxy that never answers does not hold a worker.
const requestTimeout = 70 * time.Second

// raw performs a request under the fence and returns the JSON of the response.
func (w *Writer) raw(ctx context.Context, q apiRequest) ([]byte, error) {
	ctx, end, err := w.Fence.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	data, err := w.client.do(ctx, q)
	if err != nil && errors.Is(context.Cause(ctx), ErrFenced) {
		return nil, fmt.Errorf("%w (%w)", ErrFenced, err)
	}
	return data, err
}
