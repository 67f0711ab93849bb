// Package inproc calls hooks that are Go functions of the same process. It is for programs that
// embed the engine, which do not use it directly but give their hooks to the server:
//
//	config := server.DefaultConfig()
//	config.Hooks = map[string]server.Hook{"hello": hook.Composite{Sync: sync}}
//	err := server.Run(ctx, config)
//
// A controller refers to a hook by its name:
//
//	hooks:
//	  sync:
//	    inproc: {name: hello}
//
// A hook registers gRPC services of the contract, as the types of the Go SDK do, so that neither
// side has to import the other. Its functions must not change a question: the messages share the
// bytes of the engine's cache. Answers are checked and limited as if they came over a network, and a
// panic fails only its question.
package inproc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/internal/budget"
	"github.com/hookloop/hookloop/transports/codec"
	"github.com/hookloop/hookloop/transports/internal/endpoint"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// Hook registers the services of the contract that it serves. The types Composite, Decorator and
// Mapper of the Go SDK implement it.
type Hook interface {
	Register(r grpc.ServiceRegistrar)
}

// Transport opens hooks by the names under which [New] has registered them. It is safe for
// concurrent use.
type Transport struct {
	// Build is the engine's build.
	Build string

	hooks  map[string]*functions
	memory *budget.Budget
}

// New registers hooks by name. Their answers count in memory, the budget of the process; nil sets no
// limit. The error names a hook without a name or without functions.
func New(hooks map[string]Hook, memory *budget.Budget) (*Transport, error) {
	t := &Transport{hooks: make(map[string]*functions, len(hooks)), memory: memory}
	for _, name := range slices.Sorted(maps.Keys(hooks)) {
		if name == "" || hooks[name] == nil {
			return nil, fmt.Errorf("hook %q: expected a name and a hook", name)
		}
		f := newFunctions()
		hooks[name].Register(f)
		if len(f.methods) == 0 {
			return nil, fmt.Errorf("hook %q: has no function, expected one of a hook service", name)
		}
		t.hooks[name] = f
	}
	return t, nil
}

// Open returns the hook that the spec's field inproc names: {"name": "hello", "timeout": "10s"}. It
// is a [hook.Opener]. The error names the wrong field, and lists the registered names.
func (t *Transport) Open(s hook.Config) (*hook.Opened, error) {
	var field struct {
		Name    string `json:"name"`
		Timeout string `json:"timeout"`
	}
	if err := json.Unmarshal(s.Field, &field); err != nil {
		return nil, err
	}
	timeout, err := endpoint.Timeout(field.Timeout)
	if err != nil {
		return nil, err
	}
	f, err := t.find(field.Name, s)
	if err != nil {
		return nil, err
	}
	if s.Observer != nil {
		s.Observer.Serves(f.operations(s.Kind))
	}
	address := "inproc:" + field.Name
	c := &client{
		name:      string(s.Op) + " " + address,
		timeout:   timeout,
		version:   t.Build,
		functions: f,
		memory:    t.memory.Share(budget.Decoding),
	}
	return &hook.Opened{Hook: c, Address: address, Timeout: timeout}, nil
}

// find returns the named hook, if it implements an operation of the controller's kind.
func (t *Transport) find(name string, s hook.Config) (*functions, error) {
	f := t.hooks[name]
	switch {
	case name == "":
		return nil, errors.New("name: is missing; expected the name of a registered hook")
	case f == nil && len(t.hooks) == 0:
		return nil, fmt.Errorf(
			"name: %q is not registered: this program has no hooks of its own; expected a program that embeds the engine",
			name)
	case f == nil:
		return nil, fmt.Errorf("name: %q is not registered in this program; expected one of %s", name,
			quoted(slices.Sorted(maps.Keys(t.hooks))))
	}
	if s.Kind != "" && len(f.operations(s.Kind)) == 0 {
		return nil, fmt.Errorf("name: %q has no function for a %s; it is a hook of another kind of controller",
			name, s.ControllerKind)
	}
	return f, nil
}

// quoted formats names for a message.
func quoted(names []string) string {
	out := make([]string, 0, len(names))
	for _, name := range names {
		out = append(out, fmt.Sprintf("%q", name))
	}
	return strings.Join(out, ", ")
}

// client calls one hook.
type client struct {
	name      string // of the hook, in messages
	timeout   time.Duration
	version   string // of the engine
	functions *functions
	memory    *budget.Share // for answers; nil means no limit
}

// Ask calls the function. A function that misses its deadline is abandoned, and keeps its slot
// until it returns.
func (c *client) Ask(ctx context.Context, q *hook.Question) (*hook.Answer, error) {
	timeoutCtx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	call := codec.New(q, codec.Meta(c.version, ""))
	response, err := c.functions.call(timeoutCtx, codec.Method(q.Kind, q.Op), call.Request)
	if err != nil {
		err = codec.Failure(c.name, q, c.timeout, status.Convert(err))
	}
	var answer *hook.Answer
	if err == nil {
		answer, err = c.read(timeoutCtx, response, call.Response)
	}
	switch {
	case err == nil:
		return answer, nil
	case errors.Is(ctx.Err(), context.Canceled):
		return nil, ctx.Err()
	default:
		return nil, err
	}
}

// read validates and copies a response as if it came over a network, so that a function may reuse
// its own.
func (c *client) read(ctx context.Context, response any, target proto.Message) (*hook.Answer, error) {
	message, ok := response.(proto.Message)
	if !ok || !message.ProtoReflect().IsValid() {
		return nil, c.invalid(errors.New("got neither an answer nor an error, expected one of them"))
	}
	size := proto.Size(message)
	if size > codec.MaxMessageBytes {
		return nil, c.invalid(fmt.Errorf("the answer has %d bytes, which is larger than %d", size, codec.MaxMessageBytes))
	}
	lease, err := c.memory.Lease(ctx, int64(2*size), hook.Holds(ctx))
	if err != nil {
		return nil, c.readError(err)
	}
	answer, err := c.build(message, target, lease)
	if err != nil {
		lease.Release()
		return nil, c.readError(err)
	}
	hook.Hold(ctx, lease.Release)
	return answer, nil
}

func (c *client) build(message, target proto.Message, lease *budget.Lease) (*hook.Answer, error) {
	data, err := proto.Marshal(message)
	if err != nil {
		return nil, err
	}
	if err := (&codec.Raw{Data: data}).Build(target, lease, c.memory.MessageLimit()); err != nil {
		return nil, err
	}
	return codec.Answer(target)
}

// readError returns the error for a response that cannot be read: memory is exhausted, or it is
// invalid.
func (c *client) readError(err error) error {
	if failure := codec.Unaffordable(c.name, err); failure != nil {
		return failure
	}
	return c.invalid(err)
}

func (c *client) invalid(err error) error {
	return &hook.Error{Kind: hook.Invalid, Hook: c.name, Err: err}
}
