package hook

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"
)

// domain says whose reasons those in google.rpc.ErrorInfo are.
const domain = "hookloop.hook.v1"

// Reject refuses a parent as it is. The reason (one word in CamelCase) and the message are shown on
// the parent; it is asked about again when something changes. Every other error is tried again with
// backoff.
func Reject(reason, format string, args ...any) error {
	return detailed(codes.FailedPrecondition, fmt.Sprintf(format, args...),
		&errdetails.ErrorInfo{Reason: reason, Domain: domain})
}

// RetryAfter asks for the same question again after a time, without backoff.
func RetryAfter(after time.Duration, format string, args ...any) error {
	return detailed(codes.ResourceExhausted, fmt.Sprintf(format, args...),
		&errdetails.RetryInfo{RetryDelay: durationpb.New(after)})
}

func detailed(code codes.Code, message string, detail protoadapt.MessageV1) error {
	s, err := status.New(code, message).WithDetails(detail)
	if err != nil { // the detail cannot be marshalled, which no detail of this file is
		return said{status.Error(code, message)}
	}
	return said{s.Err()}
}

// said marks an error of this file. A function may call other services, whose statuses say nothing
// about this hook's parent.
type said struct{ error }

// Unwrap gives the status.
func (s said) Unwrap() error { return s.error }

// statusOf gives a function's error its gRPC status: that of Reject or RetryAfter, that of the
// context, or INTERNAL.
func statusOf(err error) error {
	var own said
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own):
		s := status.Convert(own.error)
		// with what the error was wrapped in, and without gRPC's words
		text := strings.Replace(err.Error(), own.Error(), s.Message(), 1)
		p := s.Proto()
		p.Message = text
		return status.FromProto(p).Err()
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return status.FromContextError(err).Err()
	default:
		return status.Error(codes.Internal, err.Error())
	}
}
