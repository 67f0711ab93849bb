# Makes a span of each call, below the engine's span, and exports it over OTLP to OTEL_EXPORTER_OTLP_ENDPOINT.
# A program with OpenTelemetry's gem uses that instead.
require 'opentelemetry/proto/collector/trace/v1/trace_service_services_pb'

class Trace < GRPC::ServerInterceptor
  include Opentelemetry::Proto::Collector::Trace::V1

  # LIMIT is the number of spans that wait for their export. Further ones are dropped.
  LIMIT = 1000

  def initialize
    super
    endpoint = ENV['OTEL_EXPORTER_OTLP_ENDPOINT'] or return
    stub = TraceService::Stub.new(endpoint.delete_prefix('http://'), :this_channel_is_insecure, timeout: 5)
    @waiting = SizedQueue.new(LIMIT)
    @exporter = Thread.new { export(stub, @waiting.pop) while true }
  end

  def request_response(request:, call:, method:)
    # traceparent is version-trace-span-flags in hexadecimal digits; bit 0 of the flags: the trace is recorded.
    _, trace, parent, flags = call.metadata['traceparent'].to_s.split('-')
    return yield unless @waiting && flags.to_s.to_i(16).odd?

    span = Span.new(trace_id: [trace].pack('H*'), parent_span_id: [parent].pack('H*'), span_id: Random.bytes(8),
                    name: "#{method.owner.service_name}/#{method.name.capitalize}", kind: 2, start_time_unix_nano: now)
    begin
      yield
    rescue StandardError => e
      span.status = SpanStatus.new(code: 2, message: e.message)
      raise
    ensure
      span.end_time_unix_nano = now
      keep(span)
    end
  end

  private

  def now = Process.clock_gettime(Process::CLOCK_REALTIME, :nanosecond)

  def keep(span)
    @waiting.push(span, true)
  rescue ThreadError
    warn "a span was dropped: #{LIMIT} wait for their export"
  end

  def export(stub, span)
    name = AnyValue.new(string_value: ENV.fetch('OTEL_SERVICE_NAME', 'website'))
    stub.export(ExportTraceServiceRequest.new(resource_spans: [ResourceSpans.new(
      resource: Resource.new(attributes: [KeyValue.new(key: 'service.name', value: name)]),
      scope_spans: [ScopeSpans.new(spans: [span])])]))
  rescue GRPC::BadStatus => e
    warn "a span was not exported: #{e.message}"
  end
end
