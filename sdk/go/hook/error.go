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

// domain is the domain of the reasons in google.rpc.ErrorInfo.
const domain = "hookloop.hook.v1"

// Reject returns an error that rejects the parent in its present state. The parent shows the
// reason, one word in CamelCase, and the message, made of format and args. Hookloop calls the hook
// again when something changes, and retries every other error with backoff.
func Reject(reason, format string, args ...any) error {
	return detailed(codes.FailedPrecondition, fmt.Sprintf(format, args...),
		&errdetails.ErrorInfo{Reason: reason, Domain: domain})
}

// RetryAfter returns an error that makes Hookloop call the hook again after a time, without
// backoff. The parent shows the message, made of format and args.
func RetryAfter(after time.Duration, format string, args ...any) error {
	return detailed(codes.ResourceExhausted, fmt.Sprintf(format, args...),
		&errdetails.RetryInfo{RetryDelay: durationpb.New(after)})
}

func detailed(code codes.Code, message string, detail protoadapt.MessageV1) error {
	s, err := status.New(code, message).WithDetails(detail)
	if err != nil { // the detail cannot be marshalled; those of this file can
		return hookError{status.Error(code, message)}
	}
	return hookError{s.Err()}
}

// hookError marks the gRPC statuses of this package. A function may also return the statuses of
// other services that it calls, which are no statement about the parent.
type hookError struct{ error }

// Unwrap returns the status.
func (e hookError) Unwrap() error { return e.error }

// statusOf returns the gRPC status of a function's error: that of Reject or RetryAfter, that of the
// context, or INTERNAL.
func statusOf(err error) error {
	var own hookError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own):
		s := status.Convert(own.error)
		// with the text that wraps the error, without gRPC's prefix
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

// maxTextBytes is the maximum length of an error's text. A unary call carries the text in a header,
// and headers that are too large end the connection. Hookloop shows 256 bytes.
const maxTextBytes = 1 << 10

// sendable returns an error with a text that protobuf can encode and a header can carry. Any other
// text would end the stream, and with it the calls about other parents.
func sendable(err error) error {
	s := status.Convert(err)
	text := strings.ToValidUTF8(s.Message(), "\uFFFD")
	if len(text) > maxTextBytes {
		text = strings.ToValidUTF8(text[:maxTextBytes], "") + "…"
	}
	if text == s.Message() {
		return err
	}
	p := s.Proto()
	p.Message = text
	return status.FromProto(p).Err()
}
