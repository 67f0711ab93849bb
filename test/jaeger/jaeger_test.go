package jaeger_test

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	reading "github.com/hookloop/hookloop/internal/jaeger"
	"github.com/hookloop/hookloop/test/jaeger"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

var update = flag.Bool("update", false, "rewrite testdata/tree.txt")

const traceID = "0102030405060708090a0b0c0d0e0f10"

// TestTraceThroughJaeger exports the trace of one sync: a question to a hook in another process and
// two writes, one of which fails. The sync's own parent is a span that is not exported, and the
// sync links to another trace.
func TestTraceThroughJaeger(t *testing.T) {
	j := jaeger.Start(t)
	sendStory(t, j)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got, err := j.Await(ctx, traceID, func(tr *reading.Trace) bool { return len(tr.Spans) == 6 })
	if err != nil {
		t.Fatal(err)
	}
	t.Run("is drawn as a tree", func(t *testing.T) { checkGolden(t, reading.Tree(got)) })
	t.Run("has the services", func(t *testing.T) {
		if diff := cmp.Diff([]string{"hello-hook", "hookloop"}, got.Services()); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("has spans with parents, links and attributes", func(t *testing.T) {
		sync := got.Named("sync")[0]
		ask := got.Named("ask")[0]
		served := got.Named("Sync")[0]
		if ask.Parent != sync.ID || served.Parent != ask.ID || sync.Parent != "00000000000000aa" {
			t.Errorf("parents: sync %s, ask %s, Sync %s", sync.Parent, ask.Parent, served.Parent)
		}
		want := []reading.Link{{TraceID: "b000000000000000000000000000000b", SpanID: "00000000000000bb"}}
		if diff := cmp.Diff(want, sync.Links); diff != "" {
			t.Error(diff)
		}
		if sync.Tags["hookloop.causes"] != `["user HelloWorld a/b @1"]` || ask.Tags["span.kind"] != "client" {
			t.Errorf("tags: %v, %v", sync.Tags, ask.Tags)
		}
		if !got.Named("write")[1].Failed() || ask.Failed() {
			t.Error("the second write failed, and nothing else")
		}
	})
	t.Run("is found by its attributes", func(t *testing.T) { checkFind(t, j) })
}

func checkFind(t *testing.T, j *jaeger.Jaeger) {
	for _, c := range []struct {
		name   string
		search reading.Search
		want   int
	}{
		{"service", reading.Search{Service: "hookloop"}, 1},
		{"service and operation", reading.Search{Service: "hookloop", Operation: "sync"}, 1},
		{"tags", reading.Search{Service: "hookloop", Tags: map[string]string{"hookloop.write.verb": "create"}}, 1},
		{"another tag", reading.Search{Service: "hookloop", Tags: map[string]string{"hookloop.write.verb": "delete"}}, 0},
		{"another service", reading.Search{Service: "nobody"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			found, err := j.Find(t.Context(), c.search)
			if err != nil {
				t.Fatal(err)
			}
			if len(found) != c.want {
				t.Fatalf("found %d traces, want %d", len(found), c.want)
			}
			if c.want == 1 && found[0].ID != traceID {
				t.Errorf("found trace %s, want %s", found[0].ID, traceID)
			}
		})
	}
}

func TestUnknownTrace(t *testing.T) {
	j := jaeger.Start(t)
	if _, err := j.Trace(t.Context(), "ffffffffffffffffffffffffffffffff"); !errors.Is(err, reading.ErrNotFound) {
		t.Errorf("error %v, want ErrNotFound", err)
	}
	if _, err := j.Trace(t.Context(), "no id"); err == nil || errors.Is(err, reading.ErrNotFound) {
		t.Errorf("error %v, want one about an invalid id", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := j.Await(ctx, traceID, func(*reading.Trace) bool { return false }); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}

func TestRestartForgets(t *testing.T) {
	j, err := jaeger.New(t.Context(), jaeger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := j.Stop(); err != nil {
			t.Error(err)
		}
	}()
	sendStory(t, j)
	if err := j.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Trace(t.Context(), traceID); !errors.Is(err, reading.ErrNotFound) {
		t.Errorf("error %v, want ErrNotFound", err)
	}
}

func TestMissingProgram(t *testing.T) {
	_, err := jaeger.New(t.Context(), jaeger.Options{Program: "/nowhere/jaeger"})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want one about the missing program", err)
	}
}

// sendStory exports the spans of TestTraceThroughJaeger, with fixed times.
func sendStory(t *testing.T, j *jaeger.Jaeger) {
	engine := tracer(t, j, "hookloop", 0x10)
	hook := tracer(t, j, "hello-hook", 0x20)
	ctx := trace.ContextWithRemoteSpanContext(t.Context(), spanContext(t, traceID, 0xaa))
	causes := attribute.StringSlice("hookloop.causes", []string{"user HelloWorld a/b @1"})
	elsewhere := trace.WithLinks(trace.Link{SpanContext: spanContext(t, "b000000000000000000000000000000b", 0xbb)})
	sync, endSync := span(ctx, engine, "sync", 0, 21_500, elsewhere,
		trace.WithAttributes(causes, attribute.Int("hookloop.writes", 1)))
	_, endObserve := span(sync, engine, "observe", 100, 300)
	endObserve(nil)
	ask, endAsk := span(sync, engine, "ask", 1_000, 9_000, trace.WithSpanKind(trace.SpanKindClient))
	_, endServed := span(ask, hook, "Sync", 1_700, 6_000, trace.WithSpanKind(trace.SpanKindServer))
	endServed(nil)
	endAsk(nil)
	create := attribute.String("hookloop.write.verb", "create")
	_, endWrite := span(sync, engine, "write", 11_000, 4_000,
		trace.WithAttributes(create, attribute.String("hookloop.write.name", "one")))
	endWrite(nil)
	_, endRefused := span(sync, engine, "write", 15_500, 5_250,
		trace.WithAttributes(create, attribute.String("error.type", "Forbidden")))
	endRefused(errors.New("not allowed"))
	endSync(nil)
}

// span starts a span that many microseconds after the start of the trace; the returned function
// ends it.
func span(
	ctx context.Context, tr trace.Tracer, name string, after, length int, options ...trace.SpanStartOption,
) (context.Context, func(error)) {
	start := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC).Add(time.Duration(after) * time.Microsecond)
	ctx, s := tr.Start(ctx, name, append(options, trace.WithTimestamp(start))...)
	return ctx, func(err error) {
		if err != nil {
			s.SetStatus(codes.Error, err.Error())
		}
		s.End(trace.WithTimestamp(start.Add(time.Duration(length) * time.Microsecond)))
	}
}

func tracer(t *testing.T, j *jaeger.Jaeger, service string, firstID uint64) trace.Tracer {
	exporter, err := otlptracegrpc.New(t.Context(), otlptracegrpc.WithEndpointURL(j.OTLP()))
	if err != nil {
		t.Fatal(err)
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithSyncer(exporter), sdktrace.WithIDGenerator(&counter{firstID}),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", service))),
	)
	t.Cleanup(func() {
		if err := provider.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return provider.Tracer("test")
}

// counter numbers spans, so that their ids are the same each time.
type counter struct{ next uint64 }

func (c *counter) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	return trace.TraceID{}, c.NewSpanID(ctx, trace.TraceID{})
}

func (c *counter) NewSpanID(context.Context, trace.TraceID) trace.SpanID {
	c.next++
	return spanID(c.next)
}

func spanID(n uint64) (id trace.SpanID) {
	binary.BigEndian.PutUint64(id[:], n)
	return id
}

func spanContext(t *testing.T, id string, span uint64) trace.SpanContext {
	parsed, err := trace.TraceIDFromHex(id)
	if err != nil {
		t.Fatal(err)
	}
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: parsed, SpanID: spanID(span), TraceFlags: trace.FlagsSampled, Remote: true,
	})
}

func checkGolden(t *testing.T, got string) {
	const file = "testdata/tree.txt"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
}
