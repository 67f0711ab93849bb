/** The errors that a hook throws to say more than "it failed", and those that it meets. */

/**
 * Refuses a parent as it is. The reason (one word in CamelCase) and the message are shown on the parent, which is asked about again when
 * something changes. Every other error is tried again with backoff.
 */
export class Reject extends Error {
  override name = "Reject";
  constructor(readonly reason: string, message: string) {
    super(message);
  }
}

/** Asks for the same question again after some seconds, without backoff. */
export class RetryAfter extends Error {
  override name = "RetryAfter";
  constructor(readonly seconds: number, message: string) {
    super(message);
    if (!(seconds >= 0 && Number.isFinite(seconds))) {
      throw new RangeError(`RetryAfter: seconds is ${seconds}, expected 0 or more`);
    }
  }
}

/** Related objects could not be read: whether there are any is not known. */
export class RelatedUnknown extends Error {
  override name = "RelatedUnknown";
}

/** The API server does not serve the resource of related objects. */
export class NotServed extends RelatedUnknown {
  override name = "NotServed";
}

/** A hook's function answered something that no answer can be. The message names the item and what was expected. */
export class InvalidResponse extends Error {
  override name = "InvalidResponse";
}

/** A question cannot be read. */
export class InvalidRequest extends Error {
  override name = "InvalidRequest";
}
