/**
 * Hooks of Hookloop controllers in TypeScript.
 *
 * A hook is a function from the observed state of one parent to its desired state; serve is a whole program around it:
 *
 *     serve(composite({ sync: (request) => ({ children: [page(request.parent)] }) }));
 *
 * The function is level-triggered: it may be asked the same question again at any time and should answer it the same way. It is called
 * concurrently, for different parents, and may be async. It needs neither a client of the API server nor a server to be tested:
 * "@hookloop/hook/testing" calls it.
 *
 * Data comes from the engine's requests under the contract, packages hookloop.hook.v1 and hookloop.stream.v1 of proto: in single calls, or as
 * changes over one stream, which the engine opens, or the hook (attach). Unit tests cover the translation and the stream's state, and tests
 * over a loopback connection the server and both ways of a stream.
 *
 * @packageDocumentation
 */
export { attach, Attachment } from "./attach.js";
export type { AttachOptions, Delays, Intercept } from "./attach.js";
export { child, dependency } from "./child.js";
export type { Child, ChildOptions, Dependency } from "./child.js";
export { NotServed, Reject, RelatedUnknown, RetryAfter } from "./errors.js";
export { trigger } from "./gateway.js";
export type { GatewayOptions } from "./gateway.js";
export { composite, decorator } from "./hooks.js";
export type {
  Call, CompositeFunctions, Condition, CustomizeResponse, CustomizeFunction, CustomizeRequest, DecorateResponse, DecorateFunction, DecorateRequest,
  DecoratorFunctions, Event, Hook, LabelSelector, RelatedRule, Remarks, Result, SyncResponse, SyncFunction, SyncRequest,
} from "./hooks.js";
export { parse, stringify } from "./json.js";
export { RelatedGroup } from "./objects.js";
export type { Frozen, Group, Groups, KubernetesObject } from "./objects.js";
export { serve } from "./program.js";
export { requireRelated } from "./related.js";
export { childrenOf } from "./request.js";
export { Server } from "./server.js";
export type { ServerOptions } from "./server.js";
export { TriggerError } from "./trigger.js";
export type { Trigger } from "./trigger.js";
