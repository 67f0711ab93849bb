/**
 * Values of the fields that have a fixed set of words. Each is an object and a union type of one
 * name.
 */

/** The status of a Condition. */
export const ConditionStatus = { True: "True", False: "False", Unknown: "Unknown" } as const;
export type ConditionStatus = (typeof ConditionStatus)[keyof typeof ConditionStatus];

/** The type of an Event. */
export const EventType = { Normal: "Normal", Warning: "Warning" } as const;
export type EventType = (typeof EventType)[keyof typeof EventType];

/**
 * The severity of a Result. Hookloop logs Info, records Warning as an Event too, and rejects the
 * whole response if one of its results is Fatal.
 */
export const Severity = { Info: "Info", Warning: "Warning", Fatal: "Fatal" } as const;
export type Severity = (typeof Severity)[keyof typeof Severity];

/** The operator of a Requirement, as Kubernetes names it. */
export const Operator = { In: "In", NotIn: "NotIn", Exists: "Exists", DoesNotExist: "DoesNotExist" } as const;
export type Operator = (typeof Operator)[keyof typeof Operator];

/** The kinds of controllers. */
export const ControllerKind = {
  CompositeController: "CompositeController", DecoratorController: "DecoratorController",
  MapController: "MapController",
} as const;
export type ControllerKind = (typeof ControllerKind)[keyof typeof ControllerKind];
