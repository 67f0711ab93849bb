// The reference hook of docs/reference/checking-an-sdk.md on the SDK in TypeScript.

import { setTimeout } from "node:timers/promises";
import { parseArgs } from "node:util";
import {
  attach, composite, Reject, RetryAfter, Server, TriggerError,
} from "../../../sdk/typescript/dist/index.js";

let service; // the Server or the Attachment

async function sync({ controller, parent, children, related }, { signal }) {
  const { spec } = parent;
  if (spec.sleepMilliseconds) {
    await setTimeout(spec.sleepMilliseconds, undefined, { signal });
  }
  if (spec.reject) {
    throw new Reject("KitRejected", spec.reject);
  }
  if (spec.retryAfterSeconds) {
    throw new RetryAfter(spec.retryAfterSeconds, "later");
  }
  if (spec.fail) {
    throw new Error(spec.fail);
  }
  const observed = Object.entries(children["ConfigMap.v1"]);
  const status = {
    children: observed.length,
    texts: Object.fromEntries(observed.map(([name, child]) => [name, child.data.text])),
    related: Object.keys(related.peers?.objects ?? {}).length,
  };
  if (spec.number !== undefined) {
    status.number = spec.number;
  }
  if (spec.blob !== undefined) {
    status.blobBytes = Buffer.byteLength(spec.blob);
  }
  if (spec.trigger !== undefined) {
    Object.assign(status, await trigger(controller, parent, spec.trigger));
  }
  return { status, children: (spec.entries ?? []).map((entry) => child(entry, spec.repeat ?? 1)) };
}

function child({ name, text, number }, repeat) {
  const data = { text: text.repeat(repeat), ...(number === undefined ? {} : { number }) };
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data };
}

/** Requests a sync of the parent, and returns the result for the status. */
async function trigger(controller, { metadata: { namespace, name } }, reason) {
  try {
    const triggered = await service.trigger({
      controllerKind: controller.kind, controllerName: controller.metadata.name, parents: [{ namespace, name }], reason,
    });
    return { triggered };
  } catch (error) {
    if (!(error instanceof TriggerError)) {
      throw error;
    }
    return { triggerError: { code: error.code, message: error.message } };
  }
}

function customize({ parent }) {
  return {
    relatedResources: [{ apiVersion: "v1", resource: "configmaps", names: [parent.metadata.name] }],
  };
}

const { values } = parseArgs({
  options: {
    "listen": { type: "string", default: "127.0.0.1:0" },
    "attach": { type: "string" },
    "worker": { type: "string", default: "kit" },
    "ca-file": { type: "string" },
    "token-file": { type: "string" },
  },
});
const hooks = [composite({ sync, customize })];
if (values.attach) {
  service = attach(hooks, {
    address: values.attach, caFile: values["ca-file"], tokenFile: values["token-file"], worker: values.worker,
  });
} else {
  service = new Server(hooks, { listen: values.listen });
  console.log(`listening on ${await service.start()}`);
}
process.once("SIGTERM", () => void service.stop(1));
