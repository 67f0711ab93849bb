/**
 * Limits how many functions run at the same time. A cancelled call counts until its function has
 * returned.
 */
import type { SessionState } from "./session/state.js";

/** How many functions of one session may run, and how many of all unary calls together. */
export const MAX_CONCURRENT_CALLS = 64;

/** A semaphore that serves waiters in order. */
export class Limiter {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(limit = MAX_CONCURRENT_CALLS) {
    this.#free = limit;
  }

  /** Waits for a free slot. Resolves to false if the signal is aborted first. */
  acquire(signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) {
      return Promise.resolve(false);
    }
    if (this.#free > 0) {
      this.#free--;
      return Promise.resolve(true);
    }
    return new Promise((resolve) => {
      const aborted = (): void => {
        this.#waiting.delete(acquired);
        resolve(false);
      };
      const acquired = (): void => {
        signal.removeEventListener("abort", aborted);
        resolve(true);
      };
      signal.addEventListener("abort", aborted, { once: true });
      this.#waiting.add(acquired);
    });
  }

  /** Gives a slot back. */
  release(): void {
    const [next] = this.#waiting;
    if (next) {
      this.#waiting.delete(next);
      next();
    } else {
      this.#free++;
    }
  }
}

const limiters = new WeakMap<SessionState, Limiter>();

/**
 * Returns a session's limiter. All streams of the session use it, so functions of a stream that has
 * ended still count.
 */
export function limiterOf(state: SessionState): Limiter {
  const limiter = limiters.get(state) ?? new Limiter();
  limiters.set(state, limiter);
  return limiter;
}
