/** Who may call a server: the name in a caller's certificate, or a token. */
import { createHash, timingSafeEqual } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { isIP } from "node:net";
import type { PeerCertificate } from "node:tls";
import { ServerInterceptingCall, status as Code, type Metadata, type ServerInterceptor, type ServerListener } from "@grpc/grpc-js";

/** What callers must show, beside a certificate of the right authority, which the TLS handshake checks. */
export interface CallerOptions {
  clientName?: string | undefined;
  tokenFile?: string | undefined;
}

/** Why a call is refused. */
interface Refusal {
  readonly code: Code;
  readonly details: string;
}

const HEALTH = "/grpc.health.v1.Health/";

/** Interceptors that refuse calls before their bodies are read. The health service is for everyone: probes have no credentials. */
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
  return !expected || names.includes(expected) ? undefined
    : { code: Code.UNAUTHENTICATED, details: `the caller's certificate is for ${JSON.stringify(names)}, expected ${JSON.stringify(expected)}` };
}

const KINDS = new Set(["DNS", "URI", "email", "IP Address"]);

/** The names in a certificate: its subject's common name and the alternative ones, of which Node.js quotes those with special characters. */
function namesOf({ subject, subjectaltname }: PeerCertificate): string[] {
  const common: unknown = subject?.CN;
  const names = (Array.isArray(common) ? common : [common]).filter((name): name is string => typeof name === "string");
  // Names of other kinds are matched, too: they may hold what looks like one of these.
  for (const [, kind, name] of (subjectaltname ?? "").matchAll(/(?:^|, )([^:"]*):("(?:[^"\\]|\\.)*"|[^,]*)/g)) {
    if (KINDS.has(kind!)) {
      names.push(name!.startsWith('"') ? JSON.parse(name!) as string : name!);
    }
  }
  return names;
}

/** The tokens that callers may send, one in each line of a file. It is read anew when it has changed; while it cannot be read, no token is good. */
class Tokens {
  readonly #file: string;
  #seen: string;
  #sums: Buffer[];
  #error: string | undefined;

  constructor(file: string) {
    this.#file = file;
    [this.#seen, this.#sums] = [this.#stamp(), this.#read()];
  }

  refusal(metadata: Metadata): Refusal | undefined {
    const sent = metadata.get("authorization");
    if (sent.length !== 1) {
      return { code: Code.UNAUTHENTICATED, details: "the call has no token; expected the header authorization: Bearer TOKEN" };
    }
    const [, token] = /^Bearer (.*)$/.exec(String(sent[0])) ?? [];
    if (token === undefined) {
      return { code: Code.UNAUTHENTICATED, details: "the call has another kind of authorization; expected Bearer" };
    }
    if (!this.#current()) {
      return { code: Code.UNAVAILABLE, details: "the hook cannot read its file of tokens" };
    }
    const asked = sum(token);
    const good = this.#sums.map((known) => timingSafeEqual(asked, known)).includes(true);
    return good ? undefined : { code: Code.UNAUTHENTICATED, details: "the call's token is not one that this hook knows" };
  }

  /** Reads the file if it has changed, and returns whether its tokens are known. */
  #current(): boolean {
    try {
      const now = this.#stamp();
      if (now !== this.#seen) {
        this.#seen = now;
        [this.#sums, this.#error] = [this.#read(), undefined];
      }
    } catch (error) {
      const { message } = error as Error;
      if (message !== this.#error) {
        console.error(`the tokens of callers cannot be read; every call is refused: ${message}`);
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
    const sums = readFileSync(this.#file, "utf8").split("\n").map((line) => line.trim()).filter((token) => token !== "").map(sum);
    if (sums.length === 0) {
      throw new Error(`${this.#file} has no token, expected one in each line`);
    }
    return sums;
  }
}

function sum(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}

/** Warns of a server that anyone may call. */
export function warnIfUnauthenticated(address: string): void {
  const host = address.slice(0, address.lastIndexOf(":")).replace(/^\[(.*)\]$/, "$1");
  const loopback = host === "localhost" || host === "::1" || isIP(host) === 4 && host.startsWith("127.");
  if (!loopback) {
    console.error(`anyone who reaches ${address} can call the hook; set --client-ca or --token-file`);
  }
}
