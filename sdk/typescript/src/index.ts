/**
 * Hooks of Hookloop controllers in TypeScript.
 *
 * A hook is a function from the observed state of one parent to its desired state. serve runs it:
 *
 *     serve(composite({ sync: (request) => ({ children: [page(request.parent)] }) }));
 *
 * The function is level-triggered: Hookloop may repeat a request at any time, and the function
 * should return the same response. Hookloop calls it concurrently for different parents, and it may
 * be async. "@hookloop/hook/testing" calls it without an engine, a cluster or a server.
 *
 * The engine sends requests under the contract, packages hookloop.hook.v1 and hookloop.stream.v1:
 * in unary calls, or as changes over one stream. The engine opens the stream, or the hook does
 * (attach). Unit tests cover the encoding and the stream's state machine; tests over a loopback
 * connection cover the server, and streams from both sides.
 *
 * @packageDocumentation
 */
export { attach, Attachment } from "./attach.js";
export type { AttachOptions, Backoff, Intercept } from "./attach.js";
export { allCacheStats } from "./cachestats.js";
export type { CacheStats } from "./cachestats.js";
export { child, dependency } from "./child.js";
export type { Child, ChildOptions, Dependency } from "./child.js";
export { ConditionStatus, ControllerKind, EventType, Operator, Severity } from "./constants.js";
export { InvalidResponse, NotServed, Reject, RelatedUnknown, RetryAfter } from "./errors.js";
export { trigger } from "./gateway.js";
export type { Gateway } from "./gateway.js";
export { composite, decorator, mapper, named } from "./hooks.js";
export type {
  Call, CommonDetails, CompositeFunctions, Condition, CustomizeFunction, CustomizeRequest, CustomizeResponse,
  DecorateFunction, DecorateRequest, DecorateResponse, DecoratorFunctions, Event, Hook, LabelSelector,
  MapFinalizeFunction, MapFinalizeRequest, MapFunction, MapFunctions, MapRequest, MapResponse, Operation, RelatedRule,
  Requirement, ResponseDetails, Result, SyncFunction, SyncRequest, SyncResponse, TombstoneFunction, TombstoneRequest,
  TombstoneResponse,
} from "./hooks.js";
export { parse, stringify } from "./json.js";
export type * from "./kinds.js"; // all of it, so that programs can add members to KubernetesKinds
export { RelatedGroup } from "./objects.js";
export type { Desired, Frozen, Group, Groups, KubernetesObject, RelatedGroups, Unstructured } from "./objects.js";
export type { Options } from "./options.js";
export { serve } from "./program.js";
export { requireRelated } from "./related.js";
export { childrenOf } from "./request.js";
export { Server } from "./server.js";
export type { ServerOptions } from "./server.js";
export { TriggerError } from "./trigger.js";
export type { ParentName, Trigger } from "./trigger.js";
