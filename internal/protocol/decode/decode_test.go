package decode

import (
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"

	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	decoratorv1 "github.com/hookloop/hookloop/gen/hookloop/decorator/v1"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"
)

// messages calls a function with each message of the contract.
func messages(t *testing.T, each func(protoreflect.MessageDescriptor)) {
	t.Helper()
	n := 0
	for _, file := range []protoreflect.FileDescriptor{
		compositev1.File_hookloop_composite_v1_composite_proto, decoratorv1.File_hookloop_decorator_v1_decorator_proto,
		hookv1.File_hookloop_hook_v1_desired_proto, hookv1.File_hookloop_hook_v1_observed_proto,
		hookv1.File_hookloop_hook_v1_related_proto, hookv1.File_hookloop_hook_v1_response_proto,
		streamv1.File_hookloop_stream_v1_gateway_proto, streamv1.File_hookloop_stream_v1_stream_proto,
	} {
		for i := range file.Messages().Len() {
			each(file.Messages().Get(i))
			n++
		}
	}
	if n < 30 {
		t.Fatalf("there are %d messages, expected those of all files", n)
	}
}

// element is the smallest element of a repeated field on the wire.
func element(f protoreflect.FieldDescriptor) []byte {
	if f.Kind() == protoreflect.MessageKind || f.Kind() == protoreflect.StringKind || f.Kind() == protoreflect.BytesKind {
		return protowire.AppendBytes(protowire.AppendTag(nil, f.Number(), protowire.BytesType), nil)
	}
	return protowire.AppendVarint(protowire.AppendTag(nil, f.Number(), protowire.VarintType), 1)
}

// allocated is how many bytes a function allocates.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestBombs fills each repeated field of each message with empty elements: refused over the limit,
// for next to no memory, and within it the estimate is no less than half of the allocated bytes
// (slices leave their smaller arrays to the collector).
func TestBombs(t *testing.T) {
	const elements = 100_000
	repeated := 0
	messages(t, func(d protoreflect.MessageDescriptor) {
		for i := range d.Fields().Len() {
			f := d.Fields().Get(i)
			if f.Cardinality() != protoreflect.Repeated {
				continue
			}
			repeated++
			one := element(f)
			bomb := []byte(strings.Repeat(string(one), elements))
			m := newMessage(t, d)
			var err error
			took := allocated(func() { err = Unmarshal(bomb, m, Limits{Memory: 1 << 20}) })
			var limit *LimitError
			if !errors.As(err, &limit) || took > 64<<10 {
				t.Errorf("%s: %v for %d bytes, expected a LimitError before it is built", f.FullName(), err, took)
			}
			err = Unmarshal(bomb, m,
				Limits{Memory: math.MaxUint64, Elements: map[protoreflect.FullName]int{f.FullName(): elements - 1}})
			if !errors.As(err, &limit) || limit.Field != f.FullName() {
				t.Errorf("%s: %v, expected a LimitError that names the field", f.FullName(), err)
			}
			estimate, err := Estimate(bomb, d, Limits{Memory: math.MaxUint64})
			if err != nil {
				t.Fatal(err)
			}
			built := allocated(func() { err = proto.Unmarshal(bomb, m) })
			if err != nil || f.IsList() && built > 2*estimate {
				t.Errorf("%s: the estimate is %d bytes, %d were allocated: %v", f.FullName(), estimate, built, err)
			}
		}
	})
	if repeated < 20 {
		t.Errorf("%d repeated fields, expected those of all messages", repeated)
	}
}

func newMessage(t *testing.T, d protoreflect.MessageDescriptor) proto.Message {
	t.Helper()
	kind, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		t.Fatal(err)
	}
	return kind.New().Interface()
}

// TestNested counts the fields of messages inside the message, packed numbers one by one, and a
// singular message each time.
func TestNested(t *testing.T) {
	many := make([]*hookv1.Dependency, 1000)
	for i := range many {
		many[i] = &hookv1.Dependency{}
	}
	children := []*hookv1.DesiredObject{{DependsOn: many[:500]}, {DependsOn: many[500:]}}
	data, err := proto.Marshal(&compositev1.SyncResponse{Children: children})
	if err != nil {
		t.Fatal(err)
	}
	limits := Limits{
		Memory:   1 << 30,
		Elements: map[protoreflect.FullName]int{"hookloop.hook.v1.DesiredObject.depends_on": 999},
	}
	var limit *LimitError
	err = Unmarshal(data, &compositev1.SyncResponse{}, limits)
	if !errors.As(err, &limit) || limit.Field != "hookloop.hook.v1.DesiredObject.depends_on" {
		t.Errorf("%v, expected a limit on depends_on", err)
	}
	hello, err := proto.Marshal(&streamv1.Hello{Versions: make([]uint32, 1000)})
	if err != nil {
		t.Fatal(err)
	}
	limits = Limits{Memory: 1 << 30, Elements: map[protoreflect.FullName]int{"hookloop.stream.v1.Hello.versions": 999}}
	if err := Unmarshal(hello, &streamv1.Hello{}, limits); !errors.As(err, &limit) {
		t.Errorf("%v, expected a limit on versions", err)
	}
	window := []byte(strings.Repeat("\x22\x00", 100_000)) // Welcome.window
	if err := Unmarshal(window, &streamv1.Welcome{}, Limits{Memory: 1 << 20}); !errors.As(err, &limit) {
		t.Errorf("%v, expected a limit on a message that occurs again and again", err)
	}
}

// FuzzUnmarshal accepts what protobuf accepts, if nothing is limited.
func FuzzUnmarshal(f *testing.F) {
	f.Add([]byte("\x0a\x04\x0a\x00\x12\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		d := (&streamv1.HookMessage{}).ProtoReflect().Descriptor()
		want := proto.Unmarshal(data, dynamicpb.NewMessage(d))
		got := Unmarshal(data, &streamv1.HookMessage{}, Limits{Memory: math.MaxUint64})
		if (got == nil) != (want == nil) {
			t.Errorf("%v, expected %v", got, want)
		}
	})
}
