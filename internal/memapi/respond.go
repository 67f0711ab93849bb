package memapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// answer is the response to one request: a body or a watch.
type answer struct {
	code        int
	contentType string
	warnings    []string
	body        []byte
	watch       *watcher
}

func (a *answer) header(h http.Header) {
	h.Set("Content-Type", a.contentType)
	if a.watch == nil {
		h.Set("Content-Length", strconv.Itoa(len(a.body)))
	}
	for _, w := range a.warnings {
		if header, err := utilnet.NewWarningHeader(299, "-", w); err == nil {
			h.Add("Warning", header)
		}
	}
}

// RoundTrip implements http.RoundTripper. A response to a watch reads the events as they come.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	defer func() { _ = r.Body.Close() }() // RoundTrip must close it
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	a := s.answer(r)
	response := &http.Response{
		StatusCode: a.code, Status: fmt.Sprintf("%d %s", a.code, http.StatusText(a.code)),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Request: r, ContentLength: int64(len(a.body)),
	}
	a.header(response.Header)
	if a.watch == nil {
		response.Body = io.NopCloser(bytes.NewReader(a.body))
		return response, nil
	}
	response.ContentLength = -1
	ctx, cancel := context.WithCancel(r.Context())
	response.Body = &stream{watcher: a.watch, ctx: ctx, cancel: cancel}
	return response, nil
}

// stream is the body of a response to a watch.
type stream struct {
	watcher *watcher
	rest    []byte
	ctx     context.Context //nolint:containedctx // it is the request's, which outlives each Read
	cancel  context.CancelFunc
}

// Read waits for the next event.
func (s *stream) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		frames, err := s.watcher.next(s.ctx)
		if err != nil {
			return 0, err
		}
		s.rest = frames
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// Close ends the watch.
func (s *stream) Close() error {
	s.cancel()
	s.watcher.close()
	return nil
}

// reply makes the answer of a JSON value.
func reply(code int, value any) *answer {
	body, err := json.Marshal(value)
	if err != nil {
		return fail(apierrors.NewInternalError(err))
	}
	return &answer{code: code, contentType: "application/json", body: body}
}

// fail makes the answer of an error: a Status.
func fail(err error) *answer {
	var known apierrors.APIStatus
	if !errors.As(err, &known) {
		known = &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}}
	}
	status := known.Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	code := int(status.Code)
	if code == 0 {
		code = http.StatusInternalServerError
		status.Code = http.StatusInternalServerError
	}
	return reply(code, &status)
}
