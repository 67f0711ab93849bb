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
  refreshSeconds?: number | undefined;
}

/** TLS where files are named. They are read once here, so that a wrong name is told at start. */
export function serverCredentials({ tlsCert, tlsKey, refreshSeconds = REFRESH }: TLSFiles): ServerCredentials {
  if (!tlsCert && !tlsKey) {
    return ServerCredentials.createInsecure();
  }
  if (!tlsCert || !tlsKey) {
    throw new TypeError("TLS: one of certificate and key is missing; expected both files, or neither");
  }
  // Only the first argument is looked at for the server's own certificate; without the second no client is asked for one.
  return experimental.createCertificateProviderServerCredentials(new Files(tlsCert, tlsKey, refreshSeconds), null, false);
}

type Listener = experimental.IdentityCertificateUpdateListener;

/** A certificate and its key in files. While what they hold is no pair, the last pair stays. */
class Files implements experimental.CertificateProvider {
  readonly #files: readonly [cert: string, key: string];
  readonly #refresh: number;
  readonly #listeners = new Set<Listener>();
  #pair: experimental.IdentityCertificateUpdate;
  #timer: NodeJS.Timeout | undefined;

  constructor(cert: string, key: string, refreshSeconds: number) {
    this.#files = [cert, key];
    this.#refresh = refreshSeconds * 1000;
    this.#pair = this.#read();
  }

  addIdentityCertificateListener(listener: Listener): void {
    this.#listeners.add(listener);
    this.#timer ??= setInterval(() => this.#look(), this.#refresh).unref();
    process.nextTick(listener, this.#pair);
  }

  removeIdentityCertificateListener(listener: Listener): void {
    this.#listeners.delete(listener);
    if (this.#listeners.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
  }

  addCaCertificateListener(): void {} // no client is asked for a certificate
  removeCaCertificateListener(): void {}

  #look(): void {
    let pair;
    try {
      pair = this.#read();
    } catch (error) {
      console.error(`TLS certificate ${this.#files[0]}: ${(error as Error).message}; the one before stays in use`);
      return;
    }
    if (!pair.certificate.equals(this.#pair.certificate) || !pair.privateKey.equals(this.#pair.privateKey)) {
      this.#pair = pair;
      this.#listeners.forEach((listener) => listener(pair));
    }
  }

  #read(): experimental.IdentityCertificateUpdate {
    const [certificate, privateKey] = this.#files.map((file) => readFileSync(file)) as [Buffer, Buffer];
    createSecureContext({ cert: certificate, key: privateKey }); // refuses what is no pair
    return { certificate, privateKey };
  }
}
