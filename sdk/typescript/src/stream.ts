/**
 * Handles a stream between the engine and hooks: it calls functions, watches timeouts, and sends
 * triggers.
 */
import { status as Code } from "@grpc/grpc-js";
import type { Catalog } from "./catalog.js";
import { callHook, parentOf } from "./codec.js";
import { limiterOf } from "./limiter.js";
import { ProtocolError, VersionMismatch } from "./session/error.js";
import { HookSession, type HookCall, type Received, type SessionSettings } from "./session/hook.js";
import type { SessionState, SessionStates } from "./session/state.js";
import { logCancelled, logFailure, statusOf, streamStatus, type Failure } from "./status.js";
import { traced } from "./tracing.js";
import { Triggers, type Trigger } from "./trigger.js";

/** How many milliseconds a stream stays open after the hook's Drain, for calls in transit. */
const DRAIN_TIMEOUT = 1000;
/** The longest delay that a timer in Node.js can have, in milliseconds. */
const MAX_TIMER = 2 ** 31 - 1;

/** The status for a stream after the engine has resumed its session on another one. */
const RESUMED: Failure = { code: Code.ABORTED, message: "the engine has resumed the session on another stream" };

/** What a stream needs from its connection. */
export interface Transport {
  send(message: Uint8Array): void;
  /** Ends the stream. If there is a failure, it says why. */
  end(failure?: Failure): void;
}

/** Handles the hook's side of one stream. */
export class HookStream {
  readonly #catalog: Catalog;
  readonly #states: SessionStates;
  readonly #transport: Transport;
  readonly #protocol: HookSession;
  readonly #running = new Map<bigint, AbortController>();
  readonly #triggers = new Triggers();
  #session: { readonly id: string; readonly state: SessionState } | undefined;
  /**
   * Is set when the engine sends no more calls. The stream ends when the running calls are
   * answered.
   */
  #draining = false;
  #over = false;
  #called = false;
  #drainTimer: NodeJS.Timeout | undefined;

