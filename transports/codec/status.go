package codec

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/internal/printable"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// statusError is the status of a failed call.
type statusError struct {
	code codes.Code
	text string
}

func (e *statusError) Error() string { return fmt.Sprintf("%s: %q", e.code, e.text) }

// Code returns the label of metrics. Codes that google.rpc.Code does not have share one label,
// because the hook chooses them.
func (e *statusError) Code() string {
	if e.code > codes.Unauthenticated { // the last one
		return codes.Unknown.String()
	}
	return e.code.String()
}

// Unserved reports whether a hook failed because it does not serve the operation.
func Unserved(err error) bool {
	var status *statusError
	return errors.As(err, &status) && status.code == codes.Unimplemented
}

// Failure returns the error for a call that ended with a status other than OK. Its kind, reason and
// delay come from the code and the details (ErrorInfo, RetryInfo). name should be the operation and
// the address of the hook, and timeout the timeout of the call.
func Failure(name string, q *hook.Question, timeout time.Duration, s *status.Status) *hook.Error {
	cause := &statusError{code: s.Code(), text: printable.Excerpt([]byte(s.Message()))}
	failure := &hook.Error{Kind: kindOf(s), Hook: name, Err: cause}
	switch s.Code() {
	case codes.DeadlineExceeded:
		failure.Err = fmt.Errorf("no answer within %s: %w", timeout, cause)
	case codes.Unavailable:
		if advice := mismatch(s.Message()); advice != "" {
			failure.Err = fmt.Errorf("%s: %w", advice, cause)
		}
	case codes.Unimplemented:
		failure.Err = fmt.Errorf("the hook does not serve %s: %w", Method(q.Kind, q.Op)[1:], cause)
	}
	for _, detail := range details(s) {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			if hook.IsWord(detail.GetReason()) {
				failure.Reason = detail.GetReason()
			}
		case *errdetails.RetryInfo:
			failure.RetryAfter = min(max(0, detail.GetRetryDelay().AsDuration()), hook.MaxRetryAfter)
		}
	}
	return failure
}

// mismatch returns advice if one side uses TLS and the other plain text, and otherwise an empty
// string. The errors of the gRPC library do not mention it.
func mismatch(text string) string {
	switch {
	case strings.Contains(text, "error reading server preface"):
		return "the hook closed the connection before it spoke HTTP/2; if it expects TLS, remove insecure"
	case strings.Contains(text, "first record does not look like a TLS handshake"):
		return "the hook does not speak TLS; expected TLS, or insecure: true for plain text"
	}
	return ""
}

const (
	// maxDetails bounds the number of details of a status that are decoded, and maxDetailBytes the
	// size of each.
	maxDetails     = 16
	maxDetailBytes = 8 << 10
)

// details decodes the details of two known types. It ignores all others.
func details(s *status.Status) []proto.Message {
	var out []proto.Message
	all := s.Proto().GetDetails()
	for _, detail := range all[:min(len(all), maxDetails)] {
		var m proto.Message
		switch {
		case detail.MessageIs(&errdetails.ErrorInfo{}):
			m = &errdetails.ErrorInfo{}
		case detail.MessageIs(&errdetails.RetryInfo{}):
			m = &errdetails.RetryInfo{}
		}
		// What cannot be read is as good as not there: the code and the message are the failure.
		if m != nil && len(detail.GetValue()) <= maxDetailBytes && proto.Unmarshal(detail.GetValue(), m) == nil {
			out = append(out, m)
		}
	}
	return out
}

func kindOf(s *status.Status) hook.ErrorKind {
	switch s.Code() {
	case codes.Unavailable:
		return hook.Unreachable
	case codes.DeadlineExceeded:
		return hook.TimedOut
	case codes.ResourceExhausted:
		// The library itself reports with this code that a message is too large; asking
		// again does not make it smaller.
		if strings.Contains(s.Message(), "larger than max") {
			return hook.Invalid
		}
		return hook.Throttled
	case codes.InvalidArgument, codes.FailedPrecondition:
		return hook.Rejected
	default:
		return hook.Failed
	}
}
