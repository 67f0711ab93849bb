package verify

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/transports/recording"
	"google.golang.org/grpc/codes"
)

// ReplayOptions says which recordings to replay, and which hook to ask.
type ReplayOptions struct {
	// Files lists recordings, or folders of them.
	Files []string
	// Addresses, Version and Timeout are the same as in [Options].
	Addresses []string
	Version   string
	Timeout   time.Duration
	Security
}

// Replayed compares the answer to one recording with the recorded one.
type Replayed struct {
	File       string              `json:"file"`
	Kind       hook.ControllerKind `json:"kind"`
	Operation  hook.Op             `json:"operation"`
	Parent     string              `json:"parent"`
	RecordedAt time.Time           `json:"recordedAt"`
	// Same is true if the answer is the recorded one.
	Same bool `json:"same"`
	// Differences lists how the new answer differs from the recorded one.
	Differences []Difference `json:"differences,omitempty"`
	// RecordedError and Error are how the two calls failed, if they did.
	RecordedError string `json:"recordedError,omitempty"`
	Error         string `json:"error,omitempty"`
	// Masked counts the values of Secrets that the recording hides from the hook. An answer that is
	// computed from one of them will differ.
	Masked int `json:"masked,omitempty"`
}

// ReplayReport holds the results of all recordings.
type ReplayReport struct {
	Replayed []Replayed `json:"replayed"`
}

// Replay asks a hook the questions of recordings again. A hook that fails counts as a difference.
// Replay returns an error for a wrong option (a *[UsageError]) or if ctx ends.
func Replay(ctx context.Context, o ReplayOptions) (*ReplayReport, error) {
	if o.Timeout < 0 {
		return nil, usagef("--timeout: got %s, expected a positive duration", o.Timeout)
	}
	files, err := recordings(o.Files)
	if err != nil {
		return nil, err
	}
	report := &ReplayReport{}
	for _, name := range files {
		replayed, err := o.replay(ctx, name)
		if err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		report.Replayed = append(report.Replayed, *replayed)
	}
	return report, nil
}

// recordings returns the files, and those in folders, the oldest of each folder first.
func recordings(names []string) ([]string, error) {
	var files []string
	for _, name := range names {
		before := len(files)
		err := filepath.WalkDir(name, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && (path == name || strings.HasSuffix(path, ".json")) {
				files = append(files, path)
			}
			return err
		})
		switch {
		case err != nil:
			return nil, usagef("%v; expected a file of hookloop serve --record-dir, or a folder of them", err)
		case len(files) == before:
			return nil, usagef("%s has no recordings, expected files of hookloop serve --record-dir", name)
		}
	}
	if len(files) == 0 {
		return nil, usagef("got no file, expected a recording such as recordings/composite-web/shop_a/….json")
	}
	return files, nil
}

// replay asks the question of one recording.
func (o *ReplayOptions) replay(ctx context.Context, name string) (*Replayed, error) {
	recorded, q, err := readRecording(name)
	if err != nil {
		return nil, err
	}
	s, err := recordedSubject(recorded, q)
	if err != nil {
		return nil, err
	}
	targets, err := resolve(s, Options{
		Addresses: o.Addresses, Version: o.Version, Timeout: o.Timeout, Security: o.Security,
	})
	if err != nil {
		return nil, err
	}
	e := &examiner{subject: s, targets: targets}
	defer e.close()
	if targets[q.Op] == nil {
		return nil, usagef("--hook: has no address of %s, which %s is about; expected --hook %s=URL", q.Op, name, q.Op)
	}
	out := &Replayed{
		File: name, Kind: q.Kind, Operation: q.Op, Parent: q.Parent.Ref().String(), RecordedAt: recorded.RecordedAt,
		Masked: recorded.Masked,
	}
	got := e.byEngine(autoMode)(ctx, q)
	if f := got.failure; f != nil && f.code == codes.Unavailable.String() { // the hook has not answered
		got.unreachable = f.message
	}
	if got.unreachable != "" {
		got.unreachable = targets[q.Op].unreachable(got.unreachable)
	}
	out.compare(q, recorded, got)
	return out, nil
}

// autoMode lets the engine's gRPC client choose between stream and unary calls.
const autoMode = ""

// readRecording reads a recording and its question. The error is a *UsageError.
func readRecording(name string) (*recording.Recording, *hook.Question, error) {
	recorded, err := recording.Read(name)
	if err != nil {
		return nil, nil, usagef("%v", err)
	}
	q, err := recorded.Ask()
	if err != nil {
		return nil, nil, usagef("%s: %v", name, err)
	}
	return recorded, q, nil
}

// recordedSubject returns the controller and the parent of a recording.
func recordedSubject(recorded *recording.Recording, q *hook.Question) (*subject, error) {
	s := &subject{resources: newResources(nil), kind: q.Kind.Descriptor(), controller: q.Controller, parent: q.Parent,
		recorded: true}
	for _, r := range recorded.Resources() {
		s.resources.add(r)
	}
	if err := s.declare(true); err != nil {
		return nil, err
	}
	if s.parentResource.GVK.Empty() {
		s.parentResource.GVK, s.parentResource.Namespaced = q.Parent.GVK(), q.Parent.Namespace() != ""
	}
	return s, nil
}

