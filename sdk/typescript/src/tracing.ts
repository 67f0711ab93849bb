/**
 * Continues the engine's traces (W3C traceparent) if @opentelemetry/api is installed.
 *
 * The program configures exporters and the propagator, for example with NodeSDK of
 * @opentelemetry/sdk-node.
 */
const api = await load();

async function load(): Promise<typeof import("@opentelemetry/api") | undefined> {
  try {
    return await import("@opentelemetry/api");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_MODULE_NOT_FOUND") {
      return undefined;
    }
    throw error;
  }
}

/** Runs a call in a span. The carrier contains the trace context of the parent span. */
export async function traced<T>(name: string, carrier: object, run: () => Promise<T>): Promise<T> {
  if (!api) {
    return run();
  }
  const { context, propagation, SpanKind, SpanStatusCode, trace } = api;
  const parent = propagation.extract(context.active(), carrier);
  return trace.getTracer("hookloop").startActiveSpan(name, { kind: SpanKind.SERVER }, parent, async (span) => {
    try {
      return await run();
    } catch (error) {
      span.recordException(error as Error);
      span.setStatus({ code: SpanStatusCode.ERROR, message: String(error) });
      throw error;
    } finally {
      span.end();
    }
  });
}
