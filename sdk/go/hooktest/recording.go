package hooktest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	decoratorv1 "github.com/hookloop/hookloop/gen/hookloop/decorator/v1"
	"github.com/hookloop/hookloop/sdk/go/hook"
)

// recordingFormat is written into each file by "hookloop serve --record-dir".
const recordingFormat = "hookloop.dev/recording/v1"

// expectedFile ends messages about files that are no recordings.
const expectedFile = "expected a file of hookloop serve --record-dir"

// recording lists the fields of a recording that Replay needs.
type recording struct {
	Kind, Operation   string
	Children, Related []recordedGroup
	Question          struct {
		Controller, Parent, Object, Input json.RawMessage
		MapKey                            string
		Children, Attachments, Outputs    recordedObjects
		Related, Required                 recordedObjects
	}
}

type recordedGroup struct {
	APIVersion, Kind, Resource, Name, Error string
	Namespaced, NotFound                    bool
}

// recordedObjects holds objects by group and name.
type recordedObjects map[string]map[string]json.RawMessage

// Replay calls the hook with the request in a recording that "hookloop serve --record-dir" wrote,
// and checks the response as [Sync] does. h is a [hook.Composite], [hook.Decorator] or
// [hook.Mapper]. Replay returns an error if the file is not a recording of this version, or if it
// was recorded for another type of hook.
func Replay(ctx context.Context, h registrar, file string) (*Answer, error) {
	r, err := readRecording(file)
	if err != nil {
		return nil, err
	}
	answer, err := r.ask(ctx, h)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return answer, nil
}

func readRecording(file string) (*recording, error) {
	data, err := os.ReadFile(file) //nolint:gosec // the test names it
	if err != nil {
		return nil, fmt.Errorf("%w; %s", err, expectedFile)
	}
	var head struct{ Format any }
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("%s: is no recording: %w; %s", file, err, expectedFile)
	}
	if head.Format != recordingFormat {
		return nil, fmt.Errorf("%s: format: got %q, expected %q: record it again", file, fmt.Sprint(head.Format),
			recordingFormat)
	}
	r := &recording{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("%s: is no valid recording: %w", file, err)
	}
	return r, nil
}

func (r *recording) ask(ctx context.Context, h registrar) (*Answer, error) {
	q := &r.Question
	keys := r.declared()
	switch {
	case r.Kind == "map" && r.Operation != "customize":
		return r.askMap(ctx, h, keys)
	case r.Operation != "sync" && r.Operation != "finalize":
		return nil, fmt.Errorf("operation: got %q, expected sync, finalize, map or tombstone", r.Operation)
	}
	method := map[string]string{
		"composite sync":     compositev1.CompositeHookService_Sync_FullMethodName,
		"composite finalize": compositev1.CompositeHookService_Finalize_FullMethodName,
		"decorator sync":     decoratorv1.DecoratorHookService_Sync_FullMethodName,
		"decorator finalize": decoratorv1.DecoratorHookService_Finalize_FullMethodName,
	}[r.Kind+" "+r.Operation]
	parent := q.Parent
	children := q.Children
	if r.Kind == "decorator" {
		parent = q.Object
		children = q.Attachments
	}
	declared, err := declare(keys)
	if err != nil {
		return nil, err
	}
	request, err := hook.NewSyncRequest(parent, children.all(), slices.Collect(maps.Keys(declared))...)
	if err != nil {
		return nil, err
	}
	request.Finalizing = r.Operation == "finalize"
	request.Related, err = r.related(parent)
	if err != nil {
		return nil, err
	}
	declared, err = declaredBy(request.Children, keys)
	if err != nil {
		return nil, err
	}
	return ask(ctx, h, method, request, declared)
}

func (r *recording) askMap(ctx context.Context, h registrar, keys []string) (*Answer, error) {
	q := &r.Question
	mapper, ok := h.(hook.Mapper)
	if !ok {
		return nil, fmt.Errorf("kind: got map, expected the kind of a %T", h)
	}
	declared, err := declare(keys)
	if err != nil {
		return nil, err
	}
	var input any
	if len(q.Input) > 0 {
		input = q.Input
	}
	kinds := slices.Collect(maps.Keys(declared))
	related, err := r.related(q.Parent)
	if err != nil {
		return nil, err
	}
	if r.Operation == "tombstone" {
		request, err := hook.NewTombstoneRequest(q.Parent, q.Outputs.all(), kinds...)
		if err != nil {
			return nil, err
		}
		request.MapKey = q.MapKey
		request.Related = related
		return askTombstone(ctx, mapper.Tombstone, request, keys)
	}
	request, err := hook.NewMapRequest(q.Parent, input, q.Outputs.all(), kinds...)
	if err != nil {
		return nil, err
	}
	request.MapKey = q.MapKey
	request.Related = related
	request.Finalizing = r.Operation == "finalize"
	declared, err = declaredBy(request.Outputs, keys)
	if err != nil {
		return nil, err
	}
	return askMap(ctx, mapper, request, declared)
}

// declared lists the recorded kinds as Sync expects them.
func (r *recording) declared() []string {
	var keys []string
	for _, g := range r.Children {
		key := g.Kind + "." + g.APIVersion
		if !g.Namespaced {
			key += ":Cluster"
		}
		keys = append(keys, key)
	}
	return keys
}

// related returns the recorded groups of related objects.
func (r *recording) related(parent json.RawMessage) (map[string]hook.RelatedGroup, error) {
	all := map[string]hook.RelatedGroup{}
	for _, g := range r.Related {
		kind := g.Kind + "." + g.APIVersion
		name := g.Resource + "." + g.APIVersion
		objects := r.Question.Related[kind]
		if g.Name != "" {
			name = g.Name
			objects = r.Question.Required[g.Name]
		}
		decoded, err := hook.NewSyncRequest(parent, recordedObjects{kind: objects}.all(), kind)
		if err != nil {
			return nil, fmt.Errorf("related objects %q: %w", name, err)
		}
		group := hook.RelatedGroup{Kind: g.Kind, Objects: decoded.Children[kind]}
		switch {
		case g.NotFound:
			group.Err = hook.ErrNotServed
		case g.Error != "":
			group.Err = errors.New(g.Error)
		}
		all[name] = group
	}
	return all, nil
}

// all returns the objects in a fixed order.
func (o recordedObjects) all() []any {
	var all []any
	for _, kind := range slices.Sorted(maps.Keys(o)) {
		for _, name := range slices.Sorted(maps.Keys(o[kind])) {
			all = append(all, o[kind][name])
		}
	}
	return all
}
