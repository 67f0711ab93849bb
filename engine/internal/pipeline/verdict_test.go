package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/act"
	"github.com/hookloop/hookloop/engine/internal/observe/shape"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/report"
	"github.com/hookloop/hookloop/internal/panics"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestClassify(t *testing.T) {
	var (
		pods      = schema.GroupResource{Resource: "pods"}
		stale     = fmt.Errorf("update Pod.v1 %q: %w", "web", act.ErrStale)
		taken     = fmt.Errorf("create Pod.v1 %q: %w", "web", &act.TakenError{By: "is theirs"})
		answer    = &plan.AnswerError{Index: 1, Problem: "got null, expected an object"}
		forbidden = fmt.Errorf("create Pod.v1 %q: %w", "web", apierrors.NewForbidden(pods, "web", errors.New("not you")))
	)
	ending := apierrors.NewForbidden(pods, "web", errors.New("the namespace is being terminated"))
	ending.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	hookError := func(e hook.Error) error { e.Hook, e.Err = "sync http://web", errors.New("no"); return &e }

	tests := []struct {
		name string
		err  error
		want fault
	}{
		{"the process stops", fmt.Errorf("get: %w", context.Canceled), fault{reason: "ShuttingDown", retry: quiet}},
		{
			"a hook's call was cut off by the hook",
			&hook.Error{Kind: hook.Unreachable, Err: context.Canceled},
			fault{reason: "HookUnreachable"},
		},
		{"a panic", fmt.Errorf("sync: %w", &panics.Error{Cause: "nil map"}), fault{reason: "InternalError"}},

		{"a refused answer", answer, fault{reason: "InvalidHookAnswer"}},
		{"faults of a refused answer", errors.Join(answer, answer), fault{reason: "InvalidHookAnswer"}},
		{"a refused answer, with its hook", &hook.Error{Kind: hook.Invalid, Err: answer}, fault{reason: "InvalidHookAnswer"}},
		{"a parent at fault", &shape.ParentError{Field: "spec.selector"}, fault{reason: "InvalidParent", retry: onChange}},
		{"a part before the finalizer", shape.ErrNoFinalizer, fault{reason: "NoFinalizer", retry: quiet}},

		{"a hook that is down", hookError(hook.Error{Kind: hook.Unreachable}), fault{reason: "HookUnreachable"}},
		{"a hook that is slow", hookError(hook.Error{Kind: hook.TimedOut}), fault{reason: "HookTimeout"}},
		{"a hook that failed", hookError(hook.Error{Kind: hook.Failed}), fault{reason: "HookFailed"}},
		{"a hook with a reason", hookError(hook.Error{Kind: hook.Failed, Reason: "NoQuota"}), fault{reason: "NoQuota"}},
		{"a hook that answers garbage", hookError(hook.Error{Kind: hook.Invalid}), fault{reason: "InvalidHookAnswer"}},
		{
			"a hook that names a time", hookError(hook.Error{Kind: hook.Throttled, RetryAfter: time.Minute}),
			fault{reason: "HookThrottled", retry: later, after: time.Minute},
		},
		{"a hook that names none", hookError(hook.Error{Kind: hook.Throttled}), fault{reason: "HookThrottled"}},
		{
			"a time means nothing elsewhere",
			hookError(hook.Error{Kind: hook.Failed, RetryAfter: time.Minute}),
			fault{reason: "HookFailed"},
		},
		{
			"a hook that refuses the parent",
			hookError(hook.Error{Kind: hook.Rejected}),
			fault{reason: "HookRejected", retry: onChange},
		},
		{
			"a hook that refuses it for a reason", hookError(hook.Error{Kind: hook.Rejected, Reason: "TooLate"}),
			fault{reason: "TooLate", retry: onChange},
		},

		{"a name that is taken", taken, fault{reason: "ChildNameTaken"}},
		{"a stale view", stale, fault{reason: "Stale", retry: quiet}},
		{"stale views", errors.Join(stale, errors.Join(stale, stale)), fault{reason: "Stale", retry: quiet}},
		{"a name that is taken beside a stale view", errors.Join(stale, taken), fault{reason: "ChildNameTaken"}},
		{"a refusal beside a stale view", errors.Join(stale, forbidden), fault{reason: "WriteForbidden"}},
		{
			"a refusal deep beside a stale view",
			errors.Join(stale, errors.Join(stale, forbidden)),
			fault{reason: "WriteForbidden"},
		},
		{"a namespace that ends", fmt.Errorf("create: %w", ending), fault{reason: "NamespaceTerminating"}},
		{"a refusal", forbidden, fault{reason: "WriteForbidden"}},
		{
			"an object that is invalid", apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "web", nil),
			fault{reason: "WriteInvalid"},
		},
		{"anything else", errors.New("no sync hook is declared"), fault{reason: "SyncFailed"}},
		{"anything else beside a stale view", errors.Join(stale, errors.New("disk full")), fault{reason: "SyncFailed"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, classify(test.err), cmp.AllowUnexported(fault{})); diff != "" {
				t.Errorf("classify(%v) (-want +got):\n%s", test.err, diff)
			}
		})
	}
}

// TestLongFaults keeps little of a fault's text for each parent, however much of it a hook has
// made.
func TestLongFaults(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for name, err := range map[string]error{
		"an item":   &plan.AnswerError{Index: 1, Item: long, Problem: "is desired twice"},
		"a problem": &plan.AnswerError{Index: -1, Item: "status", Problem: long},
		"any other": errors.New(long),
	} {
		if got := len(faultKey("InvalidHookAnswer", err)); got > 2*report.MaxMessage {
			t.Errorf("%s: %d bytes are kept", name, got)
		}
		if got := len(loggable(err).Error()); got > maxLogged {
			t.Errorf("%s: %d bytes are logged", name, got)
		}
		var answer *plan.AnswerError
		if errors.As(err, &answer) && len(err.Error()) > 4<<10 {
			t.Errorf("%s: the error has %d bytes", name, len(err.Error()))
		}
	}
}
