/** TLS credentials of a server that reloads rotated certificates. */
import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import { experimental, ServerCredentials } from "@grpc/grpc-js";

/** The default number of seconds between two checks of the files. */
const REFRESH_SECONDS = 10;

/** The TLS options of a server. */
export interface TLSFiles {
  tlsCert?: string | undefined;
  tlsKey?: string | undefined;
  clientCa?: string | undefined;
  clientName?: string | undefined;
  refreshSeconds?: number | undefined;
}

/**
 * Returns TLS credentials, or plain text credentials if no files are named. It reads the files, so
 * that a wrong name is an error at start.
 */
export function serverCredentials(
  { tlsCert, tlsKey, clientCa, clientName, refreshSeconds = REFRESH_SECONDS }: TLSFiles,
): ServerCredentials {
  if (!tlsCert !== !tlsKey) {
    throw new TypeError("TLS: one of certificate and key is missing; expected both files, or neither");
  }
  if (clientName && !clientCa) {
    throw new TypeError("client name: no caller has a certificate without client authorities; expected both");
  }
  if (!tlsCert || !tlsKey) {
    if (clientCa) {
      throw new TypeError("client authorities: client certificates need TLS; expected a certificate and its key, too");
    }
    return ServerCredentials.createInsecure();
  }
  const files = new Files(tlsCert, tlsKey, clientCa, refreshSeconds);
  // The first argument provides the server's certificate, the second the authorities of client
  // certificates.
  return experimental.createCertificateProviderServerCredentials(files, clientCa ? files : null, Boolean(clientCa));
}

/** The content of the files. */
interface Content {
  readonly pair: experimental.IdentityCertificateUpdate;
  readonly ca: experimental.CaCertificateUpdate | null;
}

/**
 * A certificate, its key, and optionally the authorities of client certificates. While the files
 * are invalid, the previous content stays in use.
 */
class Files implements experimental.CertificateProvider {
  readonly #names: { readonly cert: string; readonly key: string; readonly ca: string | undefined };
  readonly #refresh: number;
  readonly #identities = new Set<experimental.IdentityCertificateUpdateListener>();
  readonly #authorities = new Set<experimental.CaCertificateUpdateListener>();
  #content: Content;
  #timer: NodeJS.Timeout | undefined;

  constructor(cert: string, key: string, ca: string | undefined, refreshSeconds: number) {
    this.#names = { cert, key, ca };
    this.#refresh = refreshSeconds * 1000;
    this.#content = this.#read();
  }

  addIdentityCertificateListener(listener: experimental.IdentityCertificateUpdateListener): void {
    this.#identities.add(listener);
    this.#watch();
    process.nextTick(() => listener(this.#content.pair));
  }

  removeIdentityCertificateListener(listener: experimental.IdentityCertificateUpdateListener): void {
    this.#identities.delete(listener);
    this.#watch();
  }

  addCaCertificateListener(listener: experimental.CaCertificateUpdateListener): void {
    this.#authorities.add(listener);
    this.#watch();
    process.nextTick(() => listener(this.#content.ca));
  }

  removeCaCertificateListener(listener: experimental.CaCertificateUpdateListener): void {
    this.#authorities.delete(listener);
    this.#watch();
  }

  /** Checks the files while there is a listener. */
  #watch(): void {
    if (this.#identities.size + this.#authorities.size > 0) {
      this.#timer ??= setInterval(() => this.#check(), this.#refresh).unref();
    } else {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
  }

  #check(): void {
    const before = this.#content;
    try {
      this.#content = this.#read();
    } catch (error) {
      console.error(`TLS certificate ${this.#names.cert}: ${(error as Error).message}; the previous one stays in use`);
      return;
    }
    const { pair, ca } = this.#content;
    if (!pair.certificate.equals(before.pair.certificate) || !pair.privateKey.equals(before.pair.privateKey)) {
      this.#identities.forEach((listener) => listener(pair));
    }
    if (ca && !ca.caCertificate.equals(before.ca!.caCertificate)) {
      this.#authorities.forEach((listener) => listener(ca));
    }
  }

  #read(): Content {
    const { cert, key, ca } = this.#names;
    const [certificate, privateKey] = [readFileSync(cert), readFileSync(key)];
    createSecureContext({ cert: certificate, key: privateKey }); // throws if the key does not match
    return { pair: { certificate, privateKey }, ca: ca ? { caCertificate: authorities(ca) } : null };
  }
}

function authorities(file: string): Buffer {
  const text = readFileSync(file);
  if (!text.includes("-----BEGIN CERTIFICATE-----")) {
    throw new TypeError(`${file} has no certificate, expected PEM`);
  }
  return text;
}
