/** Asks for syncs: something has changed that Hookloop does not watch. */
import { create } from "@bufbuild/protobuf";
import { status as Code } from "@grpc/grpc-js";
import { TriggerSchema, type Trigger as TriggerMessage, type Triggered } from "./gen/hookloop/stream/v1/stream_pb.js";

/** Which parents should be synced, and why. */
export interface Trigger {
  /** The controller's name; without one, every controller that the hook serves. */
  controller?: string;
  /** The controller's kind; without one, both. */
  controllerKind?: "CompositeController" | "DecoratorController";
  /** The parents by name; without any, labelSelector says which. */
  parents?: readonly { namespace?: string; name: string }[];
  /** The parents by their labels, as kubectl takes a selector; empty stands for all. */
  labelSelector?: string;
  /** A few words, at most 256 bytes, for the log and the traces of the syncs. */
  reason?: string;
}

/** A trigger was refused, or there was no answer to it. */
export class TriggerError extends Error {
  override name = "TriggerError";
  constructor(readonly code: Code, message: string) {
    super(message);
  }
}

/** The message of a trigger. */
export function triggerMessage({ controller = "", controllerKind, parents = [], labelSelector = "", reason = "" }: Trigger, id = 0n): TriggerMessage {
  return create(TriggerSchema, {
    id, controllerName: controller, controllerKind: controllerKind ?? "", labelSelector, reason, parents: parents.map(({ namespace = "", name }) => ({ namespace, name })),
  });
}

/** The triggers of one stream that are not answered yet. */
export class Triggers {
  readonly #waiting = new Map<bigint, { resolve: (parents: number) => void; reject: (error: TriggerError) => void }>();
  #last = 0n;

  begin(trigger: Trigger): { message: TriggerMessage; done: Promise<number> } {
    const id = ++this.#last;
    const done = new Promise<number>((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
    return { message: triggerMessage(trigger, id), done };
  }

  end({ id, parents, error }: Triggered): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error) {
      waiting?.reject(new TriggerError(error.code, error.message));
    } else {
      waiting?.resolve(parents);
    }
  }

  lost(): void {
    this.#waiting.forEach(({ reject }) => reject(new TriggerError(Code.UNAVAILABLE, "the stream ended before the trigger was answered")));
    this.#waiting.clear();
  }
}
