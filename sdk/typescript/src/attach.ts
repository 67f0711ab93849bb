/** Dials in: hooks that the engine cannot reach open the stream themselves, and keep one open. */
import { setTimeout } from "node:timers/promises";
import { status as Code, type ClientDuplexStream, type StatusObject } from "@grpc/grpc-js";
import { programHash } from "./build.js";
import { HookStream } from "./stream.js";
import { connection, type GatewayOptions } from "./gateway.js";
import { GatewayService } from "./gen/hookloop/stream/v1/gateway_pb.js";
import type { Hook } from "./hooks.js";
import { SessionStates } from "./session/state.js";
import { DEFAULT_GRACE } from "./server.js";
import { BYTES } from "./streamserver.js";
import type { Trigger } from "./trigger.js";

/**
 * With these a gateway says that a hook may not attach. One such answer may be the end of a token, or an engine that has just started; after a
 * second one in a row, only people can change that.
 */
const REFUSALS: ReadonlySet<Code> = new Set([
  Code.PERMISSION_DENIED, Code.UNAUTHENTICATED, Code.INVALID_ARGUMENT, Code.FAILED_PRECONDITION, Code.NOT_FOUND, Code.UNIMPLEMENTED,
]);

/** Some parents of a controller, whose hook is asked no more for as long as the stream is open. Everything that is set must match. */
export interface Intercept {
  controllerKind: "CompositeController" | "DecoratorController";
  controllerName: string;
  namespace?: string;
  name?: string;
  labelSelector?: string;
}

/** Delays between attempts, in milliseconds; a random part of up to a half is taken off. */
export interface Delays {
  /** After the first failure; each further one doubles it. */
  first: number;
  /** The largest. */
  most: number;
  /** After a second refusal in a row, without a session in between. */
  refused: number;
}

/** What a hook attaches as: a worker, to which controllers refer by its name, or an intercept. */
export interface AttachOptions extends GatewayOptions {
  worker?: string;
  intercept?: Intercept;
  /** Names the build of the hook; a change makes the engine ask about every parent again. A hash of the program's files where it is left out. */
  buildId?: string;
  /** 200, 10,000 and 30,000 where they are left out. */
  delays?: Partial<Delays>;
}

/** How a stream has ended, and whether a session was open on it. */
type Ended = Pick<StatusObject, "code" | "details"> & { readonly opened: boolean };

/** Dials the gateway, and again whenever the stream ends, until stop. What a stream has brought is kept for the next one. */
export function attach(hooks: readonly Hook[], options: AttachOptions): Attachment {
  return new Attachment(hooks, options);
}

/** Hooks that dial in. */
export class Attachment {
  readonly #hooks: readonly Hook[];
  readonly #options: AttachOptions;
  readonly #delays: Delays;
  readonly #build: string;
  readonly #memories = new SessionStates();
  readonly #stopping = new AbortController();
  readonly #done: Promise<void>;
  #session = "";
  #conversation: HookStream | undefined;
  #call: ClientDuplexStream<Uint8Array, Buffer> | undefined;
  #waiting: (() => void)[] = [];

  constructor(hooks: readonly Hook[], options: AttachOptions) {
    if (hooks.length === 0) {
      throw new TypeError("got no hook, expected one made by composite or decorator, or both");
    }
    if (!options.worker === !options.intercept) {
      throw new TypeError("attach: expected one of worker and intercept");
    }
    this.#hooks = hooks;
    this.#options = options;
    this.#build = options.buildId || programHash();
    this.#delays = { first: 200, most: 10_000, refused: 30_000, ...options.delays };
    this.#done = this.#keep();
  }

  /** Resolves when a stream is open. */
  async attached(): Promise<void> {
    if (this.#conversation?.session === undefined) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  /** Asks for syncs of parents whose controllers refer to this worker; resolves to how many there will be. */
  async trigger(trigger: Trigger): Promise<number> {
    if (!this.#conversation) {
      throw new Error("trigger: no stream is open");
    }
    return this.#conversation.trigger(trigger);
  }

  /** Asks for no more questions, and resolves when those under way are answered, at the latest after the grace period in seconds. */
  async stop(grace: number = DEFAULT_GRACE): Promise<void> {
    this.#stopping.abort();
    this.#conversation?.drain();
    const late = globalThis.setTimeout(() => this.#call?.cancel(), grace * 1000);
    await this.#done;
    clearTimeout(late);
  }

  /** Keeps a stream open. */
  async #keep(): Promise<void> {
    let delay = this.#delays.first;
    let refusals = 0; // in a row, without a session in between
    while (!this.#stopping.signal.aborted) {
      const { code, details, opened } = await this.#stream();
      if (this.#stopping.signal.aborted) {
        return;
      }
      if (opened) {
        [delay, refusals] = [this.#delays.first, 0];
      }
      refusals = REFUSALS.has(code) ? refusals + 1 : 0;
      const wait = jittered(refusals > 1 ? this.#delays.refused : delay);
      console.error(`attach: the stream with ${this.#options.address} has ended: ${Code[code]}: ${details}; trying again in ${(wait / 1000).toFixed(1)} s`);
      await this.#sleep(wait);
      delay = Math.min(2 * delay, this.#delays.most);
    }
  }

  /** Opens one stream, and resolves when it has ended. */
  async #stream(): Promise<Ended> {
    let made;
    try {
      made = await connection(this.#options);
    } catch (error) {
      return { code: Code.UNAVAILABLE, details: (error as Error).message, opened: false };
    }
    try {
      if (this.#stopping.signal.aborted) { // while the files were read
        return { code: Code.CANCELLED, details: "the hook is stopping", opened: false };
      }
      return await this.#converse(made.client.makeBidiStreamRequest(
        `/${GatewayService.typeName}/Attach`, BYTES.requestSerialize, BYTES.responseDeserialize, made.metadata));
    } finally {
      made.client.close();
    }
  }

  #converse(call: ClientDuplexStream<Uint8Array, Buffer>): Promise<Ended> {
    const { worker, intercept } = this.#options;
    const conversation = new HookStream(this.#hooks, this.#memories, {
      send: (message) => call.write(message),
      end: (failure) => (failure ? call.cancel() : call.end()),
    }, { build: this.#build });
    [this.#call, this.#conversation] = [call, conversation];
    return new Promise((resolve) => {
      call.on("data", (data: Buffer) => {
        conversation.receive(data);
        this.#noteSession(conversation);
      });
      call.on("end", () => conversation.closing());
      call.on("error", () => undefined); // the status says the same
      call.on("status", ({ code, details }) => {
        conversation.closed();
        [this.#call, this.#conversation] = [undefined, undefined];
        resolve({ code, details, opened: conversation.session !== undefined });
      });
      conversation.attach({ worker: worker ?? "", sessionId: this.#session, ...(intercept ? { intercept } : {}) });
    });
  }

  /** The first message of the engine opens the session. */
  #noteSession({ session }: HookStream): void {
    if (session === undefined || this.#waiting.length === 0 && session === this.#session) {
      return;
    }
    this.#session = session;
    this.#waiting.forEach((resolve) => resolve());
    this.#waiting = [];
  }

  /** Waits, unless it is time to stop. */
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
