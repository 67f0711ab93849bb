/**
 * Write hooks for Hookloop controllers in TypeScript.
 *
 * A hook is a function. It receives the observed state of a parent object, and returns the objects
 * that should exist for it. serve makes a program of this function:
 *
 *     import { composite, serve } from "@hookloop/hook";
 *
 *     serve(composite({
 *       sync: ({ parent }) => ({
 *         children: [{ apiVersion: "v1", kind: "ConfigMap", metadata: { name: parent.metadata.name } }],
 *       }),
 *     }));
 *
 * Use composite, decorator or mapper, after the kind of the controller that will call the hook. If
 * your program has a main function of its own, use Server to listen, or attach to connect to a
 * gateway.
 *
 * Hookloop may call the function at any time, also with a request that it has seen before. The
 * function should then return the same response. It may be async, and is called for different
 * parents at the same time. An error is shown on the parent and retried with backoff; throw Reject
 * or RetryAfter to choose something else. To test a function, call it with
 * "@hookloop/hook/testing", which needs neither a server nor a cluster.
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
