/** Statistics about the SDK's caches. */

/** Describes a cache in this process, over all servers and attachments. */
export interface CacheStats {
  /**
   * The cache's name. "sessions" holds the objects and last responses that stream sessions
   * remember; "objects" holds parsed objects.
   */
  readonly cache: "sessions" | "objects";
  /** An estimate of the memory in use. For "objects" it is an upper limit. */
  readonly bytes: number;
  /** How many parents the cache knows. For "objects": how many objects, at most. */
  readonly entries: number;
  /** How many lookups found an entry since the process started. */
  readonly hits: number;
  /** How many lookups did not. */
  readonly misses: number;
}

/** Adds up the caches of one kind. */
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

/** Covers all sessions in the process. */
export const sessionCaches = new CacheMeter();

/** Covers all parsed objects in the process. */
export const objectCache = new CacheMeter();

/** Returns statistics about each cache as of now. */
export function allCacheStats(): CacheStats[] {
  return [{ cache: "sessions", ...sessionCaches }, { cache: "objects", ...objectCache }];
}
