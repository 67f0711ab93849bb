package transporttest

import (
	"context"

	"github.com/hookloop/hookloop/engine/hook"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	mapv1 "github.com/hookloop/hookloop/gen/hookloop/map/v1"
	"google.golang.org/protobuf/types/known/durationpb"
)

// MapServer serves a Behavior as a service of the gRPC contract.
type MapServer struct {
	mapv1.UnimplementedMapHookServiceServer
	Behave Behavior
}

// mapRequest is the common part of the requests of the service.
type mapRequest interface {
	GetParent() *hookv1.ObservedObject
	GetMapKey() string
	GetOutputs() []*hookv1.ObjectGroup
	GetRelated() []*hookv1.RelatedGroup
}

func (s MapServer) answer(
	ctx context.Context, op hook.Op, r mapRequest, input *hookv1.ObservedObject,
) (*hook.Answer, error) {
	got := received(ctx, hook.Mapping, op, r.GetParent(), r.GetOutputs(), r.GetRelated())
	got.MapKey, got.Input = r.GetMapKey(), input.GetBody()
	return outcome(ctx, s.Behave(ctx, got))
}

func details(a *hook.Answer) *hookv1.ResponseDetails {
	return &hookv1.ResponseDetails{ResyncAfter: durationpb.New(a.ResyncAfter)}
}

// Map returns the behavior's answer.
func (s MapServer) Map(ctx context.Context, r *mapv1.MapRequest) (*mapv1.MapResponse, error) {
	a, err := s.answer(ctx, hook.Map, r, r.GetInput())
	if err != nil {
		return nil, err
	}
	return &mapv1.MapResponse{Outputs: desired(a.Children), Details: details(a)}, nil
}

// Tombstone returns the behavior's answer.
func (s MapServer) Tombstone(ctx context.Context, r *mapv1.TombstoneRequest) (*mapv1.TombstoneResponse, error) {
	a, err := s.answer(ctx, hook.Tombstone, r, nil)
	if err != nil {
		return nil, err
	}
	return &mapv1.TombstoneResponse{Outputs: desired(a.Children), Details: details(a)}, nil
}

// Finalize returns the behavior's answer.
func (s MapServer) Finalize(ctx context.Context, r *mapv1.FinalizeRequest) (*mapv1.FinalizeResponse, error) {
	a, err := s.answer(ctx, hook.Finalize, r, r.GetInput())
	if err != nil {
		return nil, err
	}
	return &mapv1.FinalizeResponse{Outputs: desired(a.Children), Details: details(a), Finalized: a.Finalized}, nil
}

// Customize returns the behavior's answer.
func (s MapServer) Customize(ctx context.Context, r *mapv1.CustomizeRequest) (*mapv1.CustomizeResponse, error) {
	a, err := outcome(ctx, s.Behave(ctx, received(ctx, hook.Mapping, hook.Customize, r.GetParent(), nil, nil)))
	if err != nil {
		return nil, err
	}
	return &mapv1.CustomizeResponse{RelatedResources: rules(a.Related)}, nil
}
