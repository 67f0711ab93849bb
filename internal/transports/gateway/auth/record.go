package auth

import (
	"context"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/logging"
	"google.golang.org/grpc/codes"
	"k8s.io/klog/v2"
)

// level is how loud a call is recorded by how it ended: what is usual is for those who look closer,
// a fault of ours for all.
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

// fields say whose call it was.
func fields(ctx context.Context) logging.Fields {
	caller, ok := FromContext(ctx)
	if !ok {
		return nil
	}
	return logging.Fields{"caller", caller.Name, "by", caller.By}
}

// record writes a line for a call that has ended, with its fields: neither metadata nor messages
// are among them.
func record(ctx context.Context, at logging.Level, message string, fields ...any) {
	log := klog.FromContext(ctx)
	switch {
	case at >= logging.LevelError:
		log.Error(nil, message, fields...)
	case at >= logging.LevelInfo:
		log.Info(message, fields...)
	default:
		log.V(1).Info(message, fields...)
	}
}
