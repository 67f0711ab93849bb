package auth

import (
	"context"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/logging"
	"google.golang.org/grpc/codes"
	"k8s.io/klog/v2"
)

// level returns the log level for a call: debug for expected results, and error for internal
// errors.
func level(code codes.Code) logging.Level {
	switch code {
	case codes.OK, codes.Canceled, codes.ResourceExhausted:
		return logging.LevelDebug
	case codes.Unknown, codes.Internal, codes.DataLoss:
		return logging.LevelError
	default:
		return logging.LevelInfo
	}
}

// fields returns the log fields for the caller.
func fields(ctx context.Context) logging.Fields {
	caller, ok := FromContext(ctx)
	if !ok {
		return nil
	}
	return logging.Fields{"caller", caller.Name, "by", caller.By}
}

// recordRate is how many rejected calls of a caller are logged in a second, with a burst of
// recordBurst.
const (
	recordRate  = 1
	recordBurst = 20
)

// recordCalls returns a function that logs a call when it has ended. It logs neither metadata nor
// messages. Rejected calls above the rate are logged only for debugging.
func recordCalls(rejected *limits) logging.LoggerFunc {
	return func(ctx context.Context, at logging.Level, message string, fields ...any) {
		log := klog.FromContext(ctx)
		switch {
		case at >= logging.LevelError:
			log.Error(nil, message, fields...)
		case at >= logging.LevelInfo && rejected.take(ctx):
			log.Info(message, fields...)
		default:
			log.V(1).Info(message, fields...)
		}
	}
}
