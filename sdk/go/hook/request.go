package hook

import (
	"cmp"
	"errors"
	"fmt"

	hookv1 "github.com/hookloop/hookloop/internal/protocol/gen/hookloop/hook/v1"
)

// SyncRequest is what is observed about one parent. It is the hook's own; changing it, but for the
// bytes of an Object's JSON, changes nothing elsewhere.
type SyncRequest struct {
	// Controller is the CompositeController or DecoratorController that asks.
	Controller Object
	// Parent is the parent, or the object to decorate. Package function Parent decodes it.
	Parent Object
	// Children are the parent's children (a decorator's attachments): one group for each kind that
	// the controller declares, empty groups included. Package function Children decodes one.
	Children Groups
	// Related are the objects that the answer to Customize asked for, or that the last response
	// required: by the rules' name or, for rules without a name, by resource: "configmaps.v1",
	// "deployments.apps/v1". What is required and not shown yet has no group.
	Related map[string]RelatedGroup
	// Finalizing says that the parent is being deleted, or no longer selected.
	Finalizing bool
}

// CustomizeRequest asks which objects are related to a parent.
type CustomizeRequest struct {
	Controller Object
	Parent     Object
}

// Object is one observed object: its identity, and the whole of it as JSON, whose bytes must not be
// changed: later requests have the same.
type Object struct {
	APIVersion, Kind, Namespace, Name, UID, ResourceVersion string
	JSON                                                    []byte
}

// Groups are observed objects by kind: "Kind.version" for the core group, "Kind.group/version" for
// all others.
type Groups map[string]Group

// Group is the observed objects of one kind, by name. An object in a namespace other than the
// parent's is found under "namespace/name".
type Group map[string]Object

// RelatedGroup is a group that may be unknown: with an Err nothing is known about it, and its
// Objects are nil.
type RelatedGroup struct {
	Kind    string
	Objects Group
	Err     error
}

// ErrNotServed is found in RelatedGroup.Err where the API server does not serve the resource.
var ErrNotServed = errors.New("the API server does not serve the resource")

// key is an object's name as seen from its parent.
func (o Object) key(parent Object) string {
	if o.Namespace == "" || o.Namespace == parent.Namespace {
		return o.Name
	}
	return o.Namespace + "/" + o.Name
}

// message is what Sync and Finalize requests of both services have in common, apart from the name
// of the parent.
type message interface {
	GetController() *hookv1.Object
	GetRelated() []*hookv1.RelatedGroup
}

func newSyncRequest(
	m message,
	parent *hookv1.Object,
	children []*hookv1.ObjectGroup,
	finalizing bool,
) (*SyncRequest, error) {
	req := &SyncRequest{Children: Groups{}, Related: map[string]RelatedGroup{}, Finalizing: finalizing}
	var err error
	if req.Controller, err = decodeObject(m.GetController()); err != nil {
		return nil, fmt.Errorf("controller: %w", err)
	}
	if req.Parent, err = decodeObject(parent); err != nil {
		return nil, fmt.Errorf("parent: %w", err)
	}
	for _, g := range children {
		key := kindKey(g.GetApiVersion(), g.GetKind())
		if req.Children[key], err = decodeGroup(g.GetObjects(), req.Parent); err != nil {
			return nil, fmt.Errorf("children %s: %w", key, err)
		}
	}
	for _, g := range m.GetRelated() {
		key := cmp.Or(g.GetName(), kindKey(g.GetApiVersion(), g.GetResource()))
		if req.Related[key], err = decodeRelated(g, req.Parent); err != nil {
			return nil, fmt.Errorf("related %s: %w", key, err)
		}
	}
	return req, nil
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

func decodeGroup(objects []*hookv1.Object, parent Object) (Group, error) {
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

func decodeObject(m *hookv1.Object) (Object, error) {
	switch e := m.GetEncoding(); {
	case m == nil:
		return Object{}, errors.New("is missing; expected an object")
	case e != hookv1.Encoding_ENCODING_UNSPECIFIED && e != hookv1.Encoding_ENCODING_JSON:
		return Object{}, fmt.Errorf("%s %q: encoding is %s, expected ENCODING_JSON", m.GetKind(), m.GetName(), e)
	}
	return Object{
		APIVersion: m.GetApiVersion(), Kind: m.GetKind(), Namespace: m.GetNamespace(), Name: m.GetName(),
		UID: m.GetUid(), ResourceVersion: m.GetResourceVersion(), JSON: m.GetBody(),
	}, nil
}

// kindKey is Kind.group/version, or Kind.version for the core group.
func kindKey(apiVersion, kind string) string { return kind + "." + apiVersion }
