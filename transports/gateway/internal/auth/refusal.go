package auth

import (
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// domain is sent in google.rpc.ErrorInfo together with a reason.
const domain = "hookloop.stream.v1"

// refusal returns a status with a reason that programs can read. metadata alternates between names
// and values.
func refusal(code codes.Code, reason, message string, metadata ...string) error {
	plain := status.New(code, message)
	info := &errdetails.ErrorInfo{Reason: reason, Domain: domain, Metadata: map[string]string{}}
	for i := 0; i+1 < len(metadata); i += 2 {
		info.Metadata[metadata[i]] = metadata[i+1]
	}
	detailed, err := plain.WithDetails(info)
	if err != nil { // a name or value is not UTF-8
		return plain.Err()
	}
	return detailed.Err()
}
