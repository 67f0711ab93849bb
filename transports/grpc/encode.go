package grpc

import (
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
)

func compositeSync(q *hook.Question) *hookv1.CompositeHookServiceSyncRequest {
	return &hookv1.CompositeHookServiceSyncRequest{
		Controller: encode(q.Controller), Parent: encode(q.Parent), Children: groups(q.Children), Related: related(q.Related),
	}
}

func compositeFinalize(q *hook.Question) *hookv1.CompositeHookServiceFinalizeRequest {
	return &hookv1.CompositeHookServiceFinalizeRequest{
		Controller: encode(q.Controller), Parent: encode(q.Parent), Children: groups(q.Children), Related: related(q.Related),
	}
}

func compositeCustomize(q *hook.Question) *hookv1.CompositeHookServiceCustomizeRequest {
	return &hookv1.CompositeHookServiceCustomizeRequest{Controller: encode(q.Controller), Parent: encode(q.Parent)}
}

func decoratorSync(q *hook.Question) *hookv1.DecoratorHookServiceSyncRequest {
	return &hookv1.DecoratorHookServiceSyncRequest{
		Controller: encode(q.Controller), Object: encode(q.Parent), Attachments: groups(q.Children), Related: related(q.Related),
	}
}

func decoratorFinalize(q *hook.Question) *hookv1.DecoratorHookServiceFinalizeRequest {
	return &hookv1.DecoratorHookServiceFinalizeRequest{
		Controller: encode(q.Controller), Object: encode(q.Parent), Attachments: groups(q.Children), Related: related(q.Related),
	}
}

func decoratorCustomize(q *hook.Question) *hookv1.DecoratorHookServiceCustomizeRequest {
	return &hookv1.DecoratorHookServiceCustomizeRequest{Controller: encode(q.Controller), Object: encode(q.Parent)}
}

// encode shares the object's bytes: a message is only read.
func encode(o *object.Object) *hookv1.Object {
	return &hookv1.Object{
		ApiVersion: o.GVK().GroupVersion().String(), Kind: o.GVK().Kind, Namespace: o.Namespace(), Name: o.Name(),
		Uid: string(o.UID()), ResourceVersion: o.ResourceVersion(), Encoding: hookv1.Encoding_ENCODING_JSON, Body: o.Raw(),
	}
}

func encodeAll(objects []*object.Object) []*hookv1.Object {
	out := make([]*hookv1.Object, len(objects))
	for i, o := range objects {
		out[i] = encode(o)
	}
	return out
}

func groups(list []hook.Group) []*hookv1.ObjectGroup {
	out := make([]*hookv1.ObjectGroup, len(list))
	for i, g := range list {
		gvk := g.Resource.GVK
		out[i] = &hookv1.ObjectGroup{ApiVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Objects: encodeAll(g.Objects)}
	}
	return out
}

func related(list []hook.RelatedGroup) []*hookv1.RelatedGroup {
	out := make([]*hookv1.RelatedGroup, len(list))
	for i, g := range list {
		gvk := g.Resource.GVK
		out[i] = &hookv1.RelatedGroup{ApiVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Resource: g.Resource.Plural}
		switch {
		case g.NotFound:
			out[i].Result = &hookv1.RelatedGroup_NotFound{NotFound: &hookv1.RelatedNotFound{Message: "the API server does not serve " + g.Resource.String()}}
		case g.Err != nil:
			out[i].Result = &hookv1.RelatedGroup_Error{Error: &hookv1.RelatedError{Reason: "ReadFailed", Message: g.Err.Error()}}
		default:
			out[i].Result = &hookv1.RelatedGroup_Items{Items: &hookv1.RelatedItems{Objects: encodeAll(g.Objects)}}
		}
	}
	return out
}
