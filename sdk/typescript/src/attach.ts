/**
 * Connects hooks to the engine's gateway, for hooks that the engine cannot reach. The hook opens a
 * stream, and another one when it is lost.
 */
import { setTimeout } from "node:timers/promises";
import { status as Code, type ClientDuplexStream, type StatusObject } from "@grpc/grpc-js";
import { programHash } from "./build.js";
import { Catalog } from "./catalog.js";
import type { ControllerKind } from "./constants.js";
import { connection, type Gateway } from "./gateway.js";
import { GatewayService } from "./gen/hookloop/stream/v1/gateway_pb.js";
import type { Hook } from "./hooks.js";
import { DEFAULT_GRACE_PERIOD, type Options } from "./options.js";
import { SessionStates } from "./session/state.js";
import { HookStream } from "./stream.js";
import { BYTES } from "./streamserver.js";
import type { Trigger } from "./trigger.js";

/**
 * Codes of refusals that will hardly change by themselves. The first one may still pass, for
 * example if a token has expired or the engine has just started; after two in a row somebody has to
 * act.
 */
const REFUSAL_CODES: ReadonlySet<Code> = new Set([
  Code.PERMISSION_DENIED, Code.UNAUTHENTICATED, Code.INVALID_ARGUMENT, Code.FAILED_PRECONDITION,
  Code.NOT_FOUND, Code.UNIMPLEMENTED,
]);

/**
 * How many milliseconds a session should stay open before the backoff starts over, even if no call
 * came. Otherwise a gateway that accepts each stream and soon ends it would be dialed in a tight
 * loop.
 */
const STABLE_AFTER = 10_000;

const NO_SESSION = { opened: undefined, called: false } as const;

/**
 * Selects some parents of a running controller. While the hook is attached, Hookloop calls it for
 * these parents instead of the controller's own hook. A parent must match all fields that are set.
 */
export interface Intercept {
  controllerKind: ControllerKind;
  controllerName: string;
  namespace?: string;
  name?: string;
  /** A label selector in kubectl's syntax, such as "team=blue". */
  labelSelector?: string;
}

/**
 * Says how many milliseconds to wait between attempts to connect. Each wait is shortened at random
 * by up to a half. The wait starts over after a session in which the engine called a hook, or that
 * stayed open for 10 seconds.
 */
export interface Backoff {
  /** The wait after the first failure. It doubles after each failure. */
  initial: number;
  /** The longest wait. */
  maximum: number;
  /** The wait after two refusals in a row. */
  refused: number;
}

/** Configures attach. Set either worker or intercept, not both. */
export interface AttachOptions extends Options, Gateway {
  /** The name that controllers use to refer to this hook (spec.hooks.*.grpc.worker). */
  worker?: string;
  intercept?: Intercept;
  /** Defaults to 200, 10,000 and 30,000. */
  backoff?: Partial<Backoff>;
}

/** Records how one stream went. */
type End = Pick<StatusObject, "code" | "details"> & {
  /** When its session opened, by performance.now(); undefined if it did not. */
  readonly opened: number | undefined;
  /** Whether the engine called a hook. */
  readonly called: boolean;
};

/**
 * Connects to the gateway and serves the hooks. It reconnects with backoff until you call stop, and
 * keeps the session's state. Throws if the hooks or the options are invalid.
 */
export function attach(hooks: readonly Hook[], options: AttachOptions): Attachment {
  return new Attachment(hooks, options);
}

/** Represents a connection to the gateway. attach returns one; call stop to end it. */
export class Attachment {
  readonly #catalog: Catalog;
  readonly #options: AttachOptions;
  readonly #backoff: Backoff;
  readonly #build: string;
  readonly #states = new SessionStates();
  readonly #stopping = new AbortController();
  readonly #done: Promise<void>;
  #sessionId = "";
  #stream: HookStream | undefined;
  #call: ClientDuplexStream<Uint8Array, Buffer> | undefined;
  #waiting: (() => void)[] = [];

  constructor(hooks: readonly Hook[], options: AttachOptions) {
    this.#catalog = new Catalog(hooks);
    if (!options.worker === !options.intercept) {
      throw new TypeError("attach: expected one of worker and intercept");
    }
    this.#options = options;
    this.#build = options.buildId || programHash();
    this.#backoff = { initial: 200, maximum: 10_000, refused: 30_000, ...options.backoff };
    this.#done = this.#run();
  }