  constructor(
    catalog: Catalog, states: SessionStates, transport: Transport, settings: Omit<SessionSettings, "state"> = {},
  ) {
    this.#catalog = catalog;
    this.#states = states;
    this.#transport = transport;
    this.#protocol = new HookSession({
      ...settings,
      methods: catalog.methods,
      state: (id) => states.acquire(id, () => this.#finish(RESUMED)),
    });
  }

  /** The session ID; undefined until the engine's Hello. */
  get session(): string | undefined {
    return this.#session?.id;
  }

  /** Whether the engine has called a hook. */
  get called(): boolean {
    return this.#called;
  }

  /** Sends the Attach message. It must be the first message on a stream that the hook opens. */
  attach(value: Parameters<HookSession["attach"]>[0]): void {
    this.#protocol.attach(value);
    this.#flush();
  }

  /** Handles a message from the engine. If it is invalid, the stream ends. */
  receive(data: Uint8Array): void {
    if (this.#over) {
      return;
    }
    try {
      this.#handle(this.#protocol.receive(data));
    } catch (error) {
      console.error("stream:", error instanceof ProtocolError ? error.message : error);
      this.#finish({ code: codeOf(error), message: (error as Error).message });
      return;
    }
    this.#flush();
  }

  /** Asks Hookloop for syncs. Resolves to how many parents will be synced. */
  trigger(trigger: Trigger): Promise<number> {
    if (this.#over || !this.#session) {
      return Promise.reject(new Error("trigger: no stream is open"));
    }
    const { message, done } = this.#triggers.begin(trigger);
    this.#protocol.trigger(message);
    this.#flush();
    return done;
  }

  /** Asks the engine for no more calls. The stream ends when the running calls are answered. */
  drain(): void {
    if (!this.#session) {
      this.#finish();
      return;
    }
    this.#protocol.drain();
    this.#flush();
    this.#drainTimer ??= setTimeout(() => this.closing(), DRAIN_TIMEOUT);
  }

  /**
   * Must be called when the engine sends no more messages. The stream ends when the running calls
   * are answered.
   */
  closing(): void {
    this.#draining = true;
    this.#flush();
  }

  /**
   * Must be called when the stream has ended. It cancels all calls, and lets the next stream use
   * the session's state.
   */
  closed(): void {
    if (this.#over) {
      return;
    }
    this.#over = true;
    clearTimeout(this.#drainTimer);
    this.#protocol.lost();
    this.#running.forEach((running) => running.abort());
    this.#running.clear();
    this.#triggers.lost();
    if (this.#session) {
      this.#states.release(this.#session.id, this.#session.state);
    }
  }

  #handle(received: Received): void {
    switch (received.kind) {
      case "open":
        this.#session = { id: received.session, state: received.state };
        break;
      case "call":
        this.#called = true;
        void this.#run(received.call);
        break;
      case "cancelled":
        this.#cancel(received.call, { code: Code.CANCELLED, message: "the engine has cancelled the call" });
        break;
      case "drain":
        this.#draining = true;
        break;
      case "triggerResult":
        this.#triggers.end(received.result);
        break;
      case "goAway": {
        const { code, message } = received.status;
        console.error(`stream: the engine ends it: ${Code[code] ?? code}: ${message}`);
        break;
      }
    }
  }

  /** Calls the function, and sends its response or its error. */
  async #run(call: HookCall): Promise<void> {
    const { id, method, request, trace } = call;
    let fn;
    try {
      fn = this.#catalog.functionOf(method, request);
    } catch (error) {
      logFailure(method.path, parentOf(method, request), error);
      this.#protocol.fail(id, streamStatus(statusOf(error)));
      this.#flush();
      return;
    }
    if (!fn) {
      const message = `this hook has no function for ${method.path}`;
      this.#protocol.fail(id, { code: Code.UNIMPLEMENTED, message });
      this.#flush();
      return;
    }
    const found = fn;
    const running = new AbortController();
    this.#running.set(id, running);
    const timer = this.#startTimeout(call);
    // The function may never return, so the call must end the timer.
    running.signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
    const limiter = limiterOf(this.#session!.state);
    if (await limiter.acquire(running.signal)) {
      try {
        const response = await traced(method.path.slice(1), trace,
          () => callHook(method, found, request, running.signal));
        this.#protocol.answer(id, response);
      } catch (error) {
        if (!running.signal.aborted) {
          logFailure(method.path, parentOf(method, request), error);
        }
        this.#protocol.fail(id, streamStatus(statusOf(error)));
      } finally {
        limiter.release();
      }
    }
    clearTimeout(timer);
    this.#running.delete(id);
    this.#flush();
  }

  /** Starts a timer that cancels a call after its timeout. */
  #startTimeout(call: HookCall): NodeJS.Timeout | undefined {
    const { method, timeout } = call;
    if (timeout === undefined || timeout <= 0) {
      return undefined;
    }
    const message = `${method.path} took longer than ${timeout} ms`;
    const cancel = (): void => this.#cancel(call, { code: Code.DEADLINE_EXCEEDED, message });
    return setTimeout(cancel, Math.min(timeout, MAX_TIMER));
  }

  /** Fails a call at once. It aborts the function, whose response will be dropped. */
  #cancel({ id, method, request }: HookCall, failure: Failure): void {
    const running = this.#running.get(id);
    if (running && !running.signal.aborted) {
      logCancelled(method.path, parentOf(method, request), failure.message);
    }
    this.#protocol.fail(id, streamStatus(failure));
    running?.abort();
    this.#flush();
  }

  /** Sends all pending messages, and ends the stream after the last call. */
  #flush(): void {
    if (this.#over) {
      return;
    }
    this.#protocol.outbox().forEach((message) => this.#transport.send(message));
    if (this.#draining && !this.#protocol.busy) {
      this.#finish();
    }
  }

  #finish(failure?: Failure): void {
    this.closed();
    this.#transport.end(failure);
  }
}

/**
 * Returns the status code for a stream that ends with an error. After a version mismatch it is
 * UNIMPLEMENTED, so that the engine falls back to unary calls.
 */
function codeOf(error: unknown): Code {
  if (error instanceof VersionMismatch) {
    return Code.UNIMPLEMENTED;
  }
  return error instanceof ProtocolError ? Code.INVALID_ARGUMENT : Code.INTERNAL;
}
