/** Checks what an answer says beside its objects, and writes it as the contract has it: conditions, events, results. */
import { create } from "@bufbuild/protobuf";
import { choice, fields, list, text, word } from "./check.js";
import { InvalidResponse } from "./errors.js";
import { ConditionSchema, EventSchema, ResultSchema, Severity, type Condition, type Event, type Result } from "./gen/hookloop/hook/v1/answer_pb.js";

const STATUSES = tableOf(["True", "False", "Unknown"]);
const EVENT_TYPES: ReadonlyMap<string, boolean> = new Map([["Normal", false], ["Warning", true]]);
const SEVERITIES: ReadonlyMap<string, Severity> = new Map([["Info", Severity.INFO], ["Warning", Severity.WARNING], ["Fatal", Severity.FATAL]]);
/** What the API server takes as the reason of a condition. */
const REASON = /^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/;

/** Conditions, each of a type of its own. */
export function encodeConditions(conditions: unknown): Condition[] {
  const seen = new Set<string>();
  return list(conditions, "conditions").map((member, index) => {
    const item = `conditions[${index}]`;
    const said = fields(member, item, ["type", "status", "reason", "message"]);
    const type = word(said["type"], `${item}.type`);
    if (seen.has(type)) {
      throw new InvalidResponse(`${item}.type is ${JSON.stringify(type)} as in one before it, expected each type once`);
    }
    seen.add(type);
    const status = choice(said["status"], `${item}.status`, STATUSES);
    return create(ConditionSchema, { type, status, ...remark(said, item) });
  });
}

/** Events. */
export function encodeEvents(events: unknown): Event[] {
  return list(events, "events").map((member, index) => {
    const item = `events[${index}]`;
    const said = fields(member, item, ["type", "reason", "message"]);
    return create(EventSchema, { warning: choice(said["type"] ?? "Normal", `${item}.type`, EVENT_TYPES), ...remark(said, item) });
  });
}

/** Results. */
export function encodeResults(results: unknown): Result[] {
  return list(results, "results").map((member, index) => {
    const item = `results[${index}]`;
    const said = fields(member, item, ["severity", "reason", "message"]);
    return create(ResultSchema, { severity: choice(said["severity"] ?? "Info", `${item}.severity`, SEVERITIES), ...remark(said, item) });
  });
}

/** The reason and the message, which all of them have. */
function remark(said: Record<string, unknown>, item: string): { reason: string; message: string } {
  const reason = word(said["reason"], `${item}.reason`);
  if (!REASON.test(reason)) {
    throw new InvalidResponse(`${item}.reason is ${JSON.stringify(reason)}, expected one word in CamelCase`);
  }
  return { reason, message: text(said["message"], `${item}.message`) };
}

function tableOf(words: readonly string[]): ReadonlyMap<string, string> {
  return new Map(words.map((one) => [one, one]));
}
