/** Errors that a hook's function throws, or that it should expect. */

/**
 * Tells Hookloop to wait until something changes. Throw it if the hook cannot do anything for the
 * parent as it is now. The parent shows the message and the reason, which should be one CamelCase
 * word. Hookloop retries all other errors with backoff.
 */
export class Reject extends Error {
  override name = "Reject";
  constructor(readonly reason: string, message: string) {
    super(message);
  }
}

/** Tells Hookloop to call the hook again after so many seconds, without backoff. */
export class RetryAfter extends Error {
  override name = "RetryAfter";
  constructor(readonly seconds: number, message: string) {
    super(message);
    if (!(seconds >= 0 && Number.isFinite(seconds))) {
      throw new RangeError(`RetryAfter: seconds is ${seconds}, expected 0 or more`);
    }
  }
}

/**
 * Is thrown if Hookloop could not read a group of related objects. Do not take it for an empty
 * group.
 */
export class RelatedUnknown extends Error {
  override name = "RelatedUnknown";
}

/** Is thrown if the API server does not serve the resource of a related group. */
export class NotServed extends RelatedUnknown {
  override name = "NotServed";
}

/** Is thrown for an invalid response. The message names the item and what was expected. */
export class InvalidResponse extends Error {
  override name = "InvalidResponse";
}

/** Is thrown for a request that cannot be decoded. */
export class InvalidRequest extends Error {
  override name = "InvalidRequest";
}

/** Is thrown if a request names a hook that this server does not have. */
export class NotFound extends Error {
  override name = "NotFound";
}
