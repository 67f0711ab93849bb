/** Waits for a condition. */
import assert from "node:assert/strict";

/** Waits until something is so; what is not so in time fails. */
export async function until(so: () => boolean): Promise<void> {
  for (const end = Date.now() + 30_000; !so(); await new Promise(setImmediate)) {
    assert.ok(Date.now() < end, `it is not so in time: ${so}`);
  }
}
