package act

import (
	"context"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

const (
	// maxWarnings bounds the warnings of one action, maxWarning the bytes of each.
	maxWarnings = 4
	maxWarning  = 200
	// warningCode is the code of all warnings (RFC 7234, KEP-1693).
	warningCode = 299
)

// warnings collects the API server's warnings about one action: unknown fields, deprecated
// versions. It is bounded, and safe for concurrent use.
type warnings struct {
	mu    sync.Mutex // guards texts
	texts []string
}

type warningsKey struct{}

// collecting returns a context and a collector. The warnings of the context's requests go to the
// collector instead of the log.
func collecting(ctx context.Context) (context.Context, *warnings) {
	w := &warnings{}
	return context.WithValue(ctx, warningsKey{}, w), w
}

// collect sends the warnings of a request to the context's collector, if there is one.
func collect(ctx context.Context, request *rest.Request) {
	if w, ok := ctx.Value(warningsKey{}).(*warnings); ok {
		request.WarningHandlerWithContext(w)
	}
}

// HandleWarningHeaderWithContext collects one warning.
func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, code int, _ string, text string) {
	text = strings.Join(
		strings.FieldsFunc(strings.ToValidUTF8(text, "\uFFFD"), func(r rune) bool { return r <= ' ' }), " ")
	if code != warningCode || text == "" {
		return
	}
	if len(text) > maxWarning {
		text = strings.ToValidUTF8(text[:maxWarning], "") + "…"
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case slices.Contains(w.texts, text):
	case len(w.texts) < maxWarnings:
		w.texts = append(w.texts, text)
	case len(w.texts) == maxWarnings:
		w.texts = append(w.texts, "and more")
	}
}

// list returns the warnings so far.
func (w *warnings) list() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.texts)
}
