/**
 * Defines the messages of google.rpc and grpc.health.v1 that a hook needs. They are small, and none
 * of the SDK's dependencies contains them.
 */
import { toBinary, create } from "@bufbuild/protobuf";
import { DurationSchema } from "@bufbuild/protobuf/wkt";
import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { duration } from "./response.js";

/** A detail in a status, as in google.protobuf.Any. */
export interface Detail {
  type: string;
  value: Uint8Array;
}

function message(fields: readonly [number, string | Uint8Array][]): Uint8Array {
  const writer = new BinaryWriter();
  for (const [number, value] of fields) {
    writer.tag(number, WireType.LengthDelimited);
    if (typeof value === "string") {
      writer.string(value);
    } else {
      writer.bytes(value);
    }
  }
  return writer.finish();
}

/** Encodes a google.rpc.ErrorInfo. */
export function errorInfo(reason: string, domain: string): Detail {
  return { type: "google.rpc.ErrorInfo", value: message([[1, reason], [2, domain]]) };
}

/** Encodes a google.rpc.RetryInfo. */
export function retryInfo(seconds: number): Detail {
  const delay = toBinary(DurationSchema, create(DurationSchema, duration(seconds)));
  return { type: "google.rpc.RetryInfo", value: message([[1, delay]]) };
}

/** Returns a detail's type URL. */
export function typeUrl({ type }: Detail): string {
  return `type.googleapis.com/${type}`;
}

/** Returns a google.rpc.Status with one detail. */
export function status(code: number, text: string, detail: Detail): Uint8Array {
  const any = message([[1, typeUrl(detail)], [2, detail.value]]);
  return new BinaryWriter().tag(1, WireType.Varint).int32(code).raw(message([[2, text], [3, any]])).finish();
}

/** Returns which service a grpc.health.v1.HealthCheckRequest asks for. */
export function healthService(data: Uint8Array): string {
  const reader = new BinaryReader(data);
  let service = "";
  while (reader.pos < reader.len) {
    const [field, wire] = reader.tag();
    if (field === 1 && wire === WireType.LengthDelimited) {
      service = reader.string();
    } else {
      reader.skip(wire, field);
    }
  }
  return service;
}

/** Returns a grpc.health.v1.HealthCheckResponse. */
export function healthStatus(value: number): Uint8Array {
  return new BinaryWriter().tag(1, WireType.Varint).int32(value).finish();
}
