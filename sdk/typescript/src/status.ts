/** Turns a function's error into a google.rpc.Status, for unary calls and streams. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { Metadata, status as Code, type ServerErrorResponse } from "@grpc/grpc-js";
import { InvalidRequest, InvalidResponse, NotFound, Reject, RetryAfter } from "./errors.js";
import type { StatusSchema } from "./gen/google/rpc/status_pb.js";
import * as wellknown from "./wellknown.js";

/** Is sent in google.rpc.ErrorInfo together with a reason. */
const DOMAIN = "hookloop.hook.v1";
const DETAILS = "grpc-status-details-bin";
/** Limits the text of an error in bytes. Hookloop shows only 256 bytes. */
const MAX_TEXT_BYTES = 1024;

/** A status with at most one detail. */
export interface Failure {
  readonly code: Code;
  readonly message: string;
  readonly detail?: wellknown.Detail;
}

/** Returns the status for an error. */
export function statusOf(error: unknown): Failure {
  if (error instanceof Reject) {
    const detail = wellknown.errorInfo(error.reason, DOMAIN);
    return { code: Code.FAILED_PRECONDITION, message: sendable(error.message), detail };
  }
  if (error instanceof RetryAfter) {
    const detail = wellknown.retryInfo(error.seconds);
    return { code: Code.RESOURCE_EXHAUSTED, message: sendable(error.message), detail };
  }
  const code = error instanceof NotFound ? Code.NOT_FOUND : Code.INTERNAL;
  return { code, message: sendable(messageOf(error)) };
}

/**
 * Returns the beginning of a text, without lone surrogates, which grpc-js cannot encode. Unary
 * calls send the text in a header, and the connection ends if headers are too large.
 */
function sendable(text: string): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= MAX_TEXT_BYTES) {
    return bytes.toString();
  }
  return `${bytes.subarray(0, MAX_TEXT_BYTES).toString().replace(/\ufffd$/, "")}…`;
}

/** Converts a status to grpc-js's server error. */
export function unaryError({ code, message, detail }: Failure): Partial<ServerErrorResponse> {
  if (!detail) {
    return { code, details: message };
  }
  const metadata = new Metadata();
  metadata.set(DETAILS, Buffer.from(wellknown.status(code, message, detail)));
  return { code, details: message, metadata };
}

/** Converts a status to a message for streams. */
export function streamStatus({ code, message, detail }: Failure): MessageInitShape<typeof StatusSchema> {
  return { code, message, details: detail ? [{ typeUrl: wellknown.typeUrl(detail), value: detail.value }] : [] };
}

/** Logs a function's error with the parent. It does not log Reject and RetryAfter. */
export function logFailure(method: string, parent: string, error: unknown): void {
  if (!isExpected(error)) {
    console.error(`${method} of ${parent} failed:`, isBug(error) ? error : (error as Error).message);
  }
}

/** Logs that a call was cancelled before its function returned. */
export function logCancelled(method: string, parent: string, reason: string): void {
  console.error(`${method} of ${parent} was cancelled: ${reason}`);
}

function isExpected(error: unknown): boolean {
  return error instanceof Reject || error instanceof RetryAfter;
}

/**
 * Returns whether the stack of an error can help. It cannot if the error is one of the SDK's own.
 */
function isBug(error: unknown): boolean {
  const own = [InvalidResponse, InvalidRequest, NotFound];
  return !isExpected(error) && !own.some((kind) => error instanceof kind);
}

/**
 * Returns the message that Hookloop shows. For errors of other packages it includes the name,
 * because some have no message.
 */
function messageOf(error: unknown): string {
  if (!(error instanceof Error)) {
    return `the hook's function has thrown ${String(error)}`;
  }
  return isBug(error) ? `${error.name}: ${error.message}` : error.message;
}
