/** Errors that a hook's function throws, and errors that it can get. */

/**
 * Rejects the parent in its present state. Hookloop shows the reason (one word in CamelCase) and
 * the message on the parent, and calls the hook again after a change. Hookloop retries all other
 * errors with backoff.
 */
export class Reject extends Error {
  override name = "Reject";
  constructor(readonly reason: string, message: string) {
    super(message);
  }
}

/** Requests the same call again after a number of seconds, without backoff. */
export class RetryAfter extends Error {
  override name = "RetryAfter";
  constructor(readonly seconds: number, message: string) {
    super(message);
    if (!(seconds >= 0 && Number.isFinite(seconds))) {
      throw new RangeError(`RetryAfter: seconds is ${seconds}, expected 0 or more`);
    }
  }
}

/** The engine could not read related objects, so it is unknown which ones exist. */
export class RelatedUnknown extends Error {
  override name = "RelatedUnknown";
}

/** The API server does not serve the resource of related objects. */
export class NotServed extends RelatedUnknown {
  override name = "NotServed";
}

/** A hook's function returned an invalid response. The message has the item and the expectation. */
export class InvalidResponse extends Error {
  override name = "InvalidResponse";
}

/** A request of the engine cannot be decoded. */
export class InvalidRequest extends Error {
  override name = "InvalidRequest";
}

/** The server does not have the hook that a request names. */
export class NotFound extends Error {
  override name = "NotFound";
}
