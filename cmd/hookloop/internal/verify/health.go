package verify

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/proto"
)

// checkHealth asks the health service of a gRPC hook.
func (e *examiner) checkHealth(ctx context.Context) {
	t := e.targets[e.subject.first()]
	if t.grpc == nil {
		return
	}
	r := &round{examiner: e, ctx: ctx, over: overGRPC}
	name := "grpc.health.v1.Health/Check"
	q := r.question(e.subject.first(), e.subject.parent, nil)
	request, err := proto.Marshal(&healthv1.HealthCheckRequest{})
	if err != nil {
		return
	}
	got, data := t.grpc.call(ctx, "/"+name, request, t.timeout)
	e.answered = data != nil || got.failure != nil && got.failure.code != ""
	switch {
	case got.failure != nil && got.failure.missing:
		r.found(ruleNoHealth, name, q, got.failure.String())
	case got.failure != nil && got.failure.code == codes.NotFound.String():
		r.found(ruleHealth, name, q, got.failure.String())
	case got.failure != nil && got.failure.code != "":
		r.found(ruleHealth, name, q, got.failure.String())
	case data != nil:
		state := &healthv1.HealthCheckResponse{}
		if err := proto.Unmarshal(data, state); err != nil {
			r.found(ruleHealth, name, q, fmt.Sprintf("no HealthCheckResponse: %v", err))
		} else if state.GetStatus() != healthv1.HealthCheckResponse_SERVING {
			r.found(ruleHealth, name, q, state.GetStatus().String())
		}
	}
}