// compare compares a reply with the recorded one.
func (r *Replayed) compare(q *hook.Question, recorded *recording.Recording, got *reply) {
	if recorded.Error != nil {
		r.RecordedError = recorded.Error.Kind + ": " + recorded.Error.Message
	}
	if got.answer == nil {
		r.Error = got.explain()
		r.Same = recorded.Error != nil // messages have ports and times
		return
	}
	before, err := recorded.Reply(q)
	if err != nil || before == nil {
		return // the recorded call has failed, and this one has not
	}
	again, err := recording.New(q, got.answer, nil) // with the same masks
	if err != nil {
		r.Error = "the answer is invalid: " + err.Error()
		return
	}
	after, err := again.Reply(q)
	if err != nil {
		r.Error = "the answer is invalid: " + err.Error()
		return
	}
	r.Differences = differences(q, before, after)
	r.Same = len(r.Differences) == 0
}

// explain is the reason why no answer came.
func (r *reply) explain() string {
	switch {
	case r.unreachable != "":
		return r.unreachable
	case r.timedOut:
		return "no answer in time"
	case r.failure != nil:
		return r.failure.String()
	case len(r.faults) > 0:
		return r.faults[0].got
	}
	return "no answer"
}

// Different counts the recordings whose answer differs.
func (r *ReplayReport) Different() int {
	different := 0
	for _, one := range r.Replayed {
		if !one.Same {
			different++
		}
	}
	return different
}

// WriteText writes the report for people: the differences of each answer by child.
func (r *ReplayReport) WriteText(w io.Writer) error {
	var b strings.Builder
	for _, one := range r.Replayed {
		mark := "✓"
		if !one.Same {
			mark = "✗"
		}
		fmt.Fprintf(&b, "%s %s of %s, recorded %s\n", mark, one.Operation, one.Parent, one.RecordedAt.Format(time.RFC3339))
		fmt.Fprintf(&b, "    %s\n", one.File)
		if one.RecordedError != "" {
			fmt.Fprintf(&b, "    recorded  %s\n", shortened(one.RecordedError))
		}
		if one.Error != "" {
			fmt.Fprintf(&b, "    now       %s\n", shortened(one.Error))
		} else if one.RecordedError != "" {
			fmt.Fprintf(&b, "    now       an answer\n")
		}
		one.writeDifferences(&b)
		if !one.Same && one.Masked > 0 {
			fmt.Fprintf(&b, "    %s of Secrets masked: an answer that is computed from one differs\n",
				count(one.Masked, "value"))
		}
	}
	fmt.Fprintf(&b, "%s, %d with another answer\n", count(len(r.Replayed), "recording"), r.Different())
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Replayed) writeDifferences(b *strings.Builder) {
	part := ""
	for _, d := range r.Differences {
		if d.Part != part {
			part = d.Part
			fmt.Fprintf(b, "    %s\n", printable(part))
		}
		where := d.Path
		if where == "" {
			where = "all of it"
		}
		if d.Before != nil {
			fmt.Fprintf(b, "      - %s: %s\n", printable(where), printable(valueText(d.Before)))
		}
		if d.After != nil {
			fmt.Fprintf(b, "      + %s: %s\n", printable(where), printable(valueText(d.After)))
		}
	}
}

// recorded is a question of a recording.
type recorded struct {
	name     string
	question *hook.Question
}

// loadRecordings reads the questions of Options.Recordings. Without a controller, the first one's
// is used.
func (s *subject) loadRecordings(names []string) error {
	if len(names) == 0 {
		return nil
	}
	files, err := recordings(names)
	if err != nil {
		return err
	}
	for _, name := range files {
		r, q, err := readRecording(name)
		if err != nil {
			return err
		}
		if q.Kind != s.kind.ControllerKind {
			return usagef("--recording: %s is of a %s controller, expected one of a %s", name, q.Kind, s.kind.ControllerKind)
		}
		for _, resource := range r.Resources() {
			if _, known := s.resources.byGVR[resource.GVR()]; !known {
				s.resources.add(resource)
			}
		}
		s.recordings = append(s.recordings, recorded{filepath.Base(name), q})
	}
	return nil
}

// recordedController returns the declaring object and the parent of the first recording.
func recordedController(names []string) (controller, parent *object.Object, resources []object.Resource, err error) {
	files, err := recordings(names)
	if err != nil {
		return nil, nil, nil, err
	}
	r, q, err := readRecording(files[0])
	if err != nil {
		return nil, nil, nil, err
	}
	return q.Controller, q.Parent, r.Resources(), nil
}

// askRecorded asks the recorded questions.
func (r *round) askRecorded() {
	for _, one := range r.subject.recordings {
		q := one.question
		if r.targets[q.Op] == nil {
			r.report.skip("%s: %s has no address; expected --hook %s=URL", one.name, q.Op, q.Op)
			continue
		}
		name := "the recording " + one.name
		got := r.put(name, q)
		if got.failure != nil && !got.failure.missing && got.unreachable == "" {
			r.found(ruleCallFailed, name, q, got.failure.String())
		}
		r.remember(name, q, got)
	}
}
