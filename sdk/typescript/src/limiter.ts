/**
 * Bounds the functions that run at a time. A cancelled call counts until its function has ended.
 */
import type { SessionState } from "./session/state.js";

/** The limit for the functions of one session, and for those of all unary calls. */
export const MAX_CONCURRENT_CALLS = 64;

/** A semaphore that serves waiters in order. */
export class Limiter {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(limit = MAX_CONCURRENT_CALLS) {
    this.#free = limit;
  }

  /** Waits for a free place. Resolves to false if the signal aborts first. */
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

  /** Returns a place. */
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
 * Returns the limiter of a session. Streams of the session share it, so functions of an ended
 * stream count.
 */
export function limiterOf(state: SessionState): Limiter {
  const limiter = limiters.get(state) ?? new Limiter();
  limiters.set(state, limiter);
  return limiter;
}
