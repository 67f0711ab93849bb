package hook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
)

// SyncRequest describes one parent as Hookloop observed it. The function may modify the request,
// but not the bytes in [Object].JSON.
type SyncRequest struct {
	// Controller is the CompositeController or DecoratorController that called the hook.
	Controller Object
	// Parent is the parent, or the object to decorate. Use [Parent] to decode it.
	Parent Object
	// Children holds the children that exist for the parent, or the attachments to the object.
	// There is a group, maybe an empty one, for each kind that the controller declares. Use
	// [Children] or [ChildrenOf] to decode a group.
	Children Groups
	// Related holds the objects that Customize selected, or that the last response selected in
	// Requirements. The key is the name of the rule or, if the rule has no name, the resource:
	// "configmaps.v1" or "deployments.apps/v1". A requirement gets a group only after Hookloop has
	// read its objects. Use [Related] or [RequireRelated] to decode a group.
	Related map[string]RelatedGroup
	// Finalizing is true while the parent is being deleted, or after it is no longer selected.
	Finalizing bool
}

// CustomizeRequest asks which related objects the hook needs for a parent.
type CustomizeRequest struct {
	Controller Object
	Parent     Object
}

// Object is an observed object. JSON holds the whole object as the API server returned it. Do not
// modify these bytes, because other requests share them; appending is safe, because the slice has
// no spare capacity. Use [Decode] to decode an Object.
type Object struct {
	APIVersion, Kind, Namespace, Name, UID, ResourceVersion string
	JSON                                                    []byte
}

// Groups holds observed objects by kind. The key is "Kind.version" for the core API group, such as
// "Pod.v1", and "Kind.group/version" for other groups, such as "Deployment.apps/v1".
type Groups map[string]Group

// Group holds observed objects of one kind by name. For objects outside the parent's namespace the
// key is "namespace/name".
type Group map[string]Object

// RelatedGroup holds related objects. If Err is not nil, Hookloop could not read the objects and
// Objects is nil; do not take this for an empty group.
type RelatedGroup struct {
	Kind    string
	Objects Group
	Err     error
}

// ErrNotServed is wrapped in [RelatedGroup].Err if the API server does not serve the resource.
var ErrNotServed = errors.New("the API server does not serve the resource")

// key returns the object's key in a group of this parent.
func (o Object) key(parent Object) string {
	if o.Namespace == "" || o.Namespace == parent.Namespace {
		return o.Name
	}
	return o.Namespace + "/" + o.Name
}

// message is implemented by every request except those to Customize.
type message interface {
	GetController() *hookv1.ObservedObject
	GetRelated() []*hookv1.RelatedGroup
}

func newSyncRequest(
	ctx context.Context,
	m message,
	parent *hookv1.ObservedObject,
	children []*hookv1.ObjectGroup,
	finalizing bool,
) (*SyncRequest, error) {
	req := &SyncRequest{Finalizing: finalizing}
	var err error
	req.Controller, err = decodeObject(m.GetController())
	if err != nil {
		return nil, fmt.Errorf("controller: %w", err)
	}
	req.Parent, err = decodeObject(parent)
	if err != nil {
		return nil, fmt.Errorf("parent: %w", err)
	}
	req.Children, err = decodeGroups(ctx, children, req.Parent)
	if err != nil {
		return nil, fmt.Errorf("children %w", err)
	}
	req.Related, err = decodeAllRelated(m.GetRelated(), req.Parent)
	return req, err
}

// decodeGroups decodes groups of observed objects. An error names the kind.
func decodeGroups(ctx context.Context, groups []*hookv1.ObjectGroup, parent Object) (_ Groups, err error) {
	out := make(Groups, len(groups))
	cache := callCacheOf(ctx)
	for i, g := range groups {
		key := kindKey(g.GetApiVersion(), g.GetKind())
		out[key], err = cache.decode(i, g.GetObjects(), parent)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
	}
	return out, nil
}

// decodeAllRelated decodes all groups of related objects. An error names the group.
func decodeAllRelated(groups []*hookv1.RelatedGroup, parent Object) (_ map[string]RelatedGroup, err error) {
	out := make(map[string]RelatedGroup, len(groups))
	for _, g := range groups {
		key := cmp.Or(g.GetName(), kindKey(g.GetApiVersion(), g.GetResource()))
		out[key], err = decodeRelated(g, parent)
		if err != nil {
			return nil, fmt.Errorf("related %s: %w", key, err)
		}
	}
	return out, nil
}

func decodeRelated(g *hookv1.RelatedGroup, parent Object) (RelatedGroup, error) {
	group := RelatedGroup{Kind: g.GetKind()}
	switch result := g.GetResult().(type) {
	case *hookv1.RelatedGroup_Items:
		objects, err := decodeGroup(result.Items.GetObjects(), parent)
		group.Objects = objects
		return group, err
	case *hookv1.RelatedGroup_NotFound:
		group.Err = fmt.Errorf("%w: %s", ErrNotServed, result.NotFound.GetMessage())
	case *hookv1.RelatedGroup_Error:
		group.Err = errors.New(result.Error.GetMessage())
	default:
		group.Err = fmt.Errorf("got a result of type %T, expected items, not_found or error", result)
	}
	return group, nil
}

func decodeGroup(objects []*hookv1.ObservedObject, parent Object) (Group, error) {
	group := make(Group, len(objects))
	for _, m := range objects {
		o, err := decodeObject(m)
		if err != nil {
			return nil, err
		}
		group[o.key(parent)] = o
	}
	return group, nil
}

func decodeObject(m *hookv1.ObservedObject) (Object, error) {
	switch e := m.GetEncoding(); {
	case m == nil:
		return Object{}, errors.New("is missing; expected an object")
	case e != hookv1.Encoding_ENCODING_UNSPECIFIED && e != hookv1.Encoding_ENCODING_JSON:
		return Object{}, fmt.Errorf("%s %q: encoding is %s, expected ENCODING_JSON", m.GetKind(), m.GetName(), e)
	}
	return Object{
		APIVersion: m.GetApiVersion(), Kind: m.GetKind(), Namespace: m.GetNamespace(), Name: m.GetName(),
		UID: m.GetUid(), ResourceVersion: m.GetResourceVersion(), JSON: slices.Clip(m.GetBody()),
	}, nil
}

// kindKey returns a kind's key in Groups.
func kindKey(apiVersion, kind string) string { return kind + "." + apiVersion }
