/** The few messages of google.rpc and grpc.health.v1 that a hook speaks. No package that the SDK needs has them, and they are small. */
import { toBinary, create } from "@bufbuild/protobuf";
import { DurationSchema } from "@bufbuild/protobuf/wkt";
import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { duration } from "./response.js";

/** A detail of a status: google.protobuf.Any. */
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

/** google.rpc.ErrorInfo. */
export function errorInfo(reason: string, domain: string): Detail {
  return { type: "google.rpc.ErrorInfo", value: message([[1, reason], [2, domain]]) };
}

/** google.rpc.RetryInfo. */
export function retryInfo(seconds: number): Detail {
  return { type: "google.rpc.RetryInfo", value: message([[1, toBinary(DurationSchema, create(DurationSchema, duration(seconds)))]]) };
}

/** How google.protobuf.Any names a detail's type. */
export function typeUrl({ type }: Detail): string {
  return `type.googleapis.com/${type}`;
}

/** google.rpc.Status with one detail. */
export function status(code: number, text: string, detail: Detail): Uint8Array {
  const any = message([[1, typeUrl(detail)], [2, detail.value]]);
  return new BinaryWriter().tag(1, WireType.Varint).int32(code).raw(message([[2, text], [3, any]])).finish();
}

/** The service that a grpc.health.v1.HealthCheckRequest names. */
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

/** A grpc.health.v1.HealthCheckResponse. */
export function healthStatus(value: number): Uint8Array {
  return new BinaryWriter().tag(1, WireType.Varint).int32(value).finish();
}
