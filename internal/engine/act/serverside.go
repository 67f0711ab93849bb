package act

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/engine/merge"
	"github.com/hookloop/hookloop/internal/engine/plan"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/csaupgrade"
)

// Managers are the names under which the engine writes by other means than server-side apply: by
// dynamic apply, and by Metacontroller's. The API server takes them from the user agent.
var Managers = []string{"hookloop", "metacontroller"}

// claim makes a created object one that was applied: it was posted, so that an object of the same
// name that is there already is never taken over, but the API server records a post as an update by
// whoever posts, of all fields, those that it defaults included.
func (w *Writer) claim(ctx context.Context, a plan.Action, created []byte) (*object.Object, error) {
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

// metadataOf reads an object's metadata, managedFields included.
func metadataOf(data []byte) (*metav1.PartialObjectMetadata, error) {
	o := &metav1.PartialObjectMetadata{}
	return o, json.Unmarshal(data, o)
}

// serverSide applies the action's body, by force: the hook's word counts. The UID and the
// resourceVersion are preconditions.
func (w *Writer) serverSide(ctx context.Context, a plan.Action) (*object.Object, error) {
	var taken *object.Object
	if a.Takeover {
		var err error
		if taken, err = w.takeOver(ctx, a); err != nil {
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
	data, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	applied, err := w.write(ctx, a.Resource, w.validated(w.client.Patch(types.ApplyPatchType)).
		AbsPath(path(a.Resource, a.Ref.Namespace, a.Ref.Name)...).
		Param("fieldManager", a.Manager).Param("force", "true").Body(data))
	if err != nil {
		return taken, err
	}
	return applied, nil
}

// takeOver has the field manager own what the engine wrote before by other means, so that the apply
// removes what it leaves out. It returns the object as written, or nil if there was nothing to take
// over.
func (w *Writer) takeOver(ctx context.Context, a plan.Action) (*object.Object, error) {
	data, err := w.raw(ctx, w.client.Get().AbsPath(path(a.Resource, a.Ref.Namespace, a.Ref.Name)...))
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
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(o, sets.New(append([]string{a.Manager}, Managers...)...), a.Manager)
	if err != nil || len(bytes.TrimSpace(patch)) == 0 {
		return nil, err
	}
	return w.Patch(ctx, a.Resource, a.Ref, types.JSONPatchType, json.RawMessage(patch), "")
}

// requestTimeout bounds one request. It is a little more than the API server's own limit of a
// minute, so that a server or a proxy that never answers does not hold a worker for ever.
const requestTimeout = 70 * time.Second

// raw performs a request under the fence and returns the answer's JSON.
func (w *Writer) raw(ctx context.Context, request *rest.Request) ([]byte, error) {
	ctx, end, err := w.Fence.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	collect(ctx, request)
	result := request.Do(ctx)
	if err := result.Error(); err != nil { // Raw alone would not read what the API server says
		if errors.Is(context.Cause(ctx), ErrFenced) {
			return nil, fmt.Errorf("%w (%w)", ErrFenced, err)
		}
		return nil, err
	}
	return result.Raw()
}
