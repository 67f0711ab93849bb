/** Waits for a condition. */
import assert from "node:assert/strict";

/** Waits until a condition is true. Fails after 30 seconds. */
export async function until(condition: () => boolean): Promise<void> {
  for (const end = Date.now() + 30_000; !condition(); await new Promise(setImmediate)) {
    assert.ok(Date.now() < end, `timeout of the condition ${condition}`);
  }
}
