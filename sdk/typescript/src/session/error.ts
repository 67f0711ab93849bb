/** The engine has sent what the protocol does not allow. The stream is of no more use. */
export class ProtocolError extends Error {
  override name = "ProtocolError";
}
