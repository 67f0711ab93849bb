/** Triggers: requests for syncs after a change that Hookloop does not watch. */
import { create } from "@bufbuild/protobuf";
import { status as Code } from "@grpc/grpc-js";
import type { ControllerKind } from "./constants.js";
import {
  type Trigger as TriggerMessage, type TriggerResult, TriggerSchema,
} from "./gen/hookloop/stream/v1/stream_pb.js";

/** The name of a parent. A cluster-scoped parent has no namespace. */
export interface ParentName {
  namespace?: string;
  name: string;
}

/**
 * Selects the parents to sync. An empty trigger selects all parents of all controllers of the hook.
 */
export interface Trigger {
  /** The controller's name. If it is empty, all controllers that the hook serves. */
  controllerName?: string;
  /** The controller's kind. If it is empty, all kinds. */
  controllerKind?: ControllerKind;
  /** The parents by name. If the list is empty, labelSelector selects them. */
  parents?: readonly ParentName[];
  /** A label selector in kubectl's syntax. If it is empty, all parents. */
  labelSelector?: string;
  /** A short reason for the log and for the traces of the syncs, at most 256 bytes. */
  reason?: string;
}

/** The engine has refused a trigger, or did not answer it. The code is a gRPC status code. */
export class TriggerError extends Error {
  override name = "TriggerError";
  constructor(readonly code: number, message: string) {
    super(message);
  }
}

/** Returns the message of a trigger. */
export function triggerMessage(
  { controllerName = "", controllerKind, parents = [], labelSelector = "", reason = "" }: Trigger, id = 0n,
): TriggerMessage {
  return create(TriggerSchema, {
    id, controllerName, controllerKind: controllerKind ?? "", labelSelector, reason,
    parents: parents.map(({ namespace = "", name }) => ({ namespace, name })),
  });
}

/** The triggers of one stream that have no answer yet. */
export class Triggers {
  readonly #waiting = new Map<bigint, { resolve: (parents: number) => void; reject: (error: TriggerError) => void }>();
  #lastId = 0n;

  begin(trigger: Trigger): { message: TriggerMessage; done: Promise<number> } {
    const id = ++this.#lastId;
    const done = new Promise<number>((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
    return { message: triggerMessage(trigger, id), done };
  }

  end({ id, parents, error }: TriggerResult): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error) {
      waiting?.reject(new TriggerError(error.code, error.message));
    } else {
      waiting?.resolve(parents);
    }
  }

  lost(): void {
    const message = "the stream ended before the trigger was answered";
    this.#waiting.forEach(({ reject }) => reject(new TriggerError(Code.UNAVAILABLE, message)));
    this.#waiting.clear();
  }
}
