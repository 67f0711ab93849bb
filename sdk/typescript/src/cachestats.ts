/** The size of the SDK's caches. */

/** One cache of the SDK, over all servers and attachments of the process. */
export interface CacheStats {
  /**
   * The cache. "sessions" has the objects and the last responses of sessions, "objects" has parsed
   * objects.
   */
  readonly cache: "sessions" | "objects";
  /** The approximate memory now, of "objects" at most. */
  readonly bytes: number;
  /** The number of parents, or at most of objects. */
  readonly entries: number;
  /** The number of lookups that found an entry, since the start of the process. */
  readonly hits: number;
  /** The number of lookups that did not. */
  readonly misses: number;
}

/** Meters one kind of cache. */
export class CacheMeter {
  bytes = 0;
  entries = 0;
  hits = 0;
  misses = 0;

  /** Changes the size. */
  add(bytes: number, entries: number): void {
    this.bytes += bytes;
    this.entries += entries;
  }

  /** Counts a lookup. */
  looked(found: boolean): void {
    if (found) {
      this.hits++;
    } else {
      this.misses++;
    }
  }
}

/** The meter of the sessions of the process. */
export const sessionCaches = new CacheMeter();

/** The meter of the parsed objects of the process. */
export const objectCache = new CacheMeter();

/** Returns the present state of each cache. */
export function allCacheStats(): CacheStats[] {
  return [{ cache: "sessions", ...sessionCaches }, { cache: "objects", ...objectCache }];
}
