package hook

import (
	"context"

	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	decoratorv1 "github.com/hookloop/hookloop/gen/hookloop/decorator/v1"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// composite implements the service of composite hooks.
type composite struct {
	compositev1.UnimplementedCompositeHookServiceServer
	hooks byName[Composite]
}

func (c composite) Sync(
	ctx context.Context,
	m *compositev1.SyncRequest,
) (*compositev1.SyncResponse, error) {
	hook, err := c.hooks.find(m.GetMeta())
	if err != nil {
		return nil, statusOf(err)
	}
	if hook.Sync == nil {
		return nil, notServed("Sync")
	}
	req, err := newSyncRequest(ctx, m, m.GetParent(), m.GetChildren(), false)
	if err != nil {
		return nil, statusOf(err)
	}
	_, a, err := syncChildren(ctx, hook.Sync, req, m.GetMeta())
	if err != nil {
		return nil, statusOf(err)
	}
	return &compositev1.SyncResponse{
		Status: a.status, Children: a.children, Details: a.details, Meta: a.meta,
	}, nil
}

func (c composite) Finalize(
	ctx context.Context,
	m *compositev1.FinalizeRequest,
) (*compositev1.FinalizeResponse, error) {
	hook, err := c.hooks.find(m.GetMeta())
	if err != nil {
		return nil, statusOf(err)
	}
	if hook.Finalize == nil {
		return nil, notServed("Finalize")
	}
	req, err := newSyncRequest(ctx, m, m.GetParent(), m.GetChildren(), true)
	if err != nil {
		return nil, statusOf(err)
	}
	resp, a, err := syncChildren(ctx, hook.Finalize, req, m.GetMeta())
	if err != nil {
		return nil, statusOf(err)
	}
	return &compositev1.FinalizeResponse{
		Status: a.status, Children: a.children, Details: a.details, Meta: a.meta, Finalized: resp.Finalized,
	}, nil
}

func (c composite) Customize(
	ctx context.Context,
	m *compositev1.CustomizeRequest,
) (*compositev1.CustomizeResponse, error) {
	hook, err := c.hooks.find(m.GetMeta())
	if err != nil {
		return nil, statusOf(err)
	}
	rules, meta, err := customize(ctx, hook.Customize, m.GetMeta(), m.GetController(), m.GetParent())
	if err != nil {
		return nil, statusOf(err)
	}
	return &compositev1.CustomizeResponse{RelatedResources: rules, Meta: meta}, nil
}

// decorator implements the service of decorator hooks.
type decorator struct {
	decoratorv1.UnimplementedDecoratorHookServiceServer
	hooks byName[Decorator]
}

func (d decorator) Sync(
	ctx context.Context,
	m *decoratorv1.SyncRequest,
) (*decoratorv1.SyncResponse, error) {
	hook, err := d.hooks.find(m.GetMeta())
	if err != nil {
		return nil, statusOf(err)
	}
	if hook.Sync == nil {
		return nil, notServed("Sync")
	}
	req, err := newSyncRequest(ctx, m, m.GetObject(), m.GetAttachments(), false)
	if err != nil {
		return nil, statusOf(err)
	}
	resp, a, err := decorate(ctx, hook.Sync, req, m.GetMeta())
	if err != nil {
		return nil, statusOf(err)
	}
	out := &decoratorv1.SyncResponse{
		Status: a.status, Attachments: a.children, Details: a.details, Meta: a.meta,
	}
	out.Labels, out.Annotations = encodePatch(resp.Labels), encodePatch(resp.Annotations)
	return out, nil
}

func (d decorator) Finalize(
	ctx context.Context,
	m *decoratorv1.FinalizeRequest,
) (*decoratorv1.FinalizeResponse, error) {
	hook, err := d.hooks.find(m.GetMeta())
	if err != nil {
		return nil, statusOf(err)
	}
	if hook.Finalize == nil {
		return nil, notServed("Finalize")
	}
	req, err := newSyncRequest(ctx, m, m.GetObject(), m.GetAttachments(), true)
	if err != nil {
		return nil, statusOf(err)
	}
	resp, a, err := decorate(ctx, hook.Finalize, req, m.GetMeta())
	if err != nil {
		return nil, statusOf(err)
	}
	out := &decoratorv1.FinalizeResponse{
		Status: a.status, Attachments: a.children, Details: a.details, Meta: a.meta, Finalized: resp.Finalized,
	}
	out.Labels, out.Annotations = encodePatch(resp.Labels), encodePatch(resp.Annotations)
	return out, nil
}

func (d decorator) Customize(
	ctx context.Context,
	m *decoratorv1.CustomizeRequest,
) (*decoratorv1.CustomizeResponse, error) {
	hook, err := d.hooks.find(m.GetMeta())
	if err != nil {
		return nil, statusOf(err)
	}
	rules, meta, err := customize(ctx, hook.Customize, m.GetMeta(), m.GetController(), m.GetObject())
	if err != nil {
		return nil, statusOf(err)
	}
	return &decoratorv1.CustomizeResponse{RelatedResources: rules, Meta: meta}, nil
}

// syncChildren calls a composite's function and encodes the response.
func syncChildren(
	ctx context.Context, f SyncFunc, req *SyncRequest, meta *hookv1.RequestMeta,
) (*SyncResponse, answer, error) {
	resp, err := f(ctx, req)
	if err != nil {
		return nil, answer{}, err
	}
	if resp == nil {
		return nil, answer{}, errNoResponse
	}
	details, err := encodeDetails(resp.ResyncAfter, resp.Conditions, resp.Events, resp.Results, resp.Requirements)
	if err != nil {
		return nil, answer{}, err
	}
	a, err := encodeResponse(ctx, meta, resp.Status, "Children", resp.Children, details)
	return resp, a, err
}

// decorate calls a decorator's function and encodes the response.
func decorate(
	ctx context.Context, f DecorateFunc, req *SyncRequest, meta *hookv1.RequestMeta,
) (*DecorateResponse, answer, error) {
	resp, err := f(ctx, req)
	if err != nil {
		return nil, answer{}, err
	}
	if resp == nil {
		return nil, answer{}, errNoResponse
	}
	details, err := encodeDetails(resp.ResyncAfter, resp.Conditions, resp.Events, resp.Results, resp.Requirements)
	if err != nil {
		return nil, answer{}, err
	}
	a, err := encodeResponse(ctx, meta, resp.Status, "Attachments", resp.Attachments, details)
	return resp, a, err
}

func customize(
	ctx context.Context,
	f CustomizeFunc,
	request *hookv1.RequestMeta,
	controller, parent *hookv1.ObservedObject,
) ([]*hookv1.RelatedResourceRule, *hookv1.ResponseMeta, error) {
	if f == nil {
		return nil, nil, notServed("Customize")
	}
	req := &CustomizeRequest{}
	var err error
	req.Controller, err = decodeObject(controller)
	if err != nil {
		return nil, nil, err
	}
	req.Parent, err = decodeObject(parent)
	if err != nil {
		return nil, nil, err
	}
	resp, err := f(ctx, req)
	if err != nil {
		return nil, nil, err
	}
	if resp == nil {
		return nil, nil, errNoResponse
	}
	rules, err := encodeRules("Related", resp.Related)
	if err != nil {
		return nil, nil, err
	}
	meta, err := responseMeta(request, nil, nil, rules...)
	return rules, meta, err
}

var errNoResponse = hookError{
	status.Error(codes.Internal, "the hook's function returned neither a response nor an error, expected one of them"),
}

func notServed(method string) error {
	return hookError{status.Errorf(codes.Unimplemented, "this hook has no %s function", method)}
}
