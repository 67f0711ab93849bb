/** Several hooks of one kind in one server, and the features of responses. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { status as Code, type ServiceError } from "@grpc/grpc-js";
import { composite, named, Server, type Hook } from "../src/index.js";
import { used } from "../src/features.js";
import { CompositeHookService, type SyncResponse } from "../src/gen/hookloop/composite/v1/composite_pb.js";
import { DesiredObjectSchema } from "../src/gen/hookloop/hook/v1/desired_pb.js";
import { RelatedResourceRuleSchema } from "../src/gen/hookloop/hook/v1/related_pb.js";
import { ResponseDetailsSchema } from "../src/gen/hookloop/hook/v1/response_pb.js";
import { serving, syncRequest, unaryCall } from "./requests.js";

/** Returns a hook with its name in the status. */
function by(name: string): Hook {
  return composite({ sync: () => ({ status: { by: name } }) });
}

const { sync } = CompositeHookService.method;

test("the name in the request selects the hook", async () => {
  await serving([named("blog", by("blog")), named("shop", by("shop"))], async (client) => {
    for (const name of ["blog", "shop"]) {
      const response = await unaryCall(client, sync, { ...syncRequest(), meta: { hook: name } }) as SyncResponse;
      assert.equal(Buffer.from(response.status!).toString(), `{"by":"${name}"}`);
    }
    const refusals = {
      blgo: `this server has no composite hook "blgo"; it has "blog", "shop"`,
      "": `the request names no hook, and this server has several composite hooks: "blog", "shop"; ` +
        "name one in the field grpc.hook of the controller's spec",
    };
    for (const [name, details] of Object.entries(refusals)) {
      await assert.rejects(unaryCall(client, sync, { ...syncRequest(), meta: { hook: name } }),
        (error: ServiceError) => error.code === Code.NOT_FOUND && error.details === details);
    }
  });
});

test("without a name the only hook answers", async () => {
  for (const hook of [by("it"), named("it", by("it"))]) {
    await serving([hook], async (client) => {
      const response = await unaryCall(client, sync, syncRequest()) as SyncResponse;
      assert.equal(Buffer.from(response.status!).toString(), `{"by":"it"}`);
    });
  }
});

test("two hooks of one kind need different, valid names", () => {
  assert.throws(() => new Server([named("a", by("a")), named("a", by("b"))]), /two composite hooks have the name "a"/);
  assert.throws(() => new Server([named("a b", by("a"))]), /the name of a composite hook is "a b"/);
});

test("each feature of a response has a name", () => {
  const rule = create(RelatedResourceRuleSchema, { name: "a" });
  const details = (init: object) => ({ details: create(ResponseDetailsSchema, init) });
  const cases = {
    conditions: details({ conditions: [{}] }),
    depends_on: { desired: [create(DesiredObjectSchema, { dependsOn: [{}] })] },
    events: details({ events: [{}] }),
    named_rules: { rules: [rule] },
    ready: { desired: [create(DesiredObjectSchema, { ready: false })] },
    requirements: details({ requirements: [{}] }),
    results: details({ results: [{}] }),
  };
  for (const [name, parts] of Object.entries(cases)) {
    assert.deepEqual(used(parts), [name]);
  }
  assert.deepEqual(used({ desired: [create(DesiredObjectSchema)], ...details({}) }), []);
});

test("a feature that the engine does not honour is refused", async () => {
  const hook = composite({ sync: () => ({ events: [{ reason: "Seen" }] }) });
  await serving([hook], async (client) => {
    const meta = { engineVersion: "v0.0.9", features: ["conditions"] };
    const expected = `the response uses the feature "events", which the engine v0.0.9 does not honour; ` +
      "it honours conditions";
    await assert.rejects(unaryCall(client, sync, { ...syncRequest(), meta }),
      (error: ServiceError) => error.code === Code.FAILED_PRECONDITION && error.details === expected);
    meta.features.push("events");
    const response = await unaryCall(client, sync, { ...syncRequest(), meta }) as SyncResponse;
    assert.deepEqual(response.meta?.features, ["events"]);
  });
});
