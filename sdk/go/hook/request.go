package hook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
)

// SyncRequest is the observed state of one parent. The function owns it and may change it, except
// for the bytes of an Object's JSON.
type SyncRequest struct {
	// Controller is the CompositeController or DecoratorController that calls the hook.
	Controller Object
	// Parent is the parent, or the object to decorate. The function Parent decodes it.
	Parent Object
	// Children are the observed children of the parent, or the attachments of the object: one group
	// for each kind that the controller declares, even if it is empty. The functions Children and
	// ChildrenOf decode one.
	Children Groups
	// Related are the related objects that Customize or the requirements of the last response
	// selected. The key is the name of the rule or, for a rule without a name, the resource:
	// "configmaps.v1", "deployments.apps/v1". A requirement has no group until Hookloop has read
	// its objects.
	Related map[string]RelatedGroup
	// Finalizing reports whether the parent is finalized: it is deleted, or no longer selected.
	Finalizing bool
}

// CustomizeRequest is the request for the rules that select the related objects of one parent.
type CustomizeRequest struct {
	Controller Object
	Parent     Object
}

// Object is one observed object. Its JSON is the whole object; the bytes must not be changed,
// because later requests, and concurrent ones about other parents, share them. The slice has no
// spare capacity, so that append copies it.
type Object struct {
	APIVersion, Kind, Namespace, Name, UID, ResourceVersion string
	JSON                                                    []byte
}

// Groups are observed objects by kind: "Kind.version" for the core API group, "Kind.group/version"
// for all others.
type Groups map[string]Group

// Group is the observed objects of one kind, by name. The key of an object outside the parent's
// namespace is "namespace/name".
type Group map[string]Object

// RelatedGroup is a group of related objects. If Err is set, the objects are unknown and Objects is
// nil.
type RelatedGroup struct {
	Kind    string
	Objects Group
	Err     error
}

// ErrNotServed is in RelatedGroup.Err if the API server does not serve the resource.
var ErrNotServed = errors.New("the API server does not serve the resource")

// key returns the key of an object in the groups of a parent.
func (o Object) key(parent Object) string {
	if o.Namespace == "" || o.Namespace == parent.Namespace {
		return o.Name
	}
	return o.Namespace + "/" + o.Name
}

// message is the common part of all requests except those to Customize.
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

// decodeGroups decodes groups of observed objects. The error names the kind.
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

// decodeAllRelated decodes all groups of related objects. The error names the group.
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

// kindKey returns the key of a kind: Kind.group/version, or Kind.version for the core API group.
func kindKey(apiVersion, kind string) string { return kind + "." + apiVersion }
