package memapi

import (
	"fmt"
	"maps"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxAudit is how many writes the audit log keeps.
const maxAudit = 100_000

// Write describes a request that is not a read, and its result.
type Write struct {
	// Verb is create, update, patch, delete or deletecollection.
	Verb                         string
	Group, Resource, Subresource string
	Namespace, Name              string
	UserAgent                    string
	DryRun                       bool
	// Code is the HTTP status. Reason is the reason of a Status that is an error.
	Code   int
	Reason metav1.StatusReason
	// Before and After are the object's resourceVersions. Before is empty if the object did not exist,
	// After if it is gone, and they are equal if the request changed nothing.
	Before, After string
}

// Changed returns true if the request changed the object.
func (w Write) Changed() bool { return w.Before != w.After }

// String returns the write as one line.
func (w Write) String() string {
	name := w.Resource
	if w.Group != "" {
		name += "." + w.Group
	}
	if w.Subresource != "" {
		name += "/" + w.Subresource
	}
	object := w.Name
	if w.Namespace != "" {
		object = w.Namespace + "/" + w.Name
	}
	result := fmt.Sprint(w.Code)
	if w.Reason != "" {
		result += " " + string(w.Reason)
	}
	if w.DryRun {
		result += " (dry run)"
	}
	return fmt.Sprintf("%s %s %s: %s, %s -> %s, by %s", w.Verb, name, object, result,
		orNone(w.Before), orNone(w.After), agentName(w.UserAgent))
}

func orNone(version string) string {
	if version == "" {
		return "none"
	}
	return version
}

// agentName returns the program of a user agent.
func agentName(userAgent string) string {
	name, _, _ := strings.Cut(userAgent, " ")
	return name
}

// Count is the key under which writes are counted.
type Count struct {
	Verb, Group, Resource, Subresource string
	Code                               int
}

// audit keeps the log of writes. The server's mutex guards it.
type audit struct {
	writes []Write
	// dropped counts the writes that have left the log.
	dropped int
	counts  map[Count]int
}

func (a *audit) reset() { *a = audit{counts: map[Count]int{}} }

// add records a request.
func (a *audit) add(q *request, code int, err error) {
	w := Write{
		Verb: q.Verb, Group: q.APIGroup, Resource: q.Resource, Subresource: q.Subresource,
		Namespace: q.Namespace, Name: q.Name, UserAgent: q.userAgent, DryRun: q.dryRun,
		Code: code, Reason: apierrors.ReasonForError(err),
	}
	if err == nil {
		w.Reason = ""
	}
	if q.before != nil {
		w.Before = q.before.object.GetResourceVersion()
	}
	switch {
	case q.after != nil:
		w.After, w.Name = q.after.object.GetResourceVersion(), q.after.object.GetName()
	case q.dryRun || err != nil:
		w.After = w.Before
	}
	a.counts[Count{w.Verb, w.Group, w.Resource, w.Subresource, w.Code}]++
	if len(a.writes) >= maxAudit {
		half := len(a.writes) / 2
		a.writes = append([]Write(nil), a.writes[half:]...)
		a.dropped += half
	}
	a.writes = append(a.writes, w)
}

func codeOf(err error) int {
	if err == nil {
		return http.StatusOK
	}
	return fail(err).code
}

// Writes returns the writes since a position, and the position after them. Begin with 0. Writes
// that have left the log are missing.
func (s *Server) Writes(since int) ([]Write, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	end := s.audit.dropped + len(s.audit.writes)
	from := min(max(since-s.audit.dropped, 0), len(s.audit.writes))
	return append([]Write(nil), s.audit.writes[from:]...), end
}

// Counts returns how many writes of each kind there were since the server began.
func (s *Server) Counts() map[Count]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[Count]int, len(s.audit.counts))
	maps.Copy(out, s.audit.counts)
	return out
}
