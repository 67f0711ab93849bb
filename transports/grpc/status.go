package grpc

import (
	"context"
	"errors"
	"fmt"

	"github.com/hookloop/hookloop/engine/hook"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// maxMessage bounds what is quoted of a hook's message, in bytes.
const maxMessage = 256

// explain maps a call's error to the port's (the status codes of google.rpc.Code).
func (c *client) explain(ctx context.Context, err error) *hook.Error {
	failure := &hook.Error{Kind: hook.Failed, Hook: c.name}
	var bad *invalid
	if errors.As(err, &bad) {
		failure.Kind, failure.Err = hook.Invalid, bad.error
		return failure
	}
	s := status.Convert(err)
	message := s.Message()
	failure.Err = fmt.Errorf("%s: %q", s.Code(), message[:min(len(message), maxMessage)])
	switch s.Code() {
	case codes.Unavailable:
		failure.Kind = hook.Unreachable
	case codes.DeadlineExceeded:
		failure.Kind, failure.Err = hook.TimedOut, fmt.Errorf("no answer within %s", c.timeout)
	case codes.ResourceExhausted:
		failure.Kind = hook.Throttled
	case codes.InvalidArgument, codes.FailedPrecondition:
		failure.Kind = hook.Rejected
	case codes.Unimplemented:
		failure.Kind = hook.Rejected
		failure.Err = fmt.Errorf("the hook does not serve this method of hookloop.hook.v1: %w", failure.Err)
	}
	for _, detail := range s.Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			failure.Reason = detail.GetReason()
		case *errdetails.RetryInfo:
			failure.RetryAfter = max(0, detail.GetRetryDelay().AsDuration())
		}
	}
	if ctx.Err() != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) && failure.Kind == hook.Unreachable {
		failure.Err = fmt.Errorf("not reached within %s: %w", c.timeout, failure.Err)
	}
	return failure
}
