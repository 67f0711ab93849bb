package hook

import (
	"context"

	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	mapv1 "github.com/hookloop/hookloop/gen/hookloop/map/v1"
	"google.golang.org/grpc"
)

// Register adds the hook to a gRPC server that you run yourself, as [Composite.Register] does.
func (m Mapper) Register(r grpc.ServiceRegistrar) {
	s := mapper{hooks: only("map", m)}
	r.RegisterService(served(mapv1.MapHookService_ServiceDesc, s.methods(m)), s)
}

// methods returns the methods for which the hook has a function.
func (s mapper) methods(m Mapper) methods {
	all := methods{}
	if m.Map != nil {
		all[mapv1.MapHookService_Map_FullMethodName] = answering(s.Map)
	}
	if m.Tombstone != nil {
		all[mapv1.MapHookService_Tombstone_FullMethodName] = answering(s.Tombstone)
	}
	if m.Finalize != nil {
		all[mapv1.MapHookService_Finalize_FullMethodName] = answering(s.Finalize)
	}
	if m.Customize != nil {
		all[mapv1.MapHookService_Customize_FullMethodName] = answering(s.Customize)
	}
	return all
}

// mapper implements the service of map hooks.
type mapper struct {
	mapv1.UnimplementedMapHookServiceServer
	hooks byName[Mapper]
}

func (s mapper) Map(ctx context.Context, m *mapv1.MapRequest) (*mapv1.MapResponse, error) {
	hook, err := s.hooks.find(m.GetMeta())
	if err != nil {
		return nil, statusOf(err)
	}
	if hook.Map == nil {
		return nil, notServed("Map")
	}
	req, err := newMapRequest(ctx, m, m.GetInput())
	if err != nil {
		return nil, statusOf(err)
	}
	_, a, err := mapInput(ctx, hook.Map, req, m.GetMeta())
	if err != nil {
		return nil, statusOf(err)
	}
	return &mapv1.MapResponse{Outputs: a.children, Details: a.details, Meta: a.meta}, nil
}

func (s mapper) Tombstone(ctx context.Context, m *mapv1.TombstoneRequest) (*mapv1.TombstoneResponse, error) {
	hook, err := s.hooks.find(m.GetMeta())
	if err != nil {
		return nil, statusOf(err)
	}
	if hook.Tombstone == nil {
		return nil, notServed("Tombstone")
	}
	req, err := newMapRequest(ctx, m, nil)
	if err != nil {
		return nil, statusOf(err)
	}
	a, err := keep(ctx, hook.Tombstone, req, m.GetMeta())
	if err != nil {
		return nil, statusOf(err)
	}
	return &mapv1.TombstoneResponse{Outputs: a.children, Details: a.details, Meta: a.meta}, nil
}

func (s mapper) Finalize(ctx context.Context, m *mapv1.FinalizeRequest) (*mapv1.FinalizeResponse, error) {
	hook, err := s.hooks.find(m.GetMeta())
	if err != nil {
		return nil, statusOf(err)
	}
	if hook.Finalize == nil {
		return nil, notServed("Finalize")
	}
	req, err := newMapRequest(ctx, m, m.GetInput())
	if err != nil {
		return nil, statusOf(err)
	}
	req.Finalizing = true
	resp, a, err := mapInput(ctx, hook.Finalize, req, m.GetMeta())
	if err != nil {
		return nil, statusOf(err)
	}
	return &mapv1.FinalizeResponse{Outputs: a.children, Details: a.details, Meta: a.meta, Finalized: resp.Finalized}, nil
}

func (s mapper) Customize(ctx context.Context, m *mapv1.CustomizeRequest) (*mapv1.CustomizeResponse, error) {
	hook, err := s.hooks.find(m.GetMeta())
	if err != nil {
		return nil, statusOf(err)
	}
	rules, meta, err := customize(ctx, hook.Customize, m.GetMeta(), m.GetController(), m.GetParent())
	if err != nil {
		return nil, statusOf(err)
	}
	return &mapv1.CustomizeResponse{RelatedResources: rules, Meta: meta}, nil
}

// mapInput calls a map hook's function and encodes its response.
func mapInput(
	ctx context.Context, f MapFunc, req *MapRequest, meta *hookv1.RequestMeta,
) (*MapResponse, answer, error) {
	resp, err := f(ctx, req)
	if err != nil {
		return nil, answer{}, err
	}
	if resp == nil {
		return nil, answer{}, errNoResponse
	}
	details, err := encodeDetails(resp.ResyncAfter, nil, resp.Events, resp.Results, resp.Requirements)
	if err != nil {
		return nil, answer{}, err
	}
	a, err := encodeResponse(ctx, meta, nil, "Outputs", resp.Outputs, details)
	return resp, a, err
}

// keep calls a tombstone function and encodes its response.
func keep(
	ctx context.Context, f TombstoneFunc, req *MapRequest, meta *hookv1.RequestMeta,
) (a answer, err error) {
	resp, err := f(ctx, &TombstoneRequest{
		Controller: req.Controller, Parent: req.Parent, MapKey: req.MapKey, Outputs: req.Outputs, Related: req.Related,
	})
	if err != nil {
		return answer{}, err
	}
	if resp == nil {
		return answer{}, errNoResponse
	}
	a.details, err = encodeDetails(resp.ResyncAfter, nil, resp.Events, resp.Results, resp.Requirements)
	if err != nil {
		return answer{}, err
	}
	a.children, err = encodeKept(resp.Outputs)
	if err != nil {
		return answer{}, err
	}
	a.meta, err = responseMeta(meta, a.children, a.details)
	return a, err
}
