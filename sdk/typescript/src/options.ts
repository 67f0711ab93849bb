/** Options that servers and attachments share. */

/** How many seconds calls may still run after a stop. */
export const DEFAULT_GRACE_PERIOD = 10;

/** Configures a hook, whether it listens (ServerOptions) or dials in (AttachOptions). */
export interface Options {
  /**
   * Identifies this build of the hook. When it changes, Hookloop calls the hook again for all
   * parents. Defaults to a hash of the program's files.
   */
  buildId?: string;
  /** How many seconds running calls may continue after stop. Defaults to 10. */
  gracePeriodSeconds?: number;
}
