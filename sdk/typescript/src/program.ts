/** A whole main function around hooks: flags and variables, signals, a graceful stop. */
import { parseArgs } from "node:util";
import { attach, type AttachOptions, type Intercept } from "./attach.js";
import type { Hook } from "./hooks.js";
import { DEFAULT_LISTEN, Server, type ServerOptions } from "./server.js";

const USAGE = `flags, each of which may also stand in a variable (--tls-cert: HOOKLOOP_HOOK_TLS_CERT):
  --listen HOST:PORT    address to listen on; port 0 takes a free one (default: ${DEFAULT_LISTEN}, or none with --attach)
  --tls-cert FILE       PEM file with the certificate; empty means plain text
  --tls-key FILE        PEM file with the certificate's key
  --client-ca FILE      PEM file with the authorities of callers' certificates; empty asks for none
  --client-name NAME    with --client-ca: name that a caller's certificate must have
  --token-file FILE     file with the tokens of callers, one in each line; with --attach, with the token that is sent to the gateway
  --build-id NAME       name of the hook's build; a change makes the engine ask about every parent again (default: a hash of the files of
                        code in the program's folder)

  --attach HOST:PORT    the engine's gateway, to dial in
  --worker NAME         the name to which controllers refer
  --intercept KIND/NAME instead of a worker: take parents of this controller from its hook
  --namespace NAME      with --intercept: only parents in this namespace
  --name NAME           with --intercept: only parents with this name
  --labels SELECTOR     with --intercept: only parents with these labels, as kubectl takes a selector
  --ca-file FILE        PEM file with the CA of the gateway's certificate; empty means the system's
  --server-name NAME    the name in the gateway's certificate, where it is not the host of its address
  --client-cert FILE    PEM file with a client's certificate
  --client-key FILE     PEM file with the certificate's key`;

const FLAGS = [
  "listen", "tls-cert", "tls-key", "client-ca", "client-name", "build-id", "attach", "worker", "intercept", "namespace", "name", "labels", "ca-file", "server-name",
  "token-file", "client-cert", "client-key",
] as const;
type Values = Record<(typeof FLAGS)[number], string>;

/** What a program does: it listens, dials in, or both. */
interface Plan {
  readonly server?: ServerOptions;
  readonly attach?: AttachOptions;
}

/**
 * Serves hooks until SIGTERM or SIGINT; calls under way finish.
 *
 * It reads the command line (--help prints the flags) and variables, and prints "listening on ADDRESS", and "attached to ADDRESS" once the
 * first stream with the gateway is open. Hooks that cannot be served end the program.
 */
export async function serve(...hooks: readonly Hook[]): Promise<void> {
  try {
    const asked = plan(flags(process.argv.slice(2)));
    const told = new Promise<void>((resolve) => {
      process.once("SIGTERM", () => resolve());
      process.once("SIGINT", () => resolve());
    });
    const running = await begin(hooks, asked);
    await told;
    await Promise.all(running.map((one) => one.stop()));
  } catch (error) {
    console.error(`hookloop: ${(error as Error).message}`);
    process.exitCode = 1;
  }
}

async function begin(hooks: readonly Hook[], asked: Plan): Promise<{ stop: () => Promise<void> }[]> {
  const running: { stop: () => Promise<void> }[] = [];
  if (asked.server) {
    const server = new Server(hooks, asked.server);
    console.log(`listening on ${await server.start()}`);
    running.push(server);
  }
  if (asked.attach) {
    const attachment = attach(hooks, asked.attach);
    const { address } = asked.attach;
    void attachment.attached().then(() => console.log(`attached to ${address}`));
    running.push(attachment);
  }
  return running;
}

/** The flags' values; a variable stands in for a flag that is not given. */
function flags(args: string[]): Values {
  const options = Object.fromEntries(FLAGS.map((flag) => [flag, { type: "string" as const }]));
  const { values } = parseArgs({ args, options: { ...options, help: { type: "boolean", short: "h" } } });
  if (values.help) {
    console.log(USAGE);
    process.exit(0);
  }
  const valueOf = (flag: string): string =>
    (values as Record<string, string | undefined>)[flag] ?? process.env[`HOOKLOOP_HOOK_${flag.toUpperCase().replaceAll("-", "_")}`] ?? "";
  return Object.fromEntries(FLAGS.map((flag) => [flag, valueOf(flag)])) as Values;
}

function plan(values: Values): Plan {
  const buildId = values["build-id"];
  const server = {
    listen: values.listen || DEFAULT_LISTEN, tlsCert: values["tls-cert"], tlsKey: values["tls-key"], clientCa: values["client-ca"],
    clientName: values["client-name"], tokenFile: values.attach ? "" : values["token-file"], buildId,
  };
  if (!values.attach) {
    return { server };
  }
  const attachment: AttachOptions = {
    address: values.attach, buildId, caFile: values["ca-file"], serverName: values["server-name"], tokenFile: values["token-file"],
    clientCert: values["client-cert"], clientKey: values["client-key"], worker: values.worker,
    ...(values.intercept ? { intercept: interceptOf(values) } : {}),
  };
  return values.listen ? { server, attach: attachment } : { attach: attachment };
}

function interceptOf(values: Values): Intercept {
  const [kind, controllerName, ...rest] = values.intercept.split("/");
  if (kind !== "CompositeController" && kind !== "DecoratorController" || !controllerName || rest.length > 0) {
    throw new TypeError(`--intercept is ${JSON.stringify(values.intercept)}, expected CompositeController/NAME or DecoratorController/NAME`);
  }
  return { controllerKind: kind, controllerName, namespace: values.namespace, name: values.name, labelSelector: values.labels };
}
