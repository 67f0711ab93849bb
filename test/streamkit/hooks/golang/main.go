// Command golang is the reference hook of docs/reference/checking-an-sdk.md on the Go SDK.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/hookloop/hookloop/sdk/go/hook"
	"google.golang.org/grpc/status"
)

type object = map[string]any

type parent struct {
	Spec struct {
		Entries []struct {
			Name   string `json:"name"`
			Text   string `json:"text"`
			Number *int64 `json:"number"`
		} `json:"entries"`
		Number            *int64 `json:"number"`
		Blob              string `json:"blob"`
		Repeat            int    `json:"repeat"`
		SleepMilliseconds int    `json:"sleepMilliseconds"`
		Reject            string `json:"reject"`
		RetryAfterSeconds int    `json:"retryAfterSeconds"`
		Fail              string `json:"fail"`
		Trigger           string `json:"trigger"`
	} `json:"spec"`
}

type configMap struct {
	Data struct {
		Text string `json:"text"`
	} `json:"data"`
}

var triggers hook.Triggers

func sync(ctx context.Context, req *hook.SyncRequest) (*hook.SyncResponse, error) {
	p, err := hook.Parent[parent](req)
	if err != nil {
		return nil, err
	}
	spec := p.Spec
	select {
	case <-time.After(time.Duration(spec.SleepMilliseconds) * time.Millisecond):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	switch {
	case spec.Reject != "":
		return nil, hook.Reject("KitRejected", "%s", spec.Reject)
	case spec.RetryAfterSeconds > 0:
		return nil, hook.RetryAfter(time.Duration(spec.RetryAfterSeconds)*time.Second, "later")
	case spec.Fail != "":
		return nil, errors.New(spec.Fail)
	}
	observed, err := hook.ChildrenOf[configMap](req, "ConfigMap.v1")
	if err != nil {
		return nil, err
	}
	texts := object{}
	for name, child := range observed {
		texts[name] = child.Data.Text
	}
	related := req.Related["peers"]
	if related.Err != nil {
		return nil, related.Err
	}
	state := object{"children": len(observed), "texts": texts, "related": len(related.Objects)}
	if spec.Number != nil {
		state["number"] = *spec.Number
	}
	if spec.Blob != "" {
		state["blobBytes"] = len(spec.Blob)
	}
	if spec.Trigger != "" {
		trigger(ctx, req, spec.Trigger, state)
	}
	resp := &hook.SyncResponse{Status: state}
	for _, e := range spec.Entries {
		data := object{"text": strings.Repeat(e.Text, max(1, spec.Repeat))}
		if e.Number != nil {
			data["number"] = *e.Number
		}
		resp.Children = append(resp.Children, hook.Child{Object: object{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": e.Name}, "data": data,
		}})
	}
	return resp, nil
}

// trigger requests a sync of the parent, and writes the result into the status.
func trigger(ctx context.Context, req *hook.SyncRequest, reason string, state object) {
	parents, err := triggers.Send(ctx, hook.Trigger{
		ControllerName: req.Controller.Name,
		ControllerKind: req.Controller.Kind,
		Parents:        []hook.ParentName{{Namespace: req.Parent.Namespace, Name: req.Parent.Name}},
		Reason:         reason,
	})
	if err != nil {
		state["triggerError"] = object{"code": int(status.Code(err)), "message": status.Convert(err).Message()}
		return
	}
	state["triggered"] = parents
}

func customize(_ context.Context, req *hook.CustomizeRequest) (*hook.CustomizeResponse, error) {
	return &hook.CustomizeResponse{Related: []hook.RelatedRule{{
		APIVersion: "v1", Resource: "configmaps", Names: []string{req.Parent.Name},
	}}}, nil
}

func main() {
	o := hook.ServeOptions{
		Options:   hook.Options{Triggers: &triggers},
		Listening: func(at net.Addr) { fmt.Printf("listening on %s\n", at) },
	}
	o.AddFlags(flag.CommandLine)
	a := hook.AttachOptions{Attached: func() { fmt.Println("attached") }}
	a.Gateway.AddFlags(flag.CommandLine)
	flag.StringVar(&a.Worker, "worker", "", "the worker to serve")
	flag.Parse()
	a.Options = o.Options
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	reference := hook.Composite{Sync: sync, Customize: customize}
	var err error
	if a.Gateway.Address == "" {
		err = hook.Serve(ctx, o, reference)
	} else {
		err = hook.Attach(ctx, a, reference)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // nothing is left to stop
	}
}
