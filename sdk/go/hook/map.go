package hook

import (
	"context"
	"fmt"
	"strings"
	"time"

	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
)

// MapFunc returns the desired outputs of one input. As Finalize it is called while the parent is
// finalized.
type MapFunc func(ctx context.Context, req *MapRequest) (*MapResponse, error)

// TombstoneFunc returns the outputs to keep of an input that is gone. Function Keep makes the
// response.
type TombstoneFunc func(ctx context.Context, req *TombstoneRequest) (*TombstoneResponse, error)

// Mapper is the hook of a MapController. Functions may be nil, as in Composite. Map and Finalize
// may be the same function.
type Mapper struct {
	Map       MapFunc
	Tombstone TombstoneFunc
	Finalize  MapFunc
	Customize CustomizeFunc
}

// MapRequest is the observed state of one input of a parent. The function owns it and may change
// it, except for the bytes of an Object's JSON.
type MapRequest struct {
	// Controller is the MapController that calls the hook.
	Controller Object
	// Parent is the parent, which selects the input and owns the outputs. The function Parent
	// decodes it.
	Parent Object
	// MapKey identifies the input within the parent by its group, kind, namespace and name. An input
	// that is deleted and created again has the same key.
	MapKey string
	// Input is the input. The function Input decodes it. In requests to Finalize it is the zero
	// Object if the input is gone.
	Input Object
	// Outputs are the observed outputs of the input: one group for each kind that the controller
	// declares, even if it is empty. The function OutputsOf decodes one.
	Outputs Groups
	// Related are the related objects, as in SyncRequest.
	Related map[string]RelatedGroup
	// Finalizing reports whether the parent is finalized: it is deleted, or no longer selected.
	Finalizing bool
}

// MapResponse is the desired state of one input's outputs. The parent's status is computed from all
// inputs and outputs, so a response has neither status nor conditions.
type MapResponse struct {
	// Outputs are all desired outputs of the input. Hookloop deletes an observed output that is not
	// in the list.
	Outputs []Child
	// ResyncAfter is the time until Hookloop calls the hook about this input again, even if nothing
	// changes. 0 means not at all.
	ResyncAfter time.Duration
	// Finalized reports that the hook is done with the input. When it is done with all of them, the
	// API server can delete the parent. It has no effect in responses to Map.
	Finalized bool
	// Events are recorded on the parent if the last response about the input did not have them.
	Events []Event
	// Results are remarks about the response. If one is SeverityFatal, nothing of the response is
	// written.
	Results []Result
	// Requirements select related objects for this input, as those of a SyncResponse.
	Requirements []RelatedRule
}

// TombstoneRequest is the observed state of the outputs of an input that is deleted or no longer
// selected. Its fields are those of MapRequest.
type TombstoneRequest struct {
	Controller Object
	Parent     Object
	MapKey     string
	Outputs    Groups
	Related    map[string]RelatedGroup
}

// TombstoneResponse selects the outputs to keep.
type TombstoneResponse struct {
	// Outputs are those of the request to keep, unchanged. Hookloop deletes all others.
	Outputs []Object
	// ResyncAfter is the time until Hookloop calls the hook about these outputs again, for example
	// until the next one expires. 0 means not before something changes.
	ResyncAfter time.Duration
	// Events, Results and Requirements are those of a MapResponse.
	Events       []Event
	Results      []Result
	Requirements []RelatedRule
}

// Keep returns a response that keeps these outputs of the request and deletes all others.
func Keep(outputs ...Object) *TombstoneResponse { return &TombstoneResponse{Outputs: outputs} }

// mapMessage is the common part of the requests of map hooks.
type mapMessage interface {
	message
	GetParent() *hookv1.ObservedObject
	GetMapKey() string
	GetOutputs() []*hookv1.ObjectGroup
}

// newMapRequest decodes a request. The input may be absent in requests to Finalize and Tombstone.
func newMapRequest(ctx context.Context, m mapMessage, input *hookv1.ObservedObject) (*MapRequest, error) {
	req := &MapRequest{MapKey: m.GetMapKey()}
	var err error
	req.Controller, err = decodeObject(m.GetController())
	if err != nil {
		return nil, fmt.Errorf("controller: %w", err)
	}
	req.Parent, err = decodeObject(m.GetParent())
	if err != nil {
		return nil, fmt.Errorf("parent: %w", err)
	}
	if input != nil {
		req.Input, err = decodeObject(input)
		if err != nil {
			return nil, fmt.Errorf("input: %w", err)
		}
	}
	req.Outputs, err = decodeGroups(ctx, m.GetOutputs(), req.Parent)
	if err != nil {
		return nil, fmt.Errorf("outputs %w", err)
	}
	req.Related, err = decodeAllRelated(m.GetRelated(), req.Parent)
	return req, err
}

// encodeKept encodes the outputs to keep: only their identities.
func encodeKept(outputs []Object) ([]*hookv1.DesiredObject, error) {
	kept := make([]*hookv1.DesiredObject, len(outputs))
	for i, o := range outputs {
		metadata := map[string]any{"name": o.Name}
		if o.Namespace != "" {
			metadata["namespace"] = o.Namespace
		}
		body, err := encodeDesired(map[string]any{"apiVersion": o.APIVersion, "kind": o.Kind, "metadata": metadata})
		if err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", "Outputs", i, err)
		}
		kept[i] = &hookv1.DesiredObject{Encoding: hookv1.Encoding_ENCODING_JSON, Body: body}
	}
	return kept, nil
}

// NewMapRequest returns a request for tests of a hook. The objects are structs, maps or JSON, as in
// Child.Object. A nil input is one that is gone. There is a group for the kind of each output, and
// for each kind of declare, as in NewSyncRequest. hooktest.CheckMap validates the response.
func NewMapRequest(parent, input any, outputs []any, declare ...string) (*MapRequest, error) {
	observed, err := newRequest(parent, "outputs", outputs, declare)
	if err != nil {
		return nil, err
	}
	req := &MapRequest{Parent: observed.Parent, Outputs: observed.Children, Related: observed.Related}
	if input == nil {
		return req, nil
	}
	req.Input, err = newObject(input)
	if err != nil {
		return nil, fmt.Errorf("input: %w", err)
	}
	req.MapKey = mapKey(req.Input)
	return req, nil
}

// NewTombstoneRequest returns a request for tests of a hook, as NewMapRequest does. MapKey is
// empty. hooktest.CheckTombstone validates the response.
func NewTombstoneRequest(parent any, outputs []any, declare ...string) (*TombstoneRequest, error) {
	req, err := NewMapRequest(parent, nil, outputs, declare...)
	if err != nil {
		return nil, err
	}
	return &TombstoneRequest{Parent: req.Parent, Outputs: req.Outputs, Related: req.Related}, nil
}

// mapKey returns the key of an input in tests: Kind.group/namespace/name.
func mapKey(input Object) string {
	key := input.Kind
	if group, _, found := strings.Cut(input.APIVersion, "/"); found {
		key += "." + group
	}
	if input.Namespace != "" {
		key += "/" + input.Namespace
	}
	return key + "/" + input.Name
}
