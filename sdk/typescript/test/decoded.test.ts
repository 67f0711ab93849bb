import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { CacheMeter } from "../src/cachestats.js";
import { Decoded } from "../src/decoded.js";
import { ObservedObjectSchema, type ObservedObject } from "../src/gen/hookloop/hook/v1/observed_pb.js";

const message = (bytes: number): ObservedObject => create(ObservedObjectSchema, { body: new Uint8Array(bytes) });

test("objects are metered, and at most the limit", () => {
  const meter = new CacheMeter();
  const decoded = new Decoded<object>(8000, meter);
  const used = message(100);
  decoded.get(used, () => ({}));
  decoded.get(used, () => ({}));
  decoded.get(message(10_000), () => ({}));
  assert.deepEqual({ ...meter }, { bytes: 400, entries: 1, hits: 1, misses: 2 });
  for (let other = 0; other < 100; other++) {
    decoded.get(message(100), () => ({}));
    assert.ok(meter.bytes <= 8000 && meter.bytes === 400 * meter.entries, `${meter.bytes} bytes`);
  }
});

test("an object is decoded once while it is used", () => {
  const decoded = new Decoded<object>(8000);
  const used = message(100);
  let made = 0;
  const make = (): object => ({ made: ++made });
  const first = decoded.get(used, make);
  for (let other = 0; other < 100; other++) {
    assert.equal(decoded.get(used, make), first);
    decoded.get(message(100), () => ({}));
  }
  assert.equal(made, 1);
});

test("objects of half the limit are decoded once, also beside ones that are too large", () => {
  const decoded = new Decoded<object>(8000);
  const messages = Array.from({ length: 10 }, () => message(100));
  let made = 0;
  for (let round = 0; round < 5; round++) {
    messages.forEach((each) => decoded.get(each, () => ({ made: ++made })));
    for (let large = 0; large < 2; large++) {
      decoded.get(message(10_000), () => ({}));
    }
  }
  assert.equal(made, 10);
});

test("objects beyond the limit are decoded again", () => {
  const decoded = new Decoded<object>(8000); // room for 20 objects
  const messages = Array.from({ length: 100 }, () => message(100));
  let made = 0;
  const make = (): object => ({ made: ++made });
  messages.forEach((each) => decoded.get(each, make));
  assert.equal(made, 100);
  [...messages].reverse().forEach((each) => decoded.get(each, make));
  assert.ok(made >= 180 && made < 200, `${made} objects were decoded, of which at most 20 could be kept`);
});

test("an object larger than the limit is not kept", () => {
  const decoded = new Decoded<object>(8000);
  const [small, large] = [message(100), message(10_000)];
  let made = 0;
  const make = (): object => ({ made: ++made });
  for (let round = 0; round < 2; round++) {
    decoded.get(large, make);
    decoded.get(small, make);
  }
  assert.equal(made, 3);
});
