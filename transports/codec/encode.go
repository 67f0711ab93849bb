package codec

import (
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"google.golang.org/genproto/googleapis/rpc/code"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// writer encodes the objects of a request, or omits them.
type writer interface {
	object(*object.Object) *hookv1.ObservedObject
	objects([]*object.Object) []*hookv1.ObservedObject
}

// whole encodes every object.
type whole struct{}

func (whole) object(o *object.Object) *hookv1.ObservedObject { return Object(o) }

func (whole) objects(list []*object.Object) []*hookv1.ObservedObject {
	out := make([]*hookv1.ObservedObject, len(list))
	for i, o := range list {
		out[i] = Object(o)
	}
	return out
}

// envelope encodes no object.
type envelope struct{}

func (envelope) object(*object.Object) *hookv1.ObservedObject      { return nil }
func (envelope) objects([]*object.Object) []*hookv1.ObservedObject { return nil }

// Object encodes one object. The message shares the object's bytes and must not be changed.
func Object(o *object.Object) *hookv1.ObservedObject {
	return &hookv1.ObservedObject{
		ApiVersion: o.GVK().GroupVersion().String(), Kind: o.GVK().Kind, Namespace: o.Namespace(), Name: o.Name(),
		Uid: string(o.UID()), ResourceVersion: o.ResourceVersion(), Encoding: hookv1.Encoding_ENCODING_JSON, Body: o.Raw(),
	}
}

func groups(list []hook.Group, w writer) []*hookv1.ObjectGroup {
	out := make([]*hookv1.ObjectGroup, len(list))
	for i, g := range list {
		gvk := g.Resource.GVK
		out[i] = &hookv1.ObjectGroup{ApiVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Objects: w.objects(g.Objects)}
	}
	return out
}

// readError returns the status of a failed read. The API server's error decides the code.
func readError(err error) *statuspb.Status {
	c := code.Code_UNAVAILABLE
	if apierrors.IsForbidden(err) {
		c = code.Code_PERMISSION_DENIED
	}
	return &statuspb.Status{Code: int32(c), Message: err.Error()}
}

func related(list []hook.RelatedGroup, w writer) []*hookv1.RelatedGroup {
	out := make([]*hookv1.RelatedGroup, len(list))
	for i, g := range list {
		gvk := g.Resource.GVK
		out[i] = &hookv1.RelatedGroup{
			ApiVersion: gvk.GroupVersion().String(),
			Kind:       gvk.Kind,
			Resource:   g.Resource.Plural,
			Name:       g.Name,
		}
		switch {
		case g.NotFound:
			out[i].Result = &hookv1.RelatedGroup_NotFound{
				NotFound: &hookv1.RelatedNotFound{Message: "the API server does not serve " + g.Resource.String()},
			}
		case g.Err != nil:
			out[i].Result = &hookv1.RelatedGroup_Error{Error: readError(g.Err)}
		default:
			out[i].Result = &hookv1.RelatedGroup_Items{Items: &hookv1.RelatedItems{Objects: w.objects(g.Objects)}}
		}
	}
	return out
}
