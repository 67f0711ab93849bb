/** Hashes name content, digests stand for sets and lists of it. */
import { createHash } from "node:crypto";
import { ProtocolError } from "./error.js";

/** The length of hashes and digests on the wire. */
const BYTES = 16;

/** The beginning of a SHA-256, in hexadecimal digits: a key of maps. */
export type Hash = string;

/** The hash of some bytes. */
export function hashOf(data: Uint8Array): Hash {
  return createHash("sha256").update(data).digest("hex").slice(0, 2 * BYTES);
}

/** A hash that a message carries. */
export function readHash(data: Uint8Array): Hash {
  if (data.length !== BYTES) {
    throw new ProtocolError(`an upsert's hash has ${data.length} bytes, expected ${BYTES}`);
  }
  return Buffer.from(data).toString("hex");
}

/**
 * The digest of a set or a list: the sum of its parts modulo 2^128. A part can be taken out again, so that a change costs what changed.
 * 0n is the digest of nothing.
 */
export type Digest = bigint;

/** A digest and one more part. */
export function plus(digest: Digest, part: Digest): Digest {
  return BigInt.asUintN(8 * BYTES, digest + part);
}

/** A digest without one of its parts. */
export function minus(digest: Digest, part: Digest): Digest {
  return BigInt.asUintN(8 * BYTES, digest - part);
}

/** The part of an object in an observed set. */
export function entryPart(slot: number, object: Hash): Digest {
  const data = Buffer.alloc(4 + BYTES);
  data.writeUInt32LE(slot);
  data.write(object, 4, "hex");
  return partOf(data);
}

/** The part of an item in a list. The item before is in it, so that the digest knows the order. */
export function linkPart(before: Hash | undefined, item: Hash): Digest {
  const data = Buffer.alloc(2 * BYTES);
  data.write(before ?? "", 0, "hex");
  data.write(item, BYTES, "hex");
  return partOf(data);
}

function partOf(data: Buffer): Digest {
  return read(createHash("sha256").update(data).digest());
}

function read(data: Buffer): Digest {
  return data.readBigUInt64LE(0) | (data.readBigUInt64LE(8) << 64n);
}

/** A digest as messages carry it. */
export function wire(digest: Digest): Uint8Array {
  const data = Buffer.alloc(BYTES);
  data.writeBigUInt64LE(BigInt.asUintN(64, digest), 0);
  data.writeBigUInt64LE(digest >> 64n, 8);
  return data;
}

/** Whether the bytes of a message are a digest. */
export function is(digest: Digest, data: Uint8Array): boolean {
  return data.length === BYTES && read(Buffer.from(data.buffer, data.byteOffset, BYTES)) === digest;
}
