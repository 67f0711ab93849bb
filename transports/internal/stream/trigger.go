package stream

import (
	"errors"
	"slices"
	"strings"

	"github.com/hookloop/hookloop/engine/hook"
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"github.com/hookloop/hookloop/internal/printable"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/labels"
)

// Bounds of a trigger.
const (
	// MaxReasonBytes bounds a trigger's reason.
	MaxReasonBytes = 256
	// MaxParents bounds the names in a trigger.
	MaxParents = 10_000
	// MaxSelectorBytes bounds a label selector, and MaxSelectorItems the requirements and values in
	// it: the parser's error has a text of some 300 bytes for each invalid value, and takes the
	// square of their number to build.
	MaxSelectorBytes = 4 << 10
	MaxSelectorItems = 128
)

// TriggerOf returns the trigger function of a stream that serves one controller. It returns nil if
// the controller accepts no triggers.
func TriggerOf(kind, controller string, ask hook.TriggerFunc) func(*streamv1.Trigger) (int, error) {
	if ask == nil {
		return nil
	}
	return func(t *streamv1.Trigger) (int, error) {
		if name := t.GetControllerName(); name != "" && name != controller {
			return 0, status.Errorf(codes.InvalidArgument,
				"controller_name is %q, expected %q, which this stream serves", quoted(name), controller)
		}
		if other := t.GetControllerKind(); other != "" && other != kind {
			return 0, status.Errorf(codes.InvalidArgument,
				"controller_kind is %q, expected %q, which this stream serves", quoted(other), kind)
		}
		req, err := ReadTrigger(t)
		if err != nil {
			return 0, err
		}
		return RequestSync(ask, req)
	}
}

// quoted returns the part of a hook's text that an error repeats. The engine queues the error until
// the hook reads it, so that its size has a limit.
func quoted(field string) string { return printable.Excerpt([]byte(field)) }

// RequestSync triggers a controller. It converts ErrTooManyTriggers to RESOURCE_EXHAUSTED.
func RequestSync(ask hook.TriggerFunc, req hook.Trigger) (parents int, err error) {
	parents, err = ask(req)
	if errors.Is(err, hook.ErrTooManyTriggers) {
		err = status.Error(codes.ResourceExhausted, err.Error())
	}
	return parents, err
}

// ReadTrigger validates a trigger. The error is an INVALID_ARGUMENT that names the field.
func ReadTrigger(t *streamv1.Trigger) (hook.Trigger, error) {
	req := hook.Trigger{Reason: t.GetReason()}
	switch {
	case len(t.GetReason()) > MaxReasonBytes:
		return req, status.Errorf(codes.InvalidArgument, "reason has %d bytes, expected at most %d",
			len(t.GetReason()), MaxReasonBytes)
	case t.GetControllerKind() != "" && !slices.Contains(hook.DeclaredKinds(), t.GetControllerKind()):
		return req, status.Errorf(codes.InvalidArgument, "controller_kind is %q, expected one of %q or none",
			quoted(t.GetControllerKind()), hook.DeclaredKinds())
	case len(t.GetParents()) > MaxParents:
		return req, status.Errorf(codes.InvalidArgument,
			"parents has %d names, expected at most %d; a selector says more", len(t.GetParents()), MaxParents)
	case len(t.GetParents()) > 0 && t.GetLabelSelector() != "":
		return req, status.Error(codes.InvalidArgument, "label_selector: is set beside parents, expected one of them")
	}
	for i, p := range t.GetParents() {
		if p.GetName() == "" {
			return req, status.Errorf(codes.InvalidArgument, "parents[%d].name: is empty, expected a name", i)
		}
		req.Parents = append(req.Parents, hook.ParentName{Namespace: p.GetNamespace(), Name: p.GetName()})
	}
	selector, err := ReadSelector("label_selector", t.GetLabelSelector())
	req.Selector = selector
	return req, err
}

// ReadSelector parses a hook's label selector. The error is an INVALID_ARGUMENT that names the
// field.
func ReadSelector(field, text string) (labels.Selector, error) {
	if len(text) > MaxSelectorBytes {
		return nil, status.Errorf(codes.InvalidArgument, "%s: has %d bytes, expected at most %d", field, len(text),
			MaxSelectorBytes)
	}
	if n := strings.Count(text, ",") + 1; n > MaxSelectorItems {
		return nil, status.Errorf(codes.InvalidArgument, "%s: has %d requirements and values, expected at most %d", field, n,
			MaxSelectorItems)
	}
	selector, err := labels.Parse(text)
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "%s: %s", field, quoted(err.Error()))
	}
	return selector, nil
}
