/** Runs a hook program: flags, environment variables, signals, and a graceful stop. */
import { parseArgs } from "node:util";
import { attach, type AttachOptions, type Intercept } from "./attach.js";
import { ControllerKind } from "./constants.js";
import type { Hook } from "./hooks.js";
import { DEFAULT_LISTEN, Server, type ServerOptions } from "./server.js";

const USAGE = `flags; each has an environment variable (--tls-cert: HOOKLOOP_HOOK_TLS_CERT):
  --listen HOST:PORT    address to listen on, or unix:///path; port 0 selects a free port
                        (default: ${DEFAULT_LISTEN}, or none with --attach)
  --tls-cert FILE       PEM file with the certificate; empty means plain text
  --tls-key FILE        PEM file with the certificate's key
  --client-ca FILE      PEM file with the authorities of client certificates; empty requires none
  --client-name NAME    with --client-ca: name that a client certificate must have
  --token-file FILE     file with the tokens of callers, one per line; with --attach, with the token
                        for the gateway
  --build-id NAME       name of the hook's build; if it changes, the engine calls the hook for every
                        parent again (default: a hash of the code files in the program's folder)

  --attach HOST:PORT    the engine's gateway, to dial in
  --worker NAME         the name to which controllers refer
  --intercept KIND/NAME instead of a worker: replace the hook of this controller for some parents
  --namespace NAME      with --intercept: only parents in this namespace
  --name NAME           with --intercept: only parents with this name
  --labels SELECTOR     with --intercept: only parents with these labels, in kubectl's syntax
  --ca-file FILE        PEM file with the CA of the gateway's certificate; empty means the system's
  --server-name NAME    the name in the gateway's certificate, if it is not the host of its address
  --client-cert FILE    PEM file with a client certificate
  --client-key FILE     PEM file with the certificate's key`;

const FLAGS = [
  "listen", "tls-cert", "tls-key", "client-ca", "client-name", "build-id", "attach", "worker", "intercept",
  "namespace", "name", "labels", "ca-file", "server-name", "token-file", "client-cert", "client-key",
] as const;
type Values = Record<(typeof FLAGS)[number], string>;

/** Options for a program that listens, dials in, or both. */
interface ProgramOptions {
  readonly server?: ServerOptions;
  readonly attach?: AttachOptions;
}

/** A server or an attachment. */
interface Running {
  stop(): Promise<void>;
}

/**
 * Serves hooks until SIGTERM or SIGINT. Running calls may finish within the grace period.
 *
 * It reads flags from the command line (--help prints them) and environment variables. It prints
 * "listening on ADDRESS", and "attached to ADDRESS" when the first session with the gateway opens.
 * After an error the program exits with code 1.
 */
export async function serve(...hooks: readonly Hook[]): Promise<void> {
  try {
    const options = optionsOf(parseFlags(process.argv.slice(2)));
    const stopped = new Promise<void>((resolve) => {
      process.once("SIGTERM", () => resolve());
      process.once("SIGINT", () => resolve());
    });
    const running = await start(hooks, options);
    await stopped;
    await Promise.all(running.map((one) => one.stop()));
  } catch (error) {
    console.error(`hookloop: ${(error as Error).message}`);
    process.exitCode = 1;
  }
}

async function start(hooks: readonly Hook[], options: ProgramOptions): Promise<Running[]> {
  const running: Running[] = [];
  if (options.server) {
    const server = new Server(hooks, options.server);
    console.log(`listening on ${await server.start()}`);
    running.push(server);
  }
  if (options.attach) {
    const attachment = attach(hooks, options.attach);
    const { address } = options.attach;
    void attachment.attached().then(() => console.log(`attached to ${address}`));
    running.push(attachment);
  }
  return running;
}

/** Returns a value for each flag. A flag that is not given defaults to its environment variable. */
function parseFlags(args: string[]): Values {
  const options = Object.fromEntries(FLAGS.map((flag) => [flag, { type: "string" as const }]));
  const { values } = parseArgs({ args, options: { ...options, help: { type: "boolean", short: "h" } } });
  if (values.help) {
    console.log(USAGE);
    process.exit(0);
  }
  const valueOf = (flag: string): string =>
    (values as Record<string, string | undefined>)[flag]
    ?? process.env[`HOOKLOOP_HOOK_${flag.toUpperCase().replaceAll("-", "_")}`] ?? "";
  return Object.fromEntries(FLAGS.map((flag) => [flag, valueOf(flag)])) as Values;
}

function optionsOf(values: Values): ProgramOptions {
  const buildId = values["build-id"];
  const server: ServerOptions = {
    listen: values.listen || DEFAULT_LISTEN,
    tlsCert: values["tls-cert"],
    tlsKey: values["tls-key"],
    clientCa: values["client-ca"],
    clientName: values["client-name"],
    tokenFile: values.attach ? "" : values["token-file"],
    buildId,
  };
  if (!values.attach) {
    return { server };
  }
  const attachment: AttachOptions = {
    address: values.attach,
    caFile: values["ca-file"],
    serverName: values["server-name"],
    tokenFile: values["token-file"],
    clientCert: values["client-cert"],
    clientKey: values["client-key"],
    worker: values.worker,
    ...(values.intercept ? { intercept: interceptOf(values) } : {}),
    buildId,
  };
  return values.listen ? { server, attach: attachment } : { attach: attachment };
}

function interceptOf(values: Values): Intercept {
  const [kind, controllerName, ...rest] = values.intercept.split("/");
  const controllerKind = Object.values(ControllerKind).find((known) => known === kind);
  if (!controllerKind || !controllerName || rest.length > 0) {
    const expected = "expected CompositeController/NAME, DecoratorController/NAME or MapController/NAME";
    throw new TypeError(`--intercept is ${JSON.stringify(values.intercept)}, ${expected}`);
  }
  const { namespace, name, labels: labelSelector } = values;
  return { controllerKind, controllerName, namespace, name, labelSelector };
}
