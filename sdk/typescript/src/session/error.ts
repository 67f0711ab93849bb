/** Is thrown if the engine violated the protocol. The stream cannot be used any longer. */
export class ProtocolError extends Error {
  override name: string = "ProtocolError";
}

/**
 * Is thrown if engine and hook have no protocol version in common. The engine may use unary calls.
 */
export class VersionMismatch extends ProtocolError {
  override name = "VersionMismatch";
}
