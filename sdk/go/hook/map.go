package hook

import (
	"context"
	"fmt"
	"strings"
	"time"

	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
)

// MapFunc receives one input and returns the outputs that should exist for it. [Mapper].Finalize
// has this type too; it is called while the parent is being deleted, or after it is no longer
// selected.
type MapFunc func(ctx context.Context, req *MapRequest) (*MapResponse, error)

// TombstoneFunc decides which outputs to keep after their input is gone. Use [Keep] to make the
// response.
type TombstoneFunc func(ctx context.Context, req *TombstoneRequest) (*TombstoneResponse, error)

// Mapper holds the functions for a MapController. As in [Composite], functions may be nil, and Map
// and Finalize may be the same function.
type Mapper struct {
	Map       MapFunc
	Tombstone TombstoneFunc
	Finalize  MapFunc
	Customize CustomizeFunc
}

// MapRequest describes one input of a parent as Hookloop observed it. The function may modify the
// request, but not the bytes in [Object].JSON.
type MapRequest struct {
	// Controller is the MapController that called the hook.
	Controller Object
	// Parent selects the input and owns the outputs. Use [Parent] to decode it.
	Parent Object
	// MapKey identifies the input within the parent. It is made of the input's group, kind,
	// namespace and name, so an input that is deleted and created again gets the same key.
	MapKey string
	// Input is the object to map. Use [Input] to decode it. It can be gone only in requests to
	// Finalize; it is the zero Object then.
	Input Object
	// Outputs are the outputs that exist for this input. There is a group, maybe an empty one, for
	// each kind that the controller declares. Use [OutputsOf] to decode a group.
	Outputs Groups
	// Related holds the related objects, as in [SyncRequest].
	Related map[string]RelatedGroup
	// Finalizing is true while the parent is being deleted, or after it is no longer selected.
	Finalizing bool
}

// MapResponse lists the outputs that should exist for one input. It has no status and no
// conditions, because Hookloop computes the parent's status from all inputs and outputs.
type MapResponse struct {
	// Outputs lists every desired output. Hookloop deletes observed outputs that are not in the
	// list.
	Outputs []Child
	// ResyncAfter makes Hookloop call the hook for this input after the given time, even if nothing
	// changes. 0 means that it waits for a change.
	ResyncAfter time.Duration
	// Finalized tells Hookloop that this input needs no more cleanup. The parent can be deleted
	// when all inputs are finalized. Responses to Map ignore it.
	Finalized bool
	// Events are recorded on the parent, except those that the last response for this input already
	// contained.
	Events []Event
	// Results tell users something about the response. If one is SeverityFatal, Hookloop writes
	// nothing.
	Results []Result
	// Requirements select related objects for this input, as in a [SyncResponse].
	Requirements []RelatedRule
}

// TombstoneRequest lists the outputs of an input that was deleted or is no longer selected. The
// fields mean the same as in [MapRequest].
type TombstoneRequest struct {
	Controller Object
	Parent     Object
	MapKey     string
	Outputs    Groups
	Related    map[string]RelatedGroup
}

// TombstoneResponse lists outputs that Hookloop should not delete.
type TombstoneResponse struct {
	// Outputs must come from the request, and stay as they are. Hookloop deletes all other outputs.
	Outputs []Object
	// ResyncAfter makes Hookloop call the hook for these outputs after the given time; set it to
	// the time when the next output expires. 0 means that Hookloop waits for a change.
	ResyncAfter time.Duration
	// Events, Results and Requirements work as in a [MapResponse].
	Events       []Event
	Results      []Result
	Requirements []RelatedRule
}

// Keep returns a response that keeps these outputs, which must come from the request. Hookloop
// deletes all others.
func Keep(outputs ...Object) *TombstoneResponse { return &TombstoneResponse{Outputs: outputs} }

// mapMessage is implemented by every request to a map hook.
type mapMessage interface {
	message
	GetParent() *hookv1.ObservedObject
	GetMapKey() string
	GetOutputs() []*hookv1.ObjectGroup
}

// newMapRequest decodes a request. Requests to Tombstone carry no input, and requests to Finalize
// may have none.
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

// encodeKept encodes the outputs to keep. Only kind, namespace and name are sent.
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

// NewMapRequest returns a request to test a hook with. Objects can be structs, maps or JSON, as in
// [Child].Object. Pass nil as input to test Finalize for an input that is gone. The request gets a
// group for the kind of each output and for each kind in declare, as in [NewSyncRequest]. Use
// hooktest.CheckMap to validate the response.
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

// NewTombstoneRequest returns a request to test a [TombstoneFunc] with. See [NewMapRequest] for the
// parameters. MapKey is empty. Use hooktest.CheckTombstone to validate the response.
func NewTombstoneRequest(parent any, outputs []any, declare ...string) (*TombstoneRequest, error) {
	req, err := NewMapRequest(parent, nil, outputs, declare...)
	if err != nil {
		return nil, err
	}
	return &TombstoneRequest{Parent: req.Parent, Outputs: req.Outputs, Related: req.Related}, nil
}

// mapKey returns the key that a test's request gets: Kind.group/namespace/name.
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
