package act

import (
	"net/http"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// propagate passes the trace context on, so that the API server's own spans can be found from ours.
// It makes no spans: the writer does.
func propagate(next http.RoundTripper) http.RoundTripper { return propagating{next} }

type propagating struct{ next http.RoundTripper }

// RoundTrip sends the request with the trace context of its context, if there is one.
func (p propagating) RoundTrip(r *http.Request) (*http.Response, error) {
	if trace.SpanContextFromContext(r.Context()).IsValid() {
		r = r.Clone(r.Context()) // a RoundTripper must not change the request
		propagation.TraceContext{}.Inject(r.Context(), propagation.HeaderCarrier(r.Header))
	}
	return p.next.RoundTrip(r)
}

// WrappedRoundTripper returns the wrapped one, for client-go's dialer of idle connections.
func (p propagating) WrappedRoundTripper() http.RoundTripper { return p.next }
