package change

import (
	"context"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/propagation"
)

// TestPropagatorOfProvisionalTraces clears the sampled flag while the export of the trace is
// undecided.
func TestPropagatorOfProvisionalTraces(t *testing.T) {
	for _, test := range []struct {
		name string
		ctx  context.Context
		want string
	}{
		{"a change", Of("c", "u", 1).Context(t.Context(), true), "-01"},
		{"work that goes on after it", Detached(Provisional(t.Context())), ""},
		{"a provisional trace", Provisional(Of("c", "u", 1).Context(t.Context(), true)), "-00"},
	} {
		t.Run(test.name, func(t *testing.T) {
			carrier := propagation.MapCarrier{}
			Propagator{}.Inject(test.ctx, carrier)
			if got := carrier["traceparent"]; !strings.HasSuffix(got, test.want) || test.want == "" && got != "" {
				t.Errorf("traceparent = %q, want it to end with %s", got, test.want)
			}
		})
	}
}
