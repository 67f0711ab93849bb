/** TLS of a server whose certificate may be rotated while it serves. */
import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import { experimental, ServerCredentials } from "@grpc/grpc-js";

/** Seconds between two looks at the files, unless the options say otherwise. */
const REFRESH = 10;

/** PEM files, and how often they are looked at. */
export interface TLSFiles {
  tlsCert?: string | undefined;
  tlsKey?: string | undefined;
  clientCa?: string | undefined;
  clientName?: string | undefined;
  refreshSeconds?: number | undefined;
}

/** TLS if files are named. They are read once here, so that a wrong name is an error at start. */
export function serverCredentials({ tlsCert, tlsKey, clientCa, clientName, refreshSeconds = REFRESH }: TLSFiles): ServerCredentials {
  if (!tlsCert !== !tlsKey) {
    throw new TypeError("TLS: one of certificate and key is missing; expected both files, or neither");
  }
  if (clientName && !clientCa) {
    throw new TypeError("client name: without client authorities no caller has a certificate; expected both");
  }
  if (!tlsCert || !tlsKey) {
    if (clientCa) {
      throw new TypeError("client authorities: callers have certificates over TLS only; expected a certificate and its key, too");
    }
    return ServerCredentials.createInsecure();
  }
  const files = new Files(tlsCert, tlsKey, clientCa, refreshSeconds);
  // The first argument has the server's own certificate. With the second, callers are asked for one of its authorities.
  return experimental.createCertificateProviderServerCredentials(files, clientCa ? files : null, Boolean(clientCa));
}

/** What the files hold. */
interface Content {
  readonly pair: experimental.IdentityCertificateUpdate;
  readonly ca: experimental.CaCertificateUpdate | null;
}

/** A certificate and its key, and perhaps the authorities of callers, in files. While these cannot be used, what they held before stays. */
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

  /** Looks at the files while somebody listens. */
  #watch(): void {
    if (this.#identities.size + this.#authorities.size > 0) {
      this.#timer ??= setInterval(() => this.#look(), this.#refresh).unref();
    } else {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
  }

  #look(): void {
    const before = this.#content;
    try {
      this.#content = this.#read();
    } catch (error) {
      console.error(`TLS certificate ${this.#names.cert}: ${(error as Error).message}; the one before stays in use`);
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
    createSecureContext({ cert: certificate, key: privateKey }); // refuses what is no pair
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
