package controller

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/internal/panics"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/klog/v2"
)

// WebhookOptions configures a [Webhook].
type WebhookOptions struct {
	// Authorize returns an error for a request that is not allowed; it must not read the body. It is
	// required. BearerToken returns one.
	Authorize func(*http.Request) error
	// Keys returns the keys that an authorized request reconciles. If it returns a *NotFoundError,
	// the sender gets the status 404, for an unknown state of the cache 503, for other errors 400.
	//
	// nil decodes {"keys": [{"namespace": "shop", "name": "milk"}]}.
	Keys func(ctx context.Context, r Reader, body []byte) ([]Key, error)
	// MaxBytes limits the body of a request; 0 means 64 KiB.
	MaxBytes int64
}

const (
	defaultWebhookBytes = 64 << 10
	// maxWebhookKeys limits the keys of one request.
	maxWebhookKeys = 1000
)

// Webhook is a Source of the keys that HTTP requests name, and the http.Handler of these requests.
// The program serves it, with TLS. One Webhook is the source of one controller.
//
// The status is 202 when the keys are in the queue, and 503 while the controller does not run in
// this process, such as in a replica that does not lead: senders try again then.
type Webhook struct {
	options WebhookOptions

	mu sync.Mutex // guards running
	// running is nil while the controller does not run.
	running *sourcing
}

// NewWebhook returns a Webhook. A fault in its options is reported with the faults of the
// controller's declaration, when the process starts.
func NewWebhook(o WebhookOptions) *Webhook {
	if o.Keys == nil {
		o.Keys = decodeKeys
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = defaultWebhookBytes
	}
	return &Webhook{options: o}
}

// check implements checkedSource.
func (w *Webhook) check() error {
	switch {
	case w.options.Authorize == nil:
		return errors.New("webhook: Authorize is nil, expected a function such as that of BearerToken")
	case w.options.MaxBytes < 0:
		return fmt.Errorf("webhook: MaxBytes is %d, expected 0 or more", w.options.MaxBytes)
	}
	return nil
}

// BearerToken returns a function for WebhookOptions.Authorize: it accepts requests with the header
// "Authorization: Bearer" and the token. An empty token accepts none.
func BearerToken(token string) func(*http.Request) error {
	want := sha256.Sum256([]byte(token))
	return func(r *http.Request) error {
		got, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		sum := sha256.Sum256([]byte(got))
		if equal := subtle.ConstantTimeCompare(sum[:], want[:]) == 1; !found || !equal || token == "" {
			return errors.New("the bearer token is missing or wrong")
		}
		return nil
	}
}

func (w *Webhook) run(ctx context.Context, s *sourcing) error {
	w.mu.Lock()
	if w.running != nil {
		w.mu.Unlock()
		return errors.New("webhook: it is the source of another controller, expected one Webhook for each")
	}
	w.running = s
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.running = nil
	}()
	<-ctx.Done()
	return nil
}

// ServeHTTP implements http.Handler.
func (w *Webhook) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	status, err := w.accept(out, r)
	if err == nil {
		out.WriteHeader(status)
		return
	}
	if status == http.StatusServiceUnavailable {
		out.Header().Set("Retry-After", "1")
	}
	http.Error(out, err.Error(), status)
}

// accept enqueues the keys of a request. It returns the status of the response, and an error unless
// the status is a success.
func (w *Webhook) accept(out http.ResponseWriter, r *http.Request) (int, error) {
	if w.options.Authorize == nil {
		return http.StatusForbidden, errors.New("no request is allowed")
	}
	if r.Method != http.MethodPost {
		return http.StatusMethodNotAllowed, fmt.Errorf("the method is %q, expected POST", r.Method)
	}
	if err := w.options.Authorize(r); err != nil {
		klog.FromContext(r.Context()).V(1).Info("webhook: a request is not allowed", "cause", err.Error())
		return http.StatusForbidden, errors.New("the request is not allowed")
	}
	body, err := io.ReadAll(http.MaxBytesReader(out, r.Body, w.options.MaxBytes))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return http.StatusRequestEntityTooLarge, fmt.Errorf("the body has more than %d bytes", large.Limit)
	case err != nil:
		return http.StatusBadRequest, errors.New("the body cannot be read")
	}
	w.mu.Lock()
	s := w.running
	w.mu.Unlock()
	if s == nil {
		return http.StatusServiceUnavailable, errors.New("the controller does not run in this process; try again")
	}
	keys, err := w.keys(r.Context(), s, body)
	if err != nil {
		return responseTo(err)
	}
	for _, key := range keys {
		s.enqueue(key, "webhook")
	}
	return http.StatusAccepted, nil
}

// keys returns the valid keys of a request. A panic of the user's function is an error.
func (w *Webhook) keys(ctx context.Context, s *sourcing, body []byte) (keys []Key, err error) {
	defer panics.Recover(ctx, &err, "panic in a webhook")
	keys, err = w.options.Keys(ctx, s.reader, body)
	if err != nil {
		return nil, err
	}
	if len(keys) > maxWebhookKeys {
		return nil, fmt.Errorf("the request has %d keys, expected at most %d", len(keys), maxWebhookKeys)
	}
	for i, key := range keys {
		if err := checkKey(key, s.primary.Namespaced); err != nil {
			return nil, fmt.Errorf("key %d: %w", i, err)
		}
	}
	return keys, nil
}

// responseTo returns the HTTP status and the text for an error of keys. The text of a panic is for
// the log only.
func responseTo(err error) (int, error) {
	var unknown *view.Error
	var panicked *panics.Error
	switch {
	case IsNotFound(err):
		return http.StatusNotFound, err
	case errors.As(err, &unknown):
		return http.StatusServiceUnavailable, err
	case errors.As(err, &panicked):
		return http.StatusInternalServerError, errors.New("the request cannot be handled")
	}
	return http.StatusBadRequest, err
}

// checkKey returns an error for a key that no object can have.
func checkKey(key Key, namespaced bool) error {
	const maxName = 253
	switch {
	case key.Name == "":
		return errors.New("name is empty")
	case len(key.Name) > maxName:
		return fmt.Errorf("name has %d bytes, expected at most %d", len(key.Name), maxName)
	case len(content.IsPathSegmentName(key.Name)) > 0:
		return fmt.Errorf("name: got %q, expected the name of an object", key.Name)
	case !namespaced && key.Namespace != "":
		return fmt.Errorf("namespace: got %q, expected none for a cluster-scoped object", shortened(key.Namespace))
	case namespaced && len(validation.IsDNS1123Label(key.Namespace)) > 0:
		return fmt.Errorf("namespace: got %q, expected the name of a namespace", shortened(key.Namespace))
	}
	return nil
}

// shortened returns at most as much of a text as a namespace can have.
func shortened(text string) string { return text[:min(len(text), validation.DNS1123LabelMaxLength)] }

// decodeKeys is the default of WebhookOptions.Keys.
func decodeKeys(_ context.Context, _ Reader, body []byte) ([]Key, error) {
	var request struct {
		Keys []struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"keys"`
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, fmt.Errorf(`the body is no JSON of the form {"keys": [{"namespace": "", "name": ""}]}: %w`, err)
	}
	if len(request.Keys) == 0 {
		return nil, errors.New("keys is empty, expected a key")
	}
	keys := make([]Key, 0, len(request.Keys))
	for _, k := range request.Keys {
		keys = append(keys, Key{Namespace: k.Namespace, Name: k.Name})
	}
	return keys, nil
}
