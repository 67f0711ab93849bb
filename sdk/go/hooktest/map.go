package hooktest

import (
	"context"
	"fmt"
	"slices"

	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	mapv1 "github.com/hookloop/hookloop/gen/hookloop/map/v1"
	"github.com/hookloop/hookloop/sdk/go/hook"
	"google.golang.org/protobuf/proto"
)

// Map calls a map hook's function for the objects in a file and checks the response, as [Sync]
// does. The first document is the parent, the second one the input; the others are the observed
// outputs.
func Map(ctx context.Context, f hook.MapFunc, file string, kinds ...string) (*Answer, error) {
	request, declared, err := readMap(file, kinds)
	if err != nil {
		return nil, err
	}
	return askMap(ctx, hook.Mapper{Map: f}, request, declared)
}

// FinalizeMap does what [Map] does, for a parent that is being deleted or is no longer selected.
func FinalizeMap(ctx context.Context, f hook.MapFunc, file string, kinds ...string) (*Answer, error) {
	request, declared, err := readMap(file, kinds)
	if err != nil {
		return nil, err
	}
	request.Finalizing = true
	return askMap(ctx, hook.Mapper{Finalize: f}, request, declared)
}

// Tombstone calls a tombstone function for the objects in a file and checks the response. The first
// document is the parent; the others are the outputs whose input is gone. [Answer].Children lists
// the outputs to keep.
func Tombstone(ctx context.Context, f hook.TombstoneFunc, file string, kinds ...string) (*Answer, error) {
	objects, err := load(file)
	if err != nil {
		return nil, err
	}
	request, err := hook.NewTombstoneRequest(objects[0], objects[1:], kinds...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return askTombstone(ctx, f, request, kinds)
}

// CheckMap checks a response to a request that [hook.NewMapRequest] made. See [Check] for kinds.
func CheckMap(request *hook.MapRequest, response *hook.MapResponse, kinds ...string) (*Answer, error) {
	declared, err := declaredBy(request.Outputs, kinds)
	if err != nil {
		return nil, err
	}
	same := func(context.Context, *hook.MapRequest) (*hook.MapResponse, error) { return response, nil }
	return askMap(context.Background(), hook.Mapper{Map: same, Finalize: same}, request, declared)
}

// CheckTombstone checks a response to a request that [hook.NewTombstoneRequest] made. See [Check]
// for kinds.
func CheckTombstone(
	request *hook.TombstoneRequest, response *hook.TombstoneResponse, kinds ...string,
) (*Answer, error) {
	same := func(context.Context, *hook.TombstoneRequest) (*hook.TombstoneResponse, error) { return response, nil }
	return askTombstone(context.Background(), same, request, kinds)
}

// readMap makes a map request from a file, and returns it with the declared kinds.
func readMap(file string, keys []string) (*hook.MapRequest, kinds, error) {
	objects, err := load(file)
	if err != nil {
		return nil, nil, err
	}
	if len(objects) < 2 {
		return nil, nil, fmt.Errorf("%s: has one object, expected the parent and the input", file)
	}
	request, err := hook.NewMapRequest(objects[0], objects[1], objects[2:], keys...)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	declared, err := declaredBy(request.Outputs, keys)
	return request, declared, err
}

// askMap calls the function and checks the response.
func askMap(ctx context.Context, h hook.Mapper, request *hook.MapRequest, declared kinds) (*Answer, error) {
	controller := encodeController(request.Controller)
	parent := encodeObject(request.Parent)
	outputs := encodeGroups(request.Outputs)
	related := encodeRelated(request.Related)
	var input *hookv1.ObservedObject
	if request.Input.Name != "" {
		input = encodeObject(request.Input)
	}
	method := mapv1.MapHookService_Map_FullMethodName
	var message proto.Message = &mapv1.MapRequest{
		Controller: controller, Parent: parent, MapKey: request.MapKey, Input: input, Outputs: outputs, Related: related,
	}
	if request.Finalizing {
		method = mapv1.MapHookService_Finalize_FullMethodName
		message = &mapv1.FinalizeRequest{
			Controller: controller, Parent: parent, MapKey: request.MapKey, Input: input, Outputs: outputs, Related: related,
		}
	}
	v := &validator{
		namespace: request.Parent.Namespace, declared: declared, controller: request.Controller.Name,
		mapKey: request.MapKey,
	}
	return v.ask(ctx, h, method, message)
}

// askTombstone calls the function and checks the response.
func askTombstone(
	ctx context.Context, f hook.TombstoneFunc, request *hook.TombstoneRequest, keys []string,
) (*Answer, error) {
	declared, err := declaredBy(request.Outputs, keys)
	if err != nil {
		return nil, err
	}
	v := &validator{
		namespace: request.Parent.Namespace, declared: declared, controller: request.Controller.Name,
		mapKey: request.MapKey, kept: refsOf(request),
	}
	return v.ask(ctx, hook.Mapper{Tombstone: f}, mapv1.MapHookService_Tombstone_FullMethodName, &mapv1.TombstoneRequest{
		Controller: encodeController(request.Controller), Parent: encodeObject(request.Parent), MapKey: request.MapKey,
		Outputs: encodeGroups(request.Outputs), Related: encodeRelated(request.Related),
	})
}

// refsOf lists the observed outputs in a tombstone request.
func refsOf(request *hook.TombstoneRequest) map[ref]bool {
	observed := map[ref]bool{}
	for kind, group := range request.Outputs {
		for _, o := range group {
			observed[ref{kind: kind, namespace: o.Namespace, name: o.Name}] = true
		}
	}
	return observed
}

// checkKept checks that the outputs to keep are in the request.
func (v *validator) checkKept(refs []ref) error {
	for i, r := range refs {
		if v.kept != nil && !v.kept[r] {
			return fmt.Errorf("%s[%d] %s: does not exist; expected some of the outputs of the request: %s",
				v.field, i, r, v.observed())
		}
	}
	return nil
}

// observed lists the outputs in a tombstone request for a message.
func (v *validator) observed() string {
	names := make([]string, 0, len(v.kept))
	for r := range v.kept {
		names = append(names, r.String())
	}
	slices.Sort(names)
	const most = 10
	if len(names) > most {
		names = append(names[:most], fmt.Sprintf("and %d more", len(names)-most))
	}
	return fmt.Sprint(names)
}
