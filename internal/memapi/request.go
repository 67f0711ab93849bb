package memapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"
)

// maxBody is the largest body of a request, as the API server has it.
const maxBody = 3 << 20

// request is one request about a resource.
type request struct {
	// Context has the namespace, the RequestInfo and the recorder of warnings, for the API
	// server's libraries.
	context.Context //nolint:containedctx // a request lives as long as its context
	*apirequest.RequestInfo
	http      *http.Request
	query     url.Values
	body      []byte
	userAgent string
	warnings  []string

	resource *resource
	dryRun   bool
	// before and after are the states of the object that the request changed; nil if it did not
	// exist.
	before, after *stored
}

var infos = apirequest.RequestInfoFactory{
	APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
}

// AddWarning implements warning.Recorder.
func (q *request) AddWarning(_, text string) {
	if slices.Contains(q.warnings, text) {
		return
	}
	q.warnings = append(q.warnings, text)
}

// parse reads a request.
func parse(r *http.Request) (*request, error) {
	info, err := infos.NewRequestInfo(r)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	q := &request{RequestInfo: info, http: r, query: r.URL.Query(), userAgent: r.UserAgent()}
	if r.Body != nil {
		q.body, err = io.ReadAll(io.LimitReader(r.Body, maxBody+1))
		if err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("cannot read the body: %v", err))
		}
		if len(q.body) > maxBody {
			return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", maxBody))
		}
	}
	q.dryRun = q.query.Get("dryRun") == metav1.DryRunAll
	q.Context = apirequest.WithRequestInfo(r.Context(), info)
	q.Context = apirequest.WithNamespace(q.Context, info.Namespace)
	q.Context = warning.WithWarningRecorder(q.Context, q)
	return q, nil
}

// mediaType returns the media type of the body.
func (q *request) mediaType() string {
	given := q.http.Header.Get("Content-Type")
	if given == "" {
		return "application/json"
	}
	parsed, _, err := mime.ParseMediaType(given)
	if err != nil {
		return given
	}
	return parsed
}

// manager returns the field manager: the given one, else the user agent's first part.
func (q *request) manager() string {
	if given := q.query.Get("fieldManager"); given != "" {
		return given
	}
	name, _, _ := strings.Cut(q.userAgent, "/")
	if len(name) > 128 {
		name = name[:128]
	}
	return name
}

// fieldValidation returns the directive for unknown and duplicate fields.
func (q *request) fieldValidation() string {
	if given := q.query.Get("fieldValidation"); given != "" {
		return given
	}
	return metav1.FieldValidationWarn
}

// options reads the query into one of metav1's types of options.
func options[T any](
	q *request, convert func(*url.Values, *T, conversion.Scope) error, validate func(*T) field.ErrorList,
) (*T, error) {
	out := new(T)
	if err := convert(&q.query, out, nil); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if errs := validate(out); len(errs) > 0 {
		kind := strings.TrimPrefix(fmt.Sprintf("%T", out), "*v1.")
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", errs)
	}
	return out, nil
}

// errNoRoute is a 404 without a resource, as of a path that nothing serves.
func errNoRoute() error {
	err := apierrors.NewGenericServerResponse(http.StatusNotFound, "", schema.GroupResource{}, "", "", 0, true)
	err.ErrStatus.Message = "the server could not find the requested resource"
	err.ErrStatus.Details = &metav1.StatusDetails{}
	return err
}

// errNotAllowed reports that a resource does not have the verb.
func (q *request) errNotAllowed() error {
	err := apierrors.NewGenericServerResponse(http.StatusMethodNotAllowed, q.Verb,
		schema.GroupResource{}, "", "", 0, true)
	err.ErrStatus.Message = "the server does not allow this method on the requested resource"
	err.ErrStatus.Details = &metav1.StatusDetails{}
	return err
}

// isNotFound reports whether an error is that an object does not exist.
func isNotFound(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && apierrors.IsNotFound(err)
}
