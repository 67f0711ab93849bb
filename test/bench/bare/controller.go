package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// retryAfter is the pause before a resource that is not served yet is asked for again.
const retryAfter = 50 * time.Millisecond

// again waits for retryAfter.
func again(ctx context.Context) error {
	select {
	case <-time.After(retryAfter):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

const (
	crowds     = "/apis/bench.example.com/v1/namespaces/%s/crowds"
	configMaps = "/api/v1/namespaces/%s/configmaps"
)

// body is an object as the API server sent it, with the fields that the client reads.
type body struct {
	raw      json.RawMessage
	Metadata struct {
		Name            string            `json:"name"`
		UID             string            `json:"uid"`
		ResourceVersion string            `json:"resourceVersion"`
		Generation      int64             `json:"generation"`
		Annotations     map[string]string `json:"annotations"`
		OwnerReferences []struct {
			UID string `json:"uid"`
		} `json:"ownerReferences"`
	} `json:"metadata"`
	Data   map[string]string `json:"data"`
	Status json.RawMessage   `json:"status"`
}

// controller keeps the last body of each object, and asks about each version of a parent once.
type controller struct {
	api *client
	settings
	parents, configMaps string // paths
	due                 chan *body

	mu sync.Mutex // guards the fields below
	// children are the observed ConfigMaps by owner and name.
	children map[string]map[string]*body
	// asked is what the hook was last asked about, by parent; a status does not count.
	asked map[string]string
}

func newController(api *client, s settings) *controller {
	return &controller{
		api: api, settings: s, due: make(chan *body, 1<<16),
		parents: fmt.Sprintf(crowds, s.namespace), configMaps: fmt.Sprintf(configMaps, s.namespace),
		children: map[string]map[string]*body{}, asked: map[string]string{},
	}
}

func (c *controller) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return c.api.watch(ctx, c.configMaps, c.child) })
	g.Go(func() error { return c.api.watch(ctx, c.parents, c.parent) })
	for range c.workers {
		g.Go(func() error {
			for {
				select {
				case parent := <-c.due:
					if err := c.sync(ctx, parent); err != nil {
						return err
					}
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		})
	}
	return g.Wait()
}

// parent takes an event of a parent.
func (c *controller) parent(e event) {
	if e.Type == "DELETED" {
		return
	}
	name := e.Object.Metadata.Name
	version := fmt.Sprint(e.Object.Metadata.Generation, e.Object.Metadata.Annotations)
	c.mu.Lock()
	known := c.asked[name] == version
	c.asked[name] = version
	c.mu.Unlock()
	if !known {
		c.due <- e.Object
	}
}

// child takes an event of a ConfigMap.
func (c *controller) child(e event) {
	owners := e.Object.Metadata.OwnerReferences
	if len(owners) == 0 {
		return
	}
	owner := owners[0].UID
	name := e.Object.Metadata.Name
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.Type == "DELETED" {
		delete(c.children[owner], name)
		return
	}
	if c.children[owner] == nil {
		c.children[owner] = map[string]*body{}
	}
	c.children[owner][name] = e.Object
}

// answer is the hook's answer.
type answer struct {
	Status   object   `json:"status"`
	Children []object `json:"children"`
}

// sync asks about one parent, and writes its children and its status.
func (c *controller) sync(ctx context.Context, parent *body) error {
	c.mu.Lock()
	children := maps.Clone(c.children[parent.Metadata.UID])
	c.mu.Unlock()
	observed := map[string]json.RawMessage{}
	for name, child := range children {
		observed[name] = child.raw
	}
	var a answer
	err := c.api.do(ctx, http.MethodPost, c.hook, "application/json", object{
		"parent": parent.raw, "children": object{"ConfigMap.v1": observed}, "finalizing": false,
	}, &a)
	if err != nil {
		return err
	}
	for _, child := range a.Children {
		metadata, _ := child["metadata"].(object)
		name, _ := metadata["name"].(string)
		if err := c.write(ctx, parent, children[name], name, child); err != nil {
			return err
		}
	}
	a.Status["observedGeneration"] = parent.Metadata.Generation
	status, err := json.Marshal(a.Status)
	if err != nil || bytes.Equal(parent.Status, status) {
		return err
	}
	path := c.api.host + c.parents + "/" + parent.Metadata.Name + "/status"
	patch := object{"status": json.RawMessage(status)}
	return c.api.do(ctx, http.MethodPatch, path, "application/merge-patch+json", patch, nil)
}

// write creates or updates one child, with an owner reference and the annotation of the engine.
func (c *controller) write(ctx context.Context, parent, observed *body, name string, child object) error {
	if observed != nil && same(observed.Data, child["data"]) {
		return nil
	}
	applied, err := json.Marshal(child)
	if err != nil {
		return err
	}
	metadata, _ := child["metadata"].(object)
	child = maps.Clone(child)
	metadata = maps.Clone(metadata)
	child["metadata"] = metadata
	metadata["annotations"] = object{"metacontroller.k8s.io/last-applied-configuration": string(applied)}
	metadata["ownerReferences"] = []any{object{
		"apiVersion": "bench.example.com/v1", "kind": "Crowd", "name": parent.Metadata.Name, "uid": parent.Metadata.UID,
		"controller": true, "blockOwnerDeletion": true,
	}}
	if observed == nil {
		return c.api.do(ctx, http.MethodPost, c.api.host+c.configMaps, "application/json", child, nil)
	}
	metadata["resourceVersion"] = observed.Metadata.ResourceVersion
	metadata["uid"] = observed.Metadata.UID
	path := c.api.host + c.configMaps + "/" + name
	return c.api.do(ctx, http.MethodPut, path, "application/json", child, nil)
}

// same reports whether the data of a ConfigMap is what the hook wants.
func same(observed map[string]string, wanted any) bool {
	fields, _ := wanted.(object)
	if len(fields) != len(observed) {
		return false
	}
	for key, value := range fields {
		if observed[key] != value {
			return false
		}
	}
	return true
}
