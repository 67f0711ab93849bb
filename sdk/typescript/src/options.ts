/** Options that servers and attachments share. */

/** How many seconds calls may still run after a stop. */
export const DEFAULT_GRACE_PERIOD = 10;

/** Options of a hook, whether it listens (ServerOptions) or dials in (AttachOptions). */
export interface Options {
  /**
   * The name of the hook's build. If it changes, the engine calls the hook for every parent again.
   * The default is a hash of the program's files.
   */
  buildId?: string;
  /** How many seconds calls may still run after a stop. The default is 10. */
  gracePeriodSeconds?: number;
}
