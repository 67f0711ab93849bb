/** The engine has sent what the protocol does not allow. The stream is of no more use. */
export class ProtocolError extends Error {
  override name: string = "ProtocolError";
}

/** The engine speaks no version of the protocol that the hook speaks. It may ask by unary calls. */
export class VersionMismatch extends ProtocolError {
  override name = "VersionMismatch";
}
