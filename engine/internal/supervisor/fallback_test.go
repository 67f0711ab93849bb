package supervisor

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestOpenerOfAHook opens hooks with one and with several transports, and compares the opener that
// is called, its field, and the text of its error.
func TestOpenerOfAHook(t *testing.T) {
	url := "http://b/"
	grpc := &v1alpha1.GRPC{Target: "a:1"}
	webhook := &v1alpha1.Webhook{URL: &url}
	for name, c := range map[string]struct {
		declared            v1alpha1.Hook
		opener, field, want string
	}{
		"gRPC": {v1alpha1.Hook{GRPC: grpc}, "grpc", `{"target":"a:1"}`, "spec.hooks.sync.grpc: it is bad"},
		"webhook": {
			v1alpha1.Hook{Webhook: webhook}, "webhook", `{"url":"http://b/"}`, "spec.hooks.sync.webhook: it is bad",
		},
		"both": {
			v1alpha1.Hook{GRPC: grpc, Webhook: webhook}, "grpc+webhook",
			`{"webhook":{"url":"http://b/"},"grpc":{"target":"a:1"}}`, "spec.hooks.sync.it is bad",
		},
		"none": {want: `spec.hooks.sync: got "", expected one transport, or grpc or transport with webhook`},
		"plugged": {
			v1alpha1.Hook{Transport: plugged("nats", `{"subject":"a"}`)}, "nats", `{"subject":"a"}`,
			"spec.hooks.sync.transport.config: it is bad",
		},
		"plugged without configuration": {
			v1alpha1.Hook{Transport: &v1alpha1.Transport{Name: "nats"}}, "nats", `{}`,
			"spec.hooks.sync.transport.config: it is bad",
		},
		"plugged with a fallback": {
			v1alpha1.Hook{Transport: plugged("nats", `{"subject":"a"}`), Webhook: webhook}, "nats+webhook",
			`{"webhook":{"url":"http://b/"},"nats":{"subject":"a"}}`, "spec.hooks.sync.it is bad",
		},
		"not plugged": {
			v1alpha1.Hook{Transport: plugged("kafka", `{}`)}, "", "",
			`spec.hooks.sync.transport.name: "kafka" is no transport of this program; expected one of "nats", "tcp"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var opener, field string
			openers := hook.Openers{}
			for _, transport := range []string{"grpc", "webhook", "grpc+webhook", "nats", "nats+webhook", "tcp"} {
				openers[transport] = func(s hook.Config) (*hook.Opened, error) {
					opener = transport
					field = string(s.Field)
					return nil, errors.New("it is bad")
				}
			}
			s := &Supervisor{Config: Config{Openers: openers}}
			_, err := s.open(&config{declared: &declared{}, object: decoded(t)}, hook.Sync, &c.declared, nil, nil)
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff([]string{c.opener, c.want}, []string{opener, err.Error()}); diff != "" {
				t.Errorf("opener and error (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(decodedJSON(t, c.field), decodedJSON(t, field)); diff != "" {
				t.Errorf("field (-want +got):\n%s", diff)
			}
		})
	}
}

func plugged(name, config string) *v1alpha1.Transport {
	return &v1alpha1.Transport{Name: name, Config: &runtime.RawExtension{Raw: []byte(config)}}
}

// TestAProgramWithoutTransports names what would have to be done.
func TestAProgramWithoutTransports(t *testing.T) {
	s := &Supervisor{Config: Config{Openers: hook.Openers{"grpc": nil, "webhook": nil, "grpc+webhook": nil}}}
	_, err := s.opener("spec.hooks.sync", (&v1alpha1.Hook{Transport: plugged("nats", `{}`)}).Transports())
	want := `spec.hooks.sync.transport.name: "nats" is no transport of this program; expected a program that adds it ` +
		`(server.Config.Transports), because this one adds none`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// decodedJSON returns the value of a JSON text; nil for an empty one.
func decodedJSON(t *testing.T, text string) (value any) {
	t.Helper()
	if text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}
