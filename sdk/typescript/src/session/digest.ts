/** Computes hashes and digests. */
import { createHash } from "node:crypto";
import { ProtocolError } from "./error.js";

/** How many bytes hashes and digests have in messages. */
const BYTES = 16;

/** The first 16 bytes of a SHA-256, in hexadecimal digits. */
export type Hash = string;

/** Returns the hash of some bytes. */
export function hashOf(data: Uint8Array): Hash {
  return createHash("sha256").update(data).digest("hex").slice(0, 2 * BYTES);
}

/** Returns the hash in a message. */
export function readHash(data: Uint8Array): Hash {
  if (data.length !== BYTES) {
    throw new ProtocolError(`an upsert's hash has ${data.length} bytes, expected ${BYTES}`);
  }
  return Buffer.from(data).toString("hex");
}

/**
 * Identifies a set or a list. A digest is the sum of its parts modulo 2^128. Parts can be
 * subtracted, so updating it costs only as much as the change. The digest of an empty set or list
 * is 0n.
 */
export type Digest = bigint;

/** Adds a part to a digest. */
export function add(digest: Digest, part: Digest): Digest {
  return BigInt.asUintN(8 * BYTES, digest + part);
}

/** Removes a part from a digest. */
export function subtract(digest: Digest, part: Digest): Digest {
  return BigInt.asUintN(8 * BYTES, digest - part);
}

/** Returns what an object adds to the digest of a set. */
export function entryPart(slot: number, object: Hash): Digest {
  const data = Buffer.alloc(4 + BYTES);
  data.writeUInt32LE(slot);
  data.write(object, 4, "hex");
  return partOf(data);
}

/**
 * Returns what an item adds to the digest of a list. It includes the previous item, so the digest
 * depends on the order.
 */
export function linkPart(previous: Hash | undefined, item: Hash): Digest {
  const data = Buffer.alloc(2 * BYTES);
  data.write(previous ?? "", 0, "hex");
  data.write(item, BYTES, "hex");
  return partOf(data);
}

function partOf(data: Buffer): Digest {
  return read(createHash("sha256").update(data).digest());
}

function read(data: Buffer): Digest {
  return data.readBigUInt64LE(0) | (data.readBigUInt64LE(8) << 64n);
}

/** Encodes a digest for a message. */
export function encodeDigest(digest: Digest): Uint8Array {
  const data = Buffer.alloc(BYTES);
  data.writeBigUInt64LE(BigInt.asUintN(64, digest), 0);
  data.writeBigUInt64LE(digest >> 64n, 8);
  return data;
}

/** Returns whether bytes from a message equal a digest. */
export function equals(digest: Digest, data: Uint8Array): boolean {
  return data.length === BYTES && read(Buffer.from(data.buffer, data.byteOffset, BYTES)) === digest;
}
