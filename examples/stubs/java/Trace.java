// Makes a span of each call, below the engine's span, and exports it over OTLP to OTEL_EXPORTER_OTLP_ENDPOINT. A
// program with OpenTelemetry's library uses that instead.
package website;

import com.google.protobuf.ByteString;
import com.opentelemetry.proto.collector.trace.v1.*;
import io.grpc.*;
import java.time.Instant;
import java.util.*;
import java.util.concurrent.*;

final class Trace implements ServerInterceptor {
  private static final Metadata.Key<String> TRACEPARENT =
      Metadata.Key.of("traceparent", Metadata.ASCII_STRING_MARSHALLER);
  private static final int LIMIT = 1000; // spans that wait for their export; further ones are dropped
  private final String endpoint = System.getenv("OTEL_EXPORTER_OTLP_ENDPOINT");
  private final String service = Optional.ofNullable(System.getenv("OTEL_SERVICE_NAME")).orElse("website");
  private final Executor exporter = new ThreadPoolExecutor(0, 1, 1, TimeUnit.SECONDS, new ArrayBlockingQueue<>(LIMIT),
      task -> { var thread = new Thread(task); thread.setDaemon(true); return thread; },
      (task, full) -> System.err.println("a span was dropped: " + LIMIT + " wait for their export"));
  private TraceServiceGrpc.TraceServiceBlockingStub stub;

  Trace() {
    if (endpoint != null && !endpoint.isEmpty())
      stub = TraceServiceGrpc.newBlockingStub(
          ManagedChannelBuilder.forTarget(endpoint.replace("http://", "")).usePlaintext().build());
  }

  @Override public <Q, R> ServerCall.Listener<Q> interceptCall(
      ServerCall<Q, R> call, Metadata headers, ServerCallHandler<Q, R> next) {
    // traceparent is version-trace-span-flags in hexadecimal digits; bit 0 of the flags: the trace is recorded.
    var parts = Optional.ofNullable(headers.get(TRACEPARENT)).orElse("").split("-");
    if (stub == null || parts.length < 4 || (Integer.parseInt(parts[3], 16) & 1) == 0)
      return next.startCall(call, headers);
    var id = new byte[8];
    ThreadLocalRandom.current().nextBytes(id);
    var span = Span.newBuilder().setTraceId(bytes(parts[1])).setParentSpanId(bytes(parts[2]))
        .setSpanId(ByteString.copyFrom(id)).setName(call.getMethodDescriptor().getFullMethodName()).setKind(2)
        .setStartTimeUnixNano(now());
    return next.startCall(new ForwardingServerCall.SimpleForwardingServerCall<Q, R>(call) {
      @Override public void close(Status status, Metadata trailers) {
        super.close(status, trailers);
        if (!status.isOk()) span.setStatus(SpanStatus.newBuilder().setCode(2).setMessage(status.toString()));
        exporter.execute(() -> export(span.setEndTimeUnixNano(now()).build()));
      }
    }, headers);
  }

  private static ByteString bytes(String digits) { return ByteString.copyFrom(HexFormat.of().parseHex(digits)); }

  private static long now() {
    var now = Instant.now();
    return TimeUnit.SECONDS.toNanos(now.getEpochSecond()) + now.getNano();
  }

  private void export(Span span) {
    var name = KeyValue.newBuilder().setKey("service.name").setValue(AnyValue.newBuilder().setStringValue(service));
    var spans = ResourceSpans.newBuilder().setResource(Resource.newBuilder().addAttributes(name))
        .addScopeSpans(ScopeSpans.newBuilder().addSpans(span));
    var request = ExportTraceServiceRequest.newBuilder().addResourceSpans(spans).build();
    try {
      stub.withDeadlineAfter(5, TimeUnit.SECONDS).export(request);
    } catch (StatusRuntimeException e) {
      System.err.println("a span was not exported: " + e.getStatus());
    }
  }
}
