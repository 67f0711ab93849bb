package lastsync_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/internal/lastsync"
	"k8s.io/apimachinery/pkg/types"
)

// controllers are the names of the controllers with a record.
func controllers(syncs []lastsync.Sync) string {
	var names []string
	for _, s := range syncs {
		names = append(names, s.Controller+"="+s.Result)
	}
	return strings.Join(names, " ")
}

func TestEachControllerHasItsLastSync(t *testing.T) {
	s := lastsync.New(2)
	s.Add("a", lastsync.Sync{Controller: "decorator/d", Result: "changed"})
	s.Add("a", lastsync.Sync{Controller: "composite/c", Result: "changed"})
	before := s.Of("a")
	s.Add("a", lastsync.Sync{Controller: "composite/c", Result: "converged"})
	if diff := cmp.Diff("composite/c=converged decorator/d=changed", controllers(s.Of("a"))); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	if got := controllers(before); got != "composite/c=changed decorator/d=changed" {
		t.Errorf("a result has changed with the store: %s", got)
	}
	s.Forget("a", "composite/c")
	s.Forget("a", "decorator/d")
	if got := s.Of("a"); len(got) != 0 {
		t.Errorf("a forgotten parent has %v", got)
	}
}

// TestTheNumberOfParentsIsBounded drops the parent that was synced longest ago.
func TestTheNumberOfParentsIsBounded(t *testing.T) {
	s := lastsync.New(2)
	for _, parent := range []string{"a", "b", "a", "c"} {
		s.Add(types.UID("uid-"+parent), lastsync.Sync{Controller: parent, Result: "converged"})
	}
	for parent, want := range map[string]int{"a": 1, "b": 0, "c": 1} {
		if got := len(s.Of(types.UID("uid-" + parent))); got != want {
			t.Errorf("parent %s has %d records, want %d", parent, got, want)
		}
	}
}

func TestTheEndpointNeedsAUID(t *testing.T) {
	s := lastsync.New(1)
	s.Add("a", lastsync.Sync{Controller: "composite/c", Result: "converged", Writes: 2})
	for request, want := range map[string]string{
		"GET " + lastsync.Path + "?uid=a":  `200 {"syncs":[{"controller":"composite/c","generation":0,"result":"converged",`,
		"GET " + lastsync.Path + "?uid=b":  `200 {"syncs":[]}`,
		"GET " + lastsync.Path:             "400 expected GET " + lastsync.Path + "?uid=UID",
		"POST " + lastsync.Path + "?uid=a": "400 expected GET",
	} {
		method, path, _ := strings.Cut(request, " ")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(method, path, http.NoBody))
		if got := http.StatusText(w.Code) + " " + w.Body.String(); !strings.HasPrefix(got, text(want)) {
			t.Errorf("%s answers %q, want %q", request, got, text(want))
		}
	}
}

// text replaces the number of a status by its text.
func text(want string) string {
	return strings.NewReplacer("200 ", "OK ", "400 ", "Bad Request ").Replace(want)
}
