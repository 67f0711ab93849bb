/** The engine's end of a stream, and hooks for it, for the tests of streams and attachments. */
import assert from "node:assert/strict";
import { Metadata, status as Code, type Client, type ClientDuplexStream, type ServerDuplexStream } from "@grpc/grpc-js";
import { composite, type Call, type Hook, type SyncRequest } from "../src/index.js";
import type { Answer, HookMessage } from "../src/gen/hookloop/stream/v1/stream_pb.js";
import { BYTES } from "../src/streamserver.js";
import { Engine, serialize, type Entry } from "./engine.js";
import { object } from "./requests.js";
import { until } from "./until.js";

type Message = Parameters<typeof serialize>[0];
export type Sent = HookMessage["message"];

/** The engine's end of a stream in a test: it sends messages, and waits for messages. */
export class Line {
  readonly #got: Sent[] = [];
  #wake: () => void = () => undefined;
  over = false;
  status: { code: Code; details: string } | undefined;

  constructor(
    readonly engine: Engine,
    readonly call: ClientDuplexStream<Uint8Array, Buffer> | ServerDuplexStream<Buffer, Uint8Array>,
  ) {
    call.on("data", (data: Buffer) => {
      const message = engine.read(data);
      if (message) {
        this.#got.push(message);
        this.#wake();
      }
    });
    call.on("error", () => undefined);
    call.on("status", (status: { code: Code; details: string }) => (this.status = status));
    for (const event of ["end", "cancelled", "status"]) {
      call.on(event, () => {
        this.over = true;
        this.#wake();
      });
    }
  }

  send(message: Message): void {
    this.call.write(serialize(message));
  }

  /** Resolves to the next message of a kind, and drops others before it. */
  async next<Case extends NonNullable<Sent["case"]>>(kind: Case): Promise<Extract<Sent, { case: Case }>["value"]> {
    for (;;) {
      const message = this.#got.shift();
      if (message?.case === kind) {
        return message.value as never;
      }
      if (!message) {
        assert.ok(!this.over, `the stream has ended before there was a message of kind ${kind}`);
        await this.#woken();
      }
    }
  }

  async ended(): Promise<void> {
    while (!this.over) {
      await this.#woken();
    }
  }

  async statusOfEnd(): Promise<{ code: Code; details: string }> {
    await until(() => this.status !== undefined);
    return this.status!;
  }

  #woken(): Promise<void> {
    return new Promise((resolve) => (this.#wake = resolve));
  }
}

/** Opens a stream as the engine does. */
export async function connect(client: Client, engine = new Engine()): Promise<Line> {
  const call = client.makeBidiStreamRequest(
    "/hookloop.stream.v1.HookStreamService/Connect",
    BYTES.requestSerialize,
    BYTES.responseDeserialize,
    new Metadata(),
  );
  const line = new Line(engine, call);
  line.send(engine.hello());
  await line.next("welcome");
  return line;
}

export function entries(...pods: string[]): Entry[] {
  return [
    { slot: 0, object: object("metacontroller.k8s.io/v1alpha1", "CompositeController", "", "c") },
    { slot: 1, object: object("example.com/v1", "Greeting", "shop", "hi") },
    ...pods.map((name) => ({ slot: 2, object: object("v1", "Pod", "shop", name) })),
  ];
}

export const echo = composite({
  sync: ({ parent, children }: SyncRequest) => ({
    status: { n: parent["spec"], pods: Object.keys(children["Pod.v1"]!) },
  }),
});

export function statusOf(engine: Engine, answer: Answer): string {
  return Buffer.from(engine.response("p", answer).status!).toString();
}

/**
 * Returns a hook with a function that waits for release, and promises of its start and its abort.
 */
export function blocking(): { hook: Hook; entered: Promise<Call>; release: () => void; aborted: Promise<void> } {
  let [enter, release, abort] = [(_: Call) => {}, () => {}, () => {}];
  const entered = new Promise<Call>((resolve) => (enter = resolve));
  const released = new Promise<void>((resolve) => (release = resolve));
  const aborted = new Promise<void>((resolve) => (abort = resolve));
  const hook = composite({
    sync: async (_, call) => {
      call.signal.addEventListener("abort", () => abort());
      enter(call);
      await released;
      return { status: { done: true } };
    },
  });
  return { hook, entered, release, aborted };
}
