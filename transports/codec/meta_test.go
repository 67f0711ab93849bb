package codec

import (
	"strings"
	"testing"

	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"github.com/hookloop/hookloop/internal/protocol/features"
)

// TestAnUnknownFeatureIsRefused: the engine writes nothing of a response that it would only half
// obey.
func TestAnUnknownFeatureIsRefused(t *testing.T) {
	response := &compositev1.SyncResponse{Meta: &hookv1.ResponseMeta{Features: []string{"depends_on", "teleport"}}}
	answer, err := Answer(response)
	want := `the response uses the feature "teleport", which this engine does not honour; ` +
		`it honours conditions, depends_on`
	if answer != nil || err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, %v, expected an error that begins with %s", answer, err, want)
	}
	response.Meta.Features = features.All()
	if _, err := Answer(response); err != nil {
		t.Errorf("all known features: %v", err)
	}
}

// TestMetaOfARequest: a stream does not repeat what its Hello says.
func TestMetaOfARequest(t *testing.T) {
	m := Meta("v1.2.3", "shop")
	if m.GetEngineVersion() != "v1.2.3" || m.GetHook() != "shop" || len(m.GetFeatures()) != len(features.All()) {
		t.Errorf("got %v, expected the version, all features and the hook's name", m)
	}
	if other := Meta("v1.2.3", "shop"); len(m.GetRequestId()) != 16 || other.GetRequestId() == m.GetRequestId() {
		t.Errorf("got the IDs %q and %q, expected two different ones of 16 digits", m.GetRequestId(), other.GetRequestId())
	}
	s := StreamMeta("shop")
	if s.GetEngineVersion() != "" || len(s.GetFeatures()) > 0 || s.GetHook() != "shop" || s.GetRequestId() == "" {
		t.Errorf("got %v, expected a name and an ID alone", s)
	}
}
