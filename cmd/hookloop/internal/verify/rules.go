package verify

import "slices"

// Level says how bad a finding is.
type Level string

// The levels. A Fault damages answers, or makes the engine reject them. A Note is information, and
// does not make the hook a bad one. A finding that rests on a measured time is a Note, because a
// busy machine delays good hooks. Only the timeout of a call is a limit: the engine fails the
// parent when it ends.
const (
	Fault Level = "fault"
	Note  Level = "note"
)

// Rule describes one property of a good hook. Its ID does not change between releases.
type Rule struct {
	ID    string `json:"id"`
	Level Level  `json:"level"`
	// Expected describes the property in a noun phrase.
	Expected string `json:"expected"`
}

// The rules about the way to a hook, for callers that look at them alone.
const (
	Unreachable = ruleUnreachable
	NotServed   = ruleNotServed
)

// The rules, in the order in which a report lists their findings.
const (
	ruleUnreachable  = "unreachable"
	ruleHealth       = "health-not-serving"
	ruleNoHealth     = "health-missing"
	ruleNotServed    = "not-served"
	ruleNoUnary      = "unary-missing"
	ruleCallFailed   = "call-failed"
	ruleTimedOut     = "timed-out"
	ruleEncoding     = "wrong-encoding"
	ruleNotUTF8      = "not-utf8"
	ruleMalformed    = "malformed"
	ruleDuplicateKey = "duplicate-key"
	ruleContentType  = "content-type"
	ruleUnknownField = "unknown-field"
	ruleLimit        = "too-large"
	ruleIdentity     = "child-identity"
	ruleChildKind    = "child-kind"
	ruleDuplicate    = "child-duplicate"
	ruleRejected     = "answer-rejected"
	ruleInteger      = "integer-changed"
	ruleText         = "text-changed"
	ruleErrorAnswer  = "error-as-answer"
	ruleErrorCode    = "error-code"
	ruleErrorMessage = "error-message"
	ruleDeadline     = "deadline-ignored"
	ruleCancellation = "cancellation-ignored"
	ruleFinalize     = "finalize-never-ends"
	ruleStream       = "stream-differs"
	ruleNoStream     = "stream-missing"
	ruleRepeat       = "answer-varies"
	ruleOrder        = "order-matters"
	ruleClock        = "time-in-answer"
	ruleEcho         = "server-fields-echoed"
	ruleFixedPoint   = "no-fixed-point"
	ruleRefused      = "child-refused"
)

var rules = []Rule{
	{ruleUnreachable, Fault, "a connection, and an answer to a call"},
	{ruleHealth, Fault, `SERVING for the service "" of grpc.health.v1.Health, without which the engine makes no call`},
	{ruleNoHealth, Note, "grpc.health.v1.Health, so that calls go to ready Pods only"},
	{ruleNotServed, Fault, "an answer: the controller declares the operation"},
	{ruleNoUnary, Note, "unary calls beside the stream: mode Unary and tools such as grpcurl need them"},
	{ruleCallFailed, Fault, "an answer to a valid parent"},
	{ruleTimedOut, Fault, "an answer within the timeout"},
	{ruleEncoding, Fault, "UTF-8 JSON, compressed only as the receiver declares it, in both directions"},
	{ruleNotUTF8, Fault, "UTF-8: the engine replaces other bytes by U+FFFD"},
	{ruleMalformed, Fault, "one JSON object, without a byte order mark"},
	{ruleDuplicateKey, Fault, "each key of a JSON object once: of two, one is lost"},
	{ruleContentType, Note, "the header Content-Type: application/json"},
	{ruleUnknownField, Note, "only fields that an answer has: the engine ignores others, and rejects them in strict mode"},
	{ruleLimit, Fault, "an answer within the limits of the engine"},
	{ruleIdentity, Fault, "apiVersion, kind and metadata.name in each child"},
	{ruleChildKind, Fault, "children of kinds that the controller declares"},
	{ruleDuplicate, Fault, "each child once"},
	{ruleRejected, Fault, "an answer that the engine accepts"},
	{ruleInteger, Fault, "integers with all their digits: 2^53+1 does not fit into a double"},
	{ruleText, Fault, "texts as they came, decoded and encoded as UTF-8"},
	{ruleErrorAnswer, Fault, "a status other than 200 for an error: with 200, it is an answer that deletes all children"},
	{ruleErrorCode, Fault, "a status with a meaning, such as INVALID_ARGUMENT, INTERNAL or 500"},
	{ruleErrorMessage, Fault, "a message in each error: the parent shows it"},
	{ruleDeadline, Note, "an end of the call at its deadline; a busy machine can be late, too"},
	{ruleCancellation, Note, "an end of the work when the call is cancelled; a busy machine can be late, too"},
	{ruleFinalize, Fault, "finalized: true once the parent has no children: without it the parent is never deleted"},
	{ruleStream, Fault, "the same answer over the stream as by a unary call"},
	{ruleNoStream, Note, "nothing: the engine uses unary calls, which carry the whole state"},
	{ruleRepeat, Fault, "the same answer to the same question: each other answer is a write"},
	{ruleOrder, Fault, "the same answer if keys and observed objects come in another order, which has no meaning"},
	{ruleClock, Fault, "the same answer a second later: a time in an answer is a write at each sync"},
	{ruleEcho, Fault, "children without the fields that only the server has set: the hook would own them"},
	{ruleFixedPoint, Fault, "nothing to write once the observed state is that of the answer"},
	{ruleRefused, Fault, "children and a status that the API server accepts, by the schemas of the files"},
}

// Rules returns all rules.
func Rules() []Rule { return slices.Clone(rules) }

// ruleOf returns the rule with an id. It panics if there is none: ids come from this package.
func ruleOf(id string) Rule {
	i := slices.IndexFunc(rules, func(r Rule) bool { return r.ID == id })
	if i < 0 {
		panic("verify: no rule " + id)
	}
	return rules[i]
}
