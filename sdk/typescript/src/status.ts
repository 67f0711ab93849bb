/** Converts a function's error to a google.rpc.Status, for unary calls and for streams. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { Metadata, status as Code, type ServerErrorResponse } from "@grpc/grpc-js";
import { InvalidRequest, InvalidResponse, NotFound, Reject, RetryAfter } from "./errors.js";
import type { StatusSchema } from "./gen/google/rpc/status_pb.js";
import * as wellknown from "./wellknown.js";

/** The domain of the reasons in google.rpc.ErrorInfo. */
const DOMAIN = "hookloop.hook.v1";
const DETAILS = "grpc-status-details-bin";
/** The longest text of an error in bytes. Hookloop shows 256 bytes. */
const MAX_TEXT_BYTES = 1024;

/** A status with at most one detail. */
export interface Failure {
  readonly code: Code;
  readonly message: string;
  readonly detail?: wellknown.Detail;
}

/** Returns the status of an error. */
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
 * Returns the beginning of a text without lone surrogates, which grpc-js cannot encode. A unary
 * call carries the text in a header, and a header that is too large ends the connection.
 */
function sendable(text: string): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= MAX_TEXT_BYTES) {
    return bytes.toString();
  }
  return `${bytes.subarray(0, MAX_TEXT_BYTES).toString().replace(/\ufffd$/, "")}…`;
}

/** Returns a status as grpc-js's server error. */
export function unaryError({ code, message, detail }: Failure): Partial<ServerErrorResponse> {
  if (!detail) {
    return { code, details: message };
  }
  const metadata = new Metadata();
  metadata.set(DETAILS, Buffer.from(wellknown.status(code, message, detail)));
  return { code, details: message, metadata };
}

/** Returns a status as a stream's message. */
export function streamStatus({ code, message, detail }: Failure): MessageInitShape<typeof StatusSchema> {
  return { code, message, details: detail ? [{ typeUrl: wellknown.typeUrl(detail), value: detail.value }] : [] };
}

/** Logs the error of a function, with the parent. It does not log Reject and RetryAfter. */
export function logFailure(method: string, parent: string, error: unknown): void {
  if (!isExpected(error)) {
    console.error(`${method} of ${parent} failed:`, isBug(error) ? error : (error as Error).message);
  }
}

/** Logs a call that was cancelled before its function returned. */
export function logCancelled(method: string, parent: string, reason: string): void {
  console.error(`${method} of ${parent} was cancelled: ${reason}`);
}

function isExpected(error: unknown): boolean {
  return error instanceof Reject || error instanceof RetryAfter;
}

/** Reports whether the stack of an error can help: it is not one of the SDK's own errors. */
function isBug(error: unknown): boolean {
  const own = [InvalidResponse, InvalidRequest, NotFound];
  return !isExpected(error) && !own.some((kind) => error instanceof kind);
}

/**
 * Returns the message for the engine. Errors of other packages keep their name, because some have
 * no message.
 */
function messageOf(error: unknown): string {
  if (!(error instanceof Error)) {
    return `the hook's function has thrown ${String(error)}`;
  }
  return isBug(error) ? `${error.name}: ${error.message}` : error.message;
}
