package act

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine/internal/plan"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// questions are the actions with a request that reads before they write, each with that request.
var questions = []struct {
	name    string
	verb    plan.Verb
	asks    string // the method and the end of the path
	prepare func(*plan.Action)
}{
	{"would the server see a difference", plan.Delete, "PUT /pages/a", func(a *plan.Action) {
		a.Body, a.Stable = page("a", nil), plan.StableHash(page("a", nil))
	}},
	{"whose is the object of that name", plan.Create, "GET /pages/a", nil},
	{"what is the orphan now", plan.Adopt, "GET /pages/a", nil},
	{"is the parent alive", plan.Adopt, "GET /webs/web", nil},
	{"what is the released object now", plan.Release, "GET /pages/a", nil},
	{"which finalizers are there to add to", plan.AddFinalizer, "GET /pages/a", nil},
	{"which finalizers are there to remove from", plan.RemoveFinalizer, "GET /pages/a", nil},
	{"which finalizers are there to remove with labels", plan.PatchMetadata, "GET /pages/a", nil},
	{"which fields are the engine's", plan.ServerSideApply, "GET /pages/a", func(a *plan.Action) {
		a.Takeover, a.Manager, a.Body = true, "hookloop", page("a", nil)
	}},
}

// failures are the failures of such a request. Only a conflict means that the view is stale.
var failures = []struct {
	name   string
	reason metav1.StatusReason
	code   int
}{
	{"409", metav1.StatusReasonConflict, http.StatusConflict},
	{"403", metav1.StatusReasonForbidden, http.StatusForbidden},
	{"429", metav1.StatusReasonTooManyRequests, http.StatusTooManyRequests},
	{"500", metav1.StatusReasonInternalError, http.StatusInternalServerError},
	{"504", metav1.StatusReasonTimeout, http.StatusGatewayTimeout},
	{"404 of a proxy", "", http.StatusNotFound},
	{"no answer", "", 0},
}

// failed returns the response of a failure.
func failed(reason metav1.StatusReason, code int) (int, any) {
	if reason == "" {
		return code, "page not found" // no Status of the API machinery
	}
	return refusal(reason, code)
}

// TestFailedQuestionHasNoAnswer fails each such request in each way: nothing is written after it,
// and the error is the failure's, not one of a real response.
func TestFailedQuestionHasNoAnswer(t *testing.T) {
	for _, q := range questions {
		for _, f := range failures {
			t.Run(q.name+"/"+f.name, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				asked := 0
				s := serve(t, func(line string) (int, any) {
					method, end, _ := strings.Cut(q.asks, " ")
					switch {
					case strings.HasPrefix(line, method+" ") && strings.HasSuffix(line, end):
						asked++
						if f.code == 0 {
							cancel() // the caller gives up before the server answers
							panic(http.ErrAbortHandler)
						}
						return failed(f.reason, f.code)
					case strings.HasPrefix(line, "POST"):
						return refusal(metav1.StatusReasonAlreadyExists, http.StatusConflict)
					case strings.HasSuffix(line, "/webs/web"):
						return http.StatusOK, parent(map[string]any{"uid": "u"})
					}
					return http.StatusOK, page("a", nil)
				})
				a := action(q.verb, "a")
				a.UID = "uid-a"
				a.ResourceVersion = "7"
				a.Finalizer = "ours"
				if q.prepare != nil {
					q.prepare(&a)
				}
				written, err := s.Do(ctx, a)
				if err == nil || written != nil || asked == 0 {
					t.Fatalf("Do = %v, %v after %d questions, want an error", written, err, asked)
				}
				if stale := errors.Is(err, ErrStale); stale != (f.code == http.StatusConflict) {
					t.Errorf("Do = %v, which is a stale view: %t", err, stale)
				}
				if errors.As(err, new(*TakenError)) {
					t.Errorf("Do = %v, but nobody has said whose the object is", err)
				}
				lines := s.methods()
				after := lines[slices.Index(lines, strings.Fields(q.asks)[0])+1:]
				if i := slices.IndexFunc(after, func(m string) bool { return m != "GET" }); i >= 0 {
					t.Errorf("requests %v: a %s after the question that failed", lines, after[i])
				}
			})
		}
	}
}

// TestLostClaim: a child counts as created, although the request that claims its fields has failed.
func TestLostClaim(t *testing.T) {
	for _, f := range failures {
		t.Run(f.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s := serve(t, func(line string) (int, any) {
				switch {
				case strings.HasPrefix(line, "POST"):
					return http.StatusCreated, page("a", nil)
				case f.code == 0:
					cancel()
					panic(http.ErrAbortHandler)
				}
				return failed(f.reason, f.code)
			})
			a := action(plan.Create, "a")
			a.Manager, a.Applied = "hookloop", maps.Clone(a.Body)
			outcome := s.All(ctx, []plan.Action{a})[0]
			if outcome.Err == nil || outcome.Object == nil || outcome.Object.UID() != "uid-a" {
				t.Errorf("outcome is %v, %v, want the created object and the error", outcome.Object, outcome.Err)
			}
			if stale := errors.Is(outcome.Err, ErrStale); stale != (f.code == http.StatusConflict) {
				t.Errorf("%v, which is a stale view: %t", outcome.Err, stale)
			}
		})
	}
}
