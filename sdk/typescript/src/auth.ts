/** Authenticates callers by a name in a client certificate, or by a token. */
import { createHash, timingSafeEqual } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { isIP } from "node:net";
import type { PeerCertificate } from "node:tls";
import {
  ServerInterceptingCall, status as Code, type Metadata, type ServerInterceptor, type ServerListener,
} from "@grpc/grpc-js";

/** What callers must present. The TLS handshake has already checked who signed the certificate. */
export interface CallerOptions {
  clientName?: string | undefined;
  tokenFile?: string | undefined;
}

/** The status for a call without valid credentials. */
interface Refusal {
  readonly code: Code;
  readonly details: string;
}

const HEALTH = "/grpc.health.v1.Health/";

/**
 * Returns interceptors that reject a call without valid credentials before the server reads its
 * body. Health checks are always accepted, because probes send no credentials.
 */
export function callerInterceptors({ clientName, tokenFile }: CallerOptions): ServerInterceptor[] {
  if (!clientName && !tokenFile) {
    return [];
  }
  const tokens = tokenFile ? new Tokens(tokenFile) : undefined;
  return [(method, call) => {
    const onReceiveMetadata: ServerListener["onReceiveMetadata"] = (metadata, next) => {
      const refused = method.path.startsWith(HEALTH) ? undefined
        : wrongName(clientName, call.getAuthContext().sslPeerCertificate) ?? tokens?.refusal(metadata);
      if (refused) {
        call.sendStatus(refused);
      } else {
        next(metadata);
      }
    };
    return new ServerInterceptingCall(call, { start: (next) => next({ onReceiveMetadata }) });
  }];
}

function wrongName(expected: string | undefined, certificate: PeerCertificate | undefined): Refusal | undefined {
  const names = certificate ? namesOf(certificate) : [];
  if (!expected || names.includes(expected)) {
    return undefined;
  }
  const details = `the caller's certificate is for ${JSON.stringify(names)}, expected ${JSON.stringify(expected)}`;
  return { code: Code.UNAUTHENTICATED, details };
}

const KINDS = new Set(["DNS", "URI", "email", "IP Address"]);

/**
 * Returns the common name and the alternative names in a certificate. Node.js quotes alternative
 * names that contain special characters.
 */
function namesOf({ subject, subjectaltname }: PeerCertificate): string[] {
  const common: unknown = subject?.CN;
  const names = (Array.isArray(common) ? common : [common]).filter((name): name is string => typeof name === "string");
  // The pattern matches names of other kinds too, because they may contain text that looks like one
  // of these.
  for (const [, kind, name] of (subjectaltname ?? "").matchAll(/(?:^|, )([^:"]*):("(?:[^"\\]|\\.)*"|[^,]*)/g)) {
    if (KINDS.has(kind!)) {
      names.push(name!.startsWith('"') ? JSON.parse(name!) as string : name!);
    }
  }
  return names;
}

/**
 * Checks tokens against a file that lists one token on each line. The file is read again when it
 * changes. While it cannot be read, no token is accepted.
 */
class Tokens {
  readonly #file: string;
  #seen: string;
  #hashes: Buffer[];
  #error: string | undefined;

  constructor(file: string) {
    this.#file = file;
    [this.#seen, this.#hashes] = [this.#stamp(), this.#read()];
  }

  refusal(metadata: Metadata): Refusal | undefined {
    const sent = metadata.get("authorization");
    if (sent.length !== 1) {
      const details = "the call has no token; expected the header authorization: Bearer TOKEN";
      return { code: Code.UNAUTHENTICATED, details };
    }
    const [, token] = /^Bearer (.*)$/.exec(String(sent[0])) ?? [];
    if (token === undefined) {
      return { code: Code.UNAUTHENTICATED, details: "the call has another kind of authorization; expected Bearer" };
    }
    if (!this.#current()) {
      return { code: Code.UNAVAILABLE, details: "the hook cannot read its file of tokens" };
    }
    const hash = sha256(token);
    const valid = this.#hashes.map((known) => timingSafeEqual(hash, known)).includes(true);
    const details = "the call's token is not one that this hook knows";
    return valid ? undefined : { code: Code.UNAUTHENTICATED, details };
  }

  /** Reads the file again if it has changed. Returns whether its tokens are known. */
  #current(): boolean {
    try {
      const now = this.#stamp();
      if (now !== this.#seen) {
        this.#seen = now;
        [this.#hashes, this.#error] = [this.#read(), undefined];
      }
    } catch (error) {
      const { message } = error as Error;
      if (message !== this.#error) {
        console.error(`token file: ${message}; all calls are rejected until it can be read`);
      }
      [this.#seen, this.#error] = ["", message];
    }
    return this.#error === undefined;
  }

  #stamp(): string {
    const { mtimeNs, size, ino, dev } = statSync(this.#file, { bigint: true });
    return [mtimeNs, size, ino, dev].join();
  }

  #read(): Buffer[] {
    const lines = readFileSync(this.#file, "utf8").split("\n").map((line) => line.trim());
    const hashes = lines.filter((token) => token !== "").map(sha256);
    if (hashes.length === 0) {
      throw new Error(`${this.#file} has no token, expected one per line`);
    }
    return hashes;
  }
}

function sha256(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}

/** Logs a warning if a server without authentication listens on an address that is not loopback. */
export function warnIfUnauthenticated(address: string): void {
  const host = address.slice(0, address.lastIndexOf(":")).replace(/^\[(.*)\]$/, "$1");
  const loopback = host === "localhost" || host === "::1" || isIP(host) === 4 && host.startsWith("127.");
  if (!loopback) {
    console.error(`any client that reaches ${address} can call the hook; set --client-ca or --token-file`);
  }
}
