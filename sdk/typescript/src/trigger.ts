/** Asks Hookloop to sync parents after a change that it does not watch. */
import { create } from "@bufbuild/protobuf";
import { status as Code } from "@grpc/grpc-js";
import type { ControllerKind } from "./constants.js";
import {
  type Trigger as TriggerMessage, type TriggerResult, TriggerSchema,
} from "./gen/hookloop/stream/v1/stream_pb.js";

/** Identifies a parent. Leave namespace out if the parent is cluster-scoped. */
export interface ParentName {
  namespace?: string;
  name: string;
}

/**
 * Selects parents to sync. An empty trigger selects all parents of all controllers that use the
 * hook.
 */
export interface Trigger {
  /** Restricts the trigger to one controller. */
  controllerName?: string;
  /** Restricts the trigger to one kind of controller. */
  controllerKind?: ControllerKind;
  /** Selects parents by name. If the list is empty, labelSelector selects them. */
  parents?: readonly ParentName[];
  /** Selects parents in kubectl's syntax. If it is empty, all parents are selected. */
  labelSelector?: string;
  /** Is shown in the log and in traces. It has at most 256 bytes. */
  reason?: string;
}

/** Is thrown if the engine refused a trigger or did not answer. The code is a gRPC status code. */
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

/** Keeps the triggers of one stream until they are answered. */
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
