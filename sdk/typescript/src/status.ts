/** Turns what a function throws into a status with details (google.rpc.Status), for both ways in which answers travel. */
import { Metadata, status as Code, type ServerErrorResponse } from "@grpc/grpc-js";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { InvalidResponse, InvalidRequest, Reject, RetryAfter } from "./errors.js";
import type { StatusSchema } from "./gen/hookloop/stream/v1/stream_pb.js";
import * as wellknown from "./wellknown.js";

/** Says whose reasons those in google.rpc.ErrorInfo are. */
const DOMAIN = "hookloop.hook.v1";
const DETAILS = "grpc-status-details-bin";

/** A code of google.rpc.Code, a sentence, and perhaps a detail for programs. */
export interface Failure {
  readonly code: Code;
  readonly message: string;
  readonly detail?: wellknown.Detail;
}

/** What an error says. */
export function statusOf(error: unknown): Failure {
  if (error instanceof Reject) {
    return { code: Code.FAILED_PRECONDITION, message: error.message, detail: wellknown.errorInfo(error.reason, DOMAIN) };
  }
  if (error instanceof RetryAfter) {
    return { code: Code.RESOURCE_EXHAUSTED, message: error.message, detail: wellknown.retryInfo(error.seconds) };
  }
  return { code: Code.INTERNAL, message: messageOf(error) };
}

/** A failure as a gRPC server says it. */
export function unaryError({ code, message, detail }: Failure): Partial<ServerErrorResponse> {
  if (!detail) {
    return { code, details: message };
  }
  const metadata = new Metadata();
  metadata.set(DETAILS, Buffer.from(wellknown.status(code, message, detail)));
  return { code, details: message, metadata };
}

/** A failure as a stream says it. */
export function streamStatus({ code, message, detail }: Failure): MessageInitShape<typeof StatusSchema> {
  return { code, message, details: detail ? [{ typeUrl: wellknown.typeUrl(detail), value: detail.value }] : [] };
}

/** Logs a function that has failed, with its parent. Reject and RetryAfter are answers. */
export function logFailure(method: string, parent: string, error: unknown): void {
  if (!isExpected(error)) {
    console.error(`${method} of ${parent} failed:`, isBug(error) ? error : (error as Error).message);
  }
}

/** Logs a call that was given up before its function had an answer. */
export function logCancelled(method: string, parent: string, why: string): void {
  console.error(`${method} of ${parent} was given up: ${why}`);
}

function isExpected(error: unknown): boolean {
  return error instanceof Reject || error instanceof RetryAfter;
}

/** Whether an error is something for the author to look at: neither an answer, nor a mistake that its message names completely. */
function isBug(error: unknown): boolean {
  return !isExpected(error) && !(error instanceof InvalidResponse) && !(error instanceof InvalidRequest);
}

/** What the engine shows: for errors of other packages with their name, without which some say little. */
function messageOf(error: unknown): string {
  if (!(error instanceof Error)) {
    return `the hook's function has thrown ${String(error)}`;
  }
  return isBug(error) ? `${error.name}: ${error.message}` : error.message;
}
