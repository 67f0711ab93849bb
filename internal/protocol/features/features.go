// Package features names the parts of a response that an older engine may not know. Both sides use
// the names: the engine lists the features that it honours in each request (or once in a stream's
// Hello), and a hook lists those that its response uses. Each side refuses a response with a
// feature that the engine does not honour, so that no engine writes half of it.
//
//	used := features.Used(resp.GetChildren(), resp.GetDetails())
//	if missing := features.Missing(used, req.GetMeta().GetFeatures()); missing != "" { … }
//
// To add a part to the responses of the contract, add its name here, to [Used], and to the comment
// of RequestMeta.features.
package features

import (
	"slices"

	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
)

// The features, in alphabetical order.
const (
	Conditions   = "conditions"
	DependsOn    = "depends_on"
	Events       = "events"
	NamedRules   = "named_rules"
	Ready        = "ready"
	Requirements = "requirements"
	Results      = "results"
)

// All returns the features of this version of the contract, sorted. The caller owns the list.
func All() []string {
	return []string{Conditions, DependsOn, Events, NamedRules, Ready, Requirements, Results}
}

// Used returns the features that a response uses, sorted. rules are those of a response to
// Customize.
func Used(
	desired []*hookv1.DesiredObject, details *hookv1.ResponseDetails, rules ...*hookv1.RelatedResourceRule,
) []string {
	var used []string
	add := func(feature string, uses bool) {
		if uses {
			used = append(used, feature)
		}
	}
	add(Conditions, len(details.GetConditions()) > 0)
	add(DependsOn, slices.ContainsFunc(desired, func(o *hookv1.DesiredObject) bool { return len(o.GetDependsOn()) > 0 }))
	add(Events, len(details.GetEvents()) > 0)
	add(NamedRules, named(rules) || named(details.GetRequirements()))
	add(Ready, slices.ContainsFunc(desired, func(o *hookv1.DesiredObject) bool { return o != nil && o.Ready != nil }))
	add(Requirements, len(details.GetRequirements()) > 0)
	add(Results, len(details.GetResults()) > 0)
	return used
}

func named(rules []*hookv1.RelatedResourceRule) bool {
	return slices.ContainsFunc(rules, func(r *hookv1.RelatedResourceRule) bool { return r.GetName() != "" })
}

// Missing returns the first used feature that is not honoured, or an empty string if all of them
// are.
func Missing(used, honoured []string) string {
	for _, feature := range used {
		if !slices.Contains(honoured, feature) {
			return feature
		}
	}
	return ""
}
