/** The engine has violated the protocol. The stream cannot continue. */
export class ProtocolError extends Error {
  override name: string = "ProtocolError";
}

/** Engine and hook have no common version of the protocol. The engine may use unary calls. */
export class VersionMismatch extends ProtocolError {
  override name = "VersionMismatch";
}
