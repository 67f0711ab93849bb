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

// domain is sent in google.rpc.ErrorInfo together with a reason.
const domain = "hookloop.hook.v1"

// Reject returns an error that tells Hookloop to wait until something changes, because the hook
// cannot do anything for the parent as it is now. The parent shows reason, which should be one
// CamelCase word, and the formatted message. Hookloop does not retry the call; it calls again when
// the parent or an observed object changes.
func Reject(reason, format string, args ...any) error {
	return detailed(codes.FailedPrecondition, fmt.Sprintf(format, args...),
		&errdetails.ErrorInfo{Reason: reason, Domain: domain})
}

// RetryAfter returns an error that tells Hookloop to call the hook again after this time, without
// backoff. The parent shows the formatted message.
func RetryAfter(after time.Duration, format string, args ...any) error {
	return detailed(codes.ResourceExhausted, fmt.Sprintf(format, args...),
		&errdetails.RetryInfo{RetryDelay: durationpb.New(after)})
}

func detailed(code codes.Code, message string, detail protoadapt.MessageV1) error {
	s, err := status.New(code, message).WithDetails(detail)
	if err != nil { // not reached: the details in this file can be marshalled
		return hookError{status.Error(code, message)}
	}
	return hookError{s.Err()}
}

// hookError marks statuses that this package made. A function may also return a status that it got
// from another service; such a status says nothing about the parent.
type hookError struct{ error }

// Unwrap returns the status.
func (e hookError) Unwrap() error { return e.error }

// statusOf turns the error of a function into a gRPC status. It keeps the code of Reject,
// RetryAfter and ended contexts; any other error becomes INTERNAL.
func statusOf(err error) error {
	var own hookError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own):
		s := status.Convert(own.error)
		// keep text that wraps the error, but not gRPC's prefix
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

// maxTextBytes limits the text of an error. Unary calls send it in a header, and gRPC closes the
// connection if headers are too large. Hookloop shows only 256 bytes.
const maxTextBytes = 1 << 10

// sendable makes sure that an error's text is valid UTF-8 and not too long. Other texts would end
// the whole stream, with all calls on it.
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
