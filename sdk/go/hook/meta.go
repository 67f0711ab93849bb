package hook

import (
	"cmp"
	"fmt"
	"strings"

	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"github.com/hookloop/hookloop/internal/protocol/features"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
)

// responseMeta lists the features that a response uses. It returns an error if the engine does not
// honour one of them, because that engine would carry out only a part of the response. rules come
// from a response to Customize.
func responseMeta(
	request *hookv1.RequestMeta, desired []*hookv1.DesiredObject, details *hookv1.ResponseDetails,
	rules ...*hookv1.RelatedResourceRule,
) (*hookv1.ResponseMeta, error) {
	used := features.Used(desired, details, rules...)
	if len(used) == 0 {
		return nil, nil
	}
	if request == nil { // the engine does not say; it rejects what it does not know
		return &hookv1.ResponseMeta{Features: used}, nil
	}
	if missing := features.Missing(used, request.GetFeatures()); missing != "" {
		text := fmt.Sprintf("the response uses the feature %q, which the engine %s does not honour; it honours %s",
			missing, request.GetEngineVersion(), cmp.Or(strings.Join(request.GetFeatures(), ", "), "none"))
		return nil, detailed(codes.FailedPrecondition, text,
			&errdetails.ErrorInfo{Reason: "FeatureNotHonoured", Domain: domain})
	}
	return &hookv1.ResponseMeta{Features: used}, nil
}
