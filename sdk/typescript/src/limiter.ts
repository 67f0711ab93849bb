/** Bounds the functions that run. A function takes a slot, and frees it when it has ended, whether its answer is still wanted or not. */
import type { SessionState } from "./session/state.js";

/** How many functions run at a time: those of one session, and those that are asked by unary calls. */
export const MAX_CONCURRENT_CALLS = 64;

/** A number of slots, given out in the order in which they are asked for. */
export class Limiter {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(count = MAX_CONCURRENT_CALLS) {
    this.#free = count;
  }

  /** Waits for a slot, and resolves to whether there is one; a signal that aborts ends the wait without. */
  take(signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) {
      return Promise.resolve(false);
    }
    if (this.#free > 0) {
      this.#free--;
      return Promise.resolve(true);
    }
    return new Promise((resolve) => {
      const gone = (): void => {
        this.#waiting.delete(taken);
        resolve(false);
      };
      const taken = (): void => {
        signal.removeEventListener("abort", gone);
        resolve(true);
      };
      signal.addEventListener("abort", gone, { once: true });
      this.#waiting.add(taken);
    });
  }

  /** Gives a slot back. */
  free(): void {
    const [next] = this.#waiting;
    if (next) {
      this.#waiting.delete(next);
      next();
    } else {
      this.#free++;
    }
  }
}

const slots = new WeakMap<SessionState, Limiter>();

/** The slots of a session, over all its streams: functions that outlive one count on the next. */
export function limiterOf(memory: SessionState): Limiter {
  const known = slots.get(memory) ?? new Limiter();
  slots.set(memory, known);
  return known;
}
