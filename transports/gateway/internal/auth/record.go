package auth

import (
	"context"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/logging"
	"google.golang.org/grpc/codes"
	"k8s.io/klog/v2"
)

// level returns the log level of a call by its result: debug for expected results, error for
// internal ones.
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

// The log has recordRate rejected calls a second of one caller, with a burst of recordBurst.
const (
	recordRate  = 1
	recordBurst = 20
)

// recordCalls returns a function that logs a call that has ended. Its fields contain neither
// metadata nor messages. Rejected calls beyond the limits are logged for debugging.
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
