package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/hookloop/hookloop/sdk/go/hook"
)

// textAnnotation is the annotation of an input that replaces the parent's text.
const textAnnotation = "bench.example.com/text"

// input is an input of a crowd that is the parent of a MapController.
type input struct {
	Metadata struct {
		Name        string            `json:"name"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
}

// output returns the one output of an input as JSON.
func output(of crowd, in input) json.RawMessage {
	text := of.Spec.Text
	if own := in.Metadata.Annotations[textAnnotation]; own != "" {
		text = own
	}
	return json.RawMessage(fmt.Sprintf(
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%s,"labels":{"bench.example.com/crowd":%s}},`+
			`"data":{"text":%s,"rest":%s}}`,
		quote(in.Metadata.Name), quote(of.Metadata.Name), quote(text), quote(strings.Repeat("x", of.Spec.Bytes))))
}

// mapInput is the map function over gRPC.
func mapInput(_ context.Context, req *hook.MapRequest) (*hook.MapResponse, error) {
	parent, err := hook.Parent[crowd](req)
	if err != nil {
		return nil, err
	}
	in, err := hook.Input[input](req)
	if err != nil {
		return nil, err
	}
	return &hook.MapResponse{Outputs: []hook.Child{{Object: output(*parent, *in)}}}, nil
}

// serveMap answers one question of the map webhook.
func serveMap(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Parent crowd `json:"parent"`
		Input  input `json:"input"`
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, "request: "+err.Error(), http.StatusBadRequest)
		return
	}
	if request.Input.Metadata.Name == "" {
		http.Error(w, "request: it has no input", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	//nolint:errcheck // a caller that has gone away asks again
	fmt.Fprintf(w, `{"outputs":[%s]}`, output(request.Parent, request.Input))
}
