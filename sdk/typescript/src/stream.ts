/** Drives the hook's side of one stream: puts its work to functions, keeps the time, and says what becomes of triggers. */
import { status as Code } from "@grpc/grpc-js";
import { ask, methodsOf, parentOf, SHAPES } from "./codec.js";
import type { AnyFunction, Hook as Functions } from "./hooks.js";
import { ProtocolError, VersionMismatch } from "./session/error.js";
import { Hook, type SessionSettings, type Received, type Work } from "./session/hook.js";
import type { SessionStates, SessionState } from "./session/state.js";
import { limiterOf } from "./limiter.js";
import { logCancelled, logFailure, statusOf, streamStatus, type Failure } from "./status.js";
import { traced } from "./tracing.js";
import { Triggers, type Trigger } from "./trigger.js";

/** How long a stream stays open for questions that are on their way, once the hook has asked for no more, in milliseconds. */
const LINGER = 1000;

/** The end of a stream whose session the engine has opened anew: it knows better which of the two is alive. */
const MOVED: Failure = { code: Code.ABORTED, message: "the engine has opened the session on another stream" };

/** A stream, as whoever opened it can use it. */
export interface Transport {
  send(message: Uint8Array): void;
  /** Ends the stream; with a failure, for that reason. */
  end(failure?: Failure): void;
}

/** One stream between the engine and hooks. */
export class HookStream {
  readonly #functions: readonly Functions[];
  readonly #memories: SessionStates;
  readonly #wire: Transport;
  readonly #hook: Hook;
  readonly #running = new Map<bigint, AbortController>();
  readonly #triggers = new Triggers();
  #held: { readonly session: string; readonly memory: SessionState } | undefined;
  /** Whether nothing more is asked; the stream ends when all is answered. */
  #last = false;
  #over = false;
  #lingers: NodeJS.Timeout | undefined;

  constructor(functions: readonly Functions[], memories: SessionStates, wire: Transport, settings: Omit<SessionSettings, "memory"> = {}) {
    this.#functions = functions;
    this.#memories = memories;
    this.#wire = wire;
    this.#hook = new Hook({ ...settings, methods: functions.flatMap(served).sort(), memory: (session) => memories.take(session, () => this.#finish(MOVED)) });
  }

  /** The id of the session, once it is open. */
  get session(): string | undefined {
    return this.#held?.session;
  }

  /** Says who dials in; it comes first on a stream that the hook opens. */
  attach(value: Parameters<Hook["attach"]>[0]): void {
    this.#hook.attach(value);
    this.#flush();
  }

  /** Takes a message of the engine. One that cannot be understood ends the stream. */
  receive(data: Uint8Array): void {
    if (this.#over) {
      return;
    }
    try {
      this.#take(this.#hook.receive(data));
    } catch (error) {
      console.error("stream:", error instanceof ProtocolError ? error.message : error);
      this.#finish({ code: codeOf(error), message: (error as Error).message });
      return;
    }
    this.#flush();
  }

  /** Asks for syncs, and resolves to how many parents there will be. */
  trigger(trigger: Trigger): Promise<number> {
    if (this.#over || !this.#held) {
      return Promise.reject(new Error("trigger: no stream is open"));
    }
    const { message, done } = this.#triggers.begin(trigger);
    this.#hook.trigger(message);
    this.#flush();
    return done;
  }

  /** Asks for no more questions; the stream ends when those under way are answered. */
  drain(): void {
    if (!this.#held) {
      this.#finish();
      return;
    }
    this.#hook.drain();
    this.#flush();
    this.#lingers ??= setTimeout(() => this.closing(), LINGER);
  }

  /** The engine asks nothing more: the stream ends when all is answered. */
  closing(): void {
    this.#last = true;
    this.#flush();
  }

