/** Encodes conditions, events and results. */
import { create } from "@bufbuild/protobuf";
import { choice, fields, list, nonEmpty, text, type Members } from "./check.js";
import { InvalidResponse } from "./errors.js";
import {
  type Condition, ConditionSchema, ConditionStatus, type Event, EventSchema, EventType, type Result, ResultSchema,
  Severity,
} from "./gen/hookloop/hook/v1/response_pb.js";

const STATUSES: ReadonlyMap<string, ConditionStatus> = new Map([
  ["True", ConditionStatus.TRUE], ["False", ConditionStatus.FALSE], ["Unknown", ConditionStatus.UNKNOWN],
]);
const EVENT_TYPES: ReadonlyMap<string, EventType> = new Map([
  ["Normal", EventType.NORMAL], ["Warning", EventType.WARNING],
]);
const SEVERITIES: ReadonlyMap<string, Severity> = new Map([
  ["Info", Severity.INFO], ["Warning", Severity.WARNING], ["Fatal", Severity.FATAL],
]);
/** What the API server allows as a condition's reason. */
const REASON = /^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/;

/** Encodes conditions. Throws if two have the same type. */
export function encodeConditions(conditions: unknown): Condition[] {
  const types = new Set<string>();
  return list(conditions, "conditions").map((member, index) => {
    const item = `conditions[${index}]`;
    const condition = fields(member, item, ["type", "status", "reason", "message"]);
    const type = nonEmpty(condition["type"], `${item}.type`);
    if (types.has(type)) {
      const problem = `is ${JSON.stringify(type)} as in an earlier condition, expected each type once`;
      throw new InvalidResponse(`${item}.type ${problem}`);
    }
    types.add(type);
    const status = choice(condition["status"], `${item}.status`, STATUSES);
    return create(ConditionSchema, { type, status, ...reasonAndMessage(condition, item) });
  });
}

/** Encodes events. */
export function encodeEvents(events: unknown): Event[] {
  return list(events, "events").map((member, index) => {
    const item = `events[${index}]`;
    const event = fields(member, item, ["type", "reason", "message"]);
    const type = choice(event["type"] ?? "Normal", `${item}.type`, EVENT_TYPES);
    return create(EventSchema, { type, ...reasonAndMessage(event, item) });
  });
}

/** Encodes results. */
export function encodeResults(results: unknown): Result[] {
  return list(results, "results").map((member, index) => {
    const item = `results[${index}]`;
    const result = fields(member, item, ["severity", "reason", "message"]);
    const severity = choice(result["severity"] ?? "Info", `${item}.severity`, SEVERITIES);
    return create(ResultSchema, { severity, ...reasonAndMessage(result, item) });
  });
}

function reasonAndMessage(members: Members, item: string): { reason: string; message: string } {
  const reason = nonEmpty(members["reason"], `${item}.reason`);
  if (!REASON.test(reason)) {
    throw new InvalidResponse(`${item}.reason is ${JSON.stringify(reason)}, expected one word in CamelCase`);
  }
  return { reason, message: text(members["message"], `${item}.message`) };
}