  /** Resolves when a session is open. */
  async attached(): Promise<void> {
    if (this.#stream?.session === undefined) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  /**
   * Asks Hookloop to sync parents of the controllers that refer to this worker. Resolves to how
   * many it will sync. Rejects if no stream is open, or if the engine refuses.
   */
  async trigger(trigger: Trigger): Promise<number> {
    if (!this.#stream) {
      throw new Error("trigger: no stream is open");
    }
    return this.#stream.trigger(trigger);
  }

  /**
   * Stops accepting calls, and resolves when the running ones have ended. After the grace period
   * (seconds), remaining calls are cancelled.
   */
  async stop(gracePeriod = this.#options.gracePeriodSeconds ?? DEFAULT_GRACE_PERIOD): Promise<void> {
    this.#stopping.abort();
    this.#stream?.drain();
    const timer = globalThis.setTimeout(() => this.#call?.cancel(), gracePeriod * 1000);
    await this.#done;
    clearTimeout(timer);
  }

  /** Opens one stream after the other until stop is called. */
  async #run(): Promise<void> {
    let delay = this.#backoff.initial;
    let refusals = 0; // consecutive ones, without a session between them
    while (!this.#stopping.signal.aborted) {
      const { code, details, opened, called } = await this.#openStream();
      if (this.#stopping.signal.aborted) {
        return;
      }
      if (opened !== undefined) {
        refusals = 0;
        delay = called || performance.now() - opened >= STABLE_AFTER ? this.#backoff.initial : delay;
      }
      refusals = REFUSAL_CODES.has(code) ? refusals + 1 : 0;
      const wait = jittered(refusals > 1 ? this.#backoff.refused : delay);
      const next = `trying again in ${(wait / 1000).toFixed(1)} s`;
      console.error(`attach: stream to ${this.#options.address} ended: ${Code[code]}: ${details}; ${next}`);
      await this.#sleep(wait);
      delay = Math.min(2 * delay, this.#backoff.maximum);
    }
  }

  /** Opens one stream, and resolves when it has ended. */
  async #openStream(): Promise<End> {
    let connected;
    try {
      connected = await connection(this.#options);
    } catch (error) {
      return { code: Code.UNAVAILABLE, details: (error as Error).message, ...NO_SESSION };
    }
    try {
      if (this.#stopping.signal.aborted) { // stopped while it read the files
        return { code: Code.CANCELLED, details: "the hook is stopping", ...NO_SESSION };
      }
      return await this.#serve(connected.client.makeBidiStreamRequest(
        `/${GatewayService.typeName}/Attach`, BYTES.requestSerialize, BYTES.responseDeserialize, connected.metadata));
    } finally {
      connected.client.close();
    }
  }

  #serve(call: ClientDuplexStream<Uint8Array, Buffer>): Promise<End> {
    const { worker, intercept } = this.#options;
    const stream = new HookStream(this.#catalog, this.#states, {
      send: (message) => call.write(message),
      end: (failure) => (failure ? call.cancel() : call.end()),
    }, { build: this.#build });
    [this.#call, this.#stream] = [call, stream];
    let opened: number | undefined;
    return new Promise((resolve) => {
      call.on("data", (data: Buffer) => {
        stream.receive(data);
        opened ??= stream.session === undefined ? undefined : performance.now();
        this.#noteSession(stream);
      });
      call.on("end", () => stream.closing());
      call.on("error", () => undefined); // the status has the same error
      call.on("status", ({ code, details }) => {
        stream.closed();
        [this.#call, this.#stream] = [undefined, undefined];
        resolve({ code, details, opened, called: stream.called });
      });
      stream.attach({ worker: worker ?? "", sessionId: this.#sessionId, ...(intercept ? { intercept } : {}) });
    });
  }

  /** Stores the session ID from the engine's first message. */
  #noteSession({ session }: HookStream): void {
    if (session === undefined || this.#waiting.length === 0 && session === this.#sessionId) {
      return;
    }
    this.#sessionId = session;
    this.#waiting.forEach((resolve) => resolve());
    this.#waiting = [];
  }

  /** Waits for so many milliseconds, or until stop is called. */
  async #sleep(milliseconds: number): Promise<void> {
    try {
      await setTimeout(milliseconds, undefined, { signal: this.#stopping.signal });
    } catch (error) {
      if (!this.#stopping.signal.aborted) {
        throw error;
      }
    }
  }
}

function jittered(delay: number): number {
  return delay * (1 - Math.random() / 2);
}
