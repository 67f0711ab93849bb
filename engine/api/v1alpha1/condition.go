package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ControllerStatus is what the engine reports about a declared controller.
type ControllerStatus struct {
	// ObservedGeneration is the generation of the spec that the conditions describe.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Parents are the plural names of the resources of the parents, in one line.
	// +optional
	Parents string `json:"parents,omitempty"`
	// Children are the plural names of the resources of the children, in one line.
	// +optional
	Children string `json:"children,omitempty"`
	// Inputs are the plural names of the input resources of a map controller, in one line.
	// +optional
	Inputs string `json:"inputs,omitempty"`
	// Conditions has the condition Ready and, if they apply, HooksMatch, Intercepted and Fallback.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ConditionReady reports whether the controller runs and its hooks answer.
const ConditionReady = "Ready"

// ConditionHooksMatch reports whether the hooks serve the declared operations and no others. It is
// present if a hook reports its operations.
const ConditionHooksMatch = "HooksMatch"

// The reasons of condition HooksMatch.
const (
	// ReasonMatch: they do (True).
	ReasonMatch = "Match"
	// ReasonNotServed: a declared hook does not serve its operation (False).
	ReasonNotServed = "NotServed"
	// ReasonNotDeclared: a program has a function for a hook that is not declared (False).
	ReasonNotDeclared = "NotDeclared"
)

// ConditionIntercepted reports whether an intercept answers for some parents in place of the hooks.
// It is present after the first intercept.
const ConditionIntercepted = "Intercepted"

// The reasons of condition Intercepted.
const (
	// ReasonIntercepted: the message names the intercepts and their parents (True).
	ReasonIntercepted = "Intercepted"
	// ReasonNotIntercepted: no longer (False).
	ReasonNotIntercepted = "NotIntercepted"
)

// ConditionFallback reports whether the webhook answers in place of the gRPC hook. It is present if
// a hook declares both.
const ConditionFallback = "Fallback"

// The reasons of condition Fallback. They name the transports that answer.
const (
	// ReasonGRPC: the gRPC hook answers all operations that declare both (False).
	ReasonGRPC = "GRPC"
	// ReasonWebhook: the webhook answers all of them; the message has the cause (True).
	ReasonWebhook = "Webhook"
	// ReasonGRPCAndWebhook: the webhook answers some of them, which the message names (True).
	ReasonGRPCAndWebhook = "GRPCAndWebhook"
	// ReasonTransport and ReasonTransportAndWebhook: the same with a transport that the program adds
	// in place of gRPC.
	ReasonTransport           = "Transport"
	ReasonTransportAndWebhook = "TransportAndWebhook"
	// ReasonNoFallback: no hook declares both any more (False).
	ReasonNoFallback = "NoFallback"
)

// The reasons of condition Ready. Kinds of hook errors (package hook) are reasons too.
const (
	// ReasonRunning: it runs (True).
	ReasonRunning = "Running"
	// ReasonStatusDropped: it runs, but the parent's resource keeps no status, so that the hook's
	// is lost (True).
	ReasonStatusDropped = "StatusDropped"
	// ReasonParentConflict: it runs, but another controller writes the status of the same parents
	// (True).
	ReasonParentConflict = "ParentConflict"
	// ReasonInputNotFound: it runs, but the API server does not serve an input resource of a map
	// controller; its inputs are mapped as soon as it does (True).
	ReasonInputNotFound = "InputNotFound"
	// ReasonStarting: its caches are being filled (False).
	ReasonStarting = "Starting"
	// ReasonStopped: it was stopped on purpose (False).
	ReasonStopped = "Stopped"
	// ReasonInvalidSpec: the spec cannot be used; the message names the field (False).
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonParentNotFound: the API server does not serve the parent's resource; the controller
	// starts automatically when it does (False).
	ReasonParentNotFound = "ParentNotFound"
	// ReasonChildNotFound: the API server does not serve a child's resource; the controller
	// starts automatically when it does (False).
	ReasonChildNotFound = "ChildNotFound"
	// ReasonForbidden: the engine may not list or watch one of the resources (False).
	ReasonForbidden = "Forbidden"
	// ReasonStaleView: the list or the watch of one of the resources fails for so long that nothing
	// is decided from it (False).
	ReasonStaleView = "StaleView"
	// ReasonHookUnreachable: the hook was not reached at the last sync (False).
	ReasonHookUnreachable = "HookUnreachable"
)
