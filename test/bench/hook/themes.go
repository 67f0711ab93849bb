package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/hookloop/hookloop/sdk/go/hook"
)

// customize selects the related Secret of a parent over gRPC.
func customize(_ context.Context, req *hook.CustomizeRequest) (*hook.CustomizeResponse, error) {
	parent, err := hook.Decode[crowd](req.Parent)
	if err != nil || parent.Spec.Theme == "" {
		return &hook.CustomizeResponse{}, err
	}
	rule := hook.RelatedRule{
		APIVersion: "v1", Resource: "secrets", Namespace: req.Parent.Namespace, Names: []string{parent.Spec.Theme},
	}
	return &hook.CustomizeResponse{Related: []hook.RelatedRule{rule}}, nil
}

// serveCustomize is the same as a webhook.
func serveCustomize(w http.ResponseWriter, r *http.Request) {
	parent, err := parentOf(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	rules := ""
	if parent.Spec.Theme != "" {
		rules = fmt.Sprintf(`{"apiVersion":"v1","resource":"secrets","namespace":%s,"names":[%s]}`,
			quote(parent.Metadata.Namespace), quote(parent.Spec.Theme))
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"relatedResources":[%s]}`, rules) //nolint:errcheck // a caller that has gone away asks again
}