  /** The stream has ended. What was under way is given up, and what is held is left for the next stream of the session. */
  closed(): void {
    if (this.#over) {
      return;
    }
    this.#over = true;
    clearTimeout(this.#lingers);
    this.#hook.lost();
    this.#running.forEach((running) => running.abort());
    this.#running.clear();
    this.#triggers.lost();
    if (this.#held) {
      this.#memories.leave(this.#held.session, this.#held.memory);
    }
  }

  #take(received: Received): void {
    switch (received.kind) {
      case "open":
        this.#held = received;
        break;
      case "work":
        void this.#run(received.work);
        break;
      case "cancelled":
        this.#giveUp(received.work, { code: Code.CANCELLED, message: "the engine has given the call up" });
        break;
      case "drain":
        this.#last = true;
        break;
      case "triggered":
        this.#triggers.end(received.triggered);
        break;
      case "farewell":
        console.error(`stream: the engine ends it: ${Code[received.status.code] ?? received.status.code}: ${received.status.message}`);
        break;
    }
  }

  /** Answers work: with what its function says, or with why there is no answer. */
  async #run(work: Work): Promise<void> {
    const { id, method, question, trace } = work;
    const fn = this.#functionOf(work);
    if (!fn) {
      this.#hook.refuse(id, { code: Code.UNIMPLEMENTED, message: `this hook has no function for ${method.path}` });
      this.#flush();
      return;
    }
    const running = new AbortController();
    this.#running.set(id, running);
    const late = this.#limit(work);
    running.signal.addEventListener("abort", () => clearTimeout(late), { once: true }); // the function may never return
    const slots = limiterOf(this.#held!.memory);
    if (await slots.take(running.signal)) {
      try {
        this.#hook.answer(id, await traced(method.path.slice(1), trace, () => ask(method, fn, question, running.signal)));
      } catch (error) {
        if (!running.signal.aborted) {
          logFailure(method.path, parentOf(method, question), error);
        }
        this.#hook.refuse(id, streamStatus(statusOf(error)));
      } finally {
        slots.free();
      }
    }
    clearTimeout(late);
    this.#running.delete(id);
    this.#flush();
  }

  #functionOf({ method }: Work): AnyFunction | undefined {
    return this.#functions.find(({ shape }) => SHAPES[shape] === method.shape)?.functions[method.op];
  }

  /** Gives work up when its time is over. */
  #limit(work: Work): NodeJS.Timeout | undefined {
    const { method, timeout } = work;
    if (timeout === undefined || timeout <= 0) {
      return undefined;
    }
    const message = `${method.path} took longer than ${timeout} ms`;
    return setTimeout(() => this.#giveUp(work, { code: Code.DEADLINE_EXCEEDED, message }), Math.min(timeout, 2 ** 31 - 1));
  }

  /** Answers work at once; its function is told, and what it still says is dropped. */
  #giveUp({ id, method, question }: Work, failure: Failure): void {
    const running = this.#running.get(id);
    if (running && !running.signal.aborted) {
      logCancelled(method.path, parentOf(method, question), failure.message);
    }
    this.#hook.refuse(id, streamStatus(failure));
    running?.abort();
    this.#flush();
  }

  /** Sends what there is to send, and ends the stream where it was the last. */
  #flush(): void {
    if (this.#over) {
      return;
    }
    this.#hook.outbox().forEach((message) => this.#wire.send(message));
    if (this.#last && !this.#hook.busy) {
      this.#finish();
    }
  }

  #finish(failure?: Failure): void {
    this.closed();
    this.#wire.end(failure);
  }
}

/** The methods of a hook that have a function. */
function served({ shape, functions }: Functions): string[] {
  return methodsOf(SHAPES[shape]).filter(({ op }) => functions[op]).map(({ path }) => path);
}

/** The status of a stream that ends with an error. One of another version is unserved, so that the engine may ask by unary calls. */
function codeOf(error: unknown): Code {
  if (error instanceof VersionMismatch) {
    return Code.UNIMPLEMENTED;
  }
  return error instanceof ProtocolError ? Code.INVALID_ARGUMENT : Code.INTERNAL;
}
