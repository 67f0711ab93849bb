package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/hookloop/hookloop/engine/internal/act"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/object"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

// FinalizerRecordName is the name of the ConfigMap with the records.
const FinalizerRecordName = "hookloop-finalizers"

var configMapResource = object.Resource{
	GVK: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Plural: "configmaps", Namespaced: true,
}

// FinalizerRecord lists the resources with objects that may have a controller's finalizer.
type FinalizerRecord struct {
	Finalizer string           `json:"finalizer"`
	Resources []ParentResource `json:"resources"`
}

// ParentResource names a resource of parents.
type ParentResource struct {
	APIVersion string `json:"apiVersion"`
	Resource   string `json:"resource"`
}

// sameObjects reports whether r has the objects of other, be it in another version.
func (r ParentResource) sameObjects(other ParentResource) bool {
	group := func(p ParentResource) string { return schema.FromAPIVersionAndKind(p.APIVersion, "").Group }
	return r.Resource == other.Resource && group(r) == group(other)
}

// FinalizerRecords are the records of all controllers, in one ConfigMap with a key for each, so
// that several engines can share it. They outlive the process and the declaring objects
// (docs/explanation/decisions/0004-finalizer-record.md). It is safe for concurrent use.
type FinalizerRecords struct {
	writer *act.Writer
	ref    object.Ref
}

// NewFinalizerRecords keeps the records in a namespace.
func NewFinalizerRecords(writer *act.Writer, namespace string) *FinalizerRecords {
	return &FinalizerRecords{
		writer: writer,
		ref:    object.Ref{GVK: configMapResource.GVK, Namespace: namespace, Name: FinalizerRecordName},
	}
}

// recordKey is a controller's key in the ConfigMap: CompositeController.hello.
func recordKey(key object.Ref) string { return key.GVK.Kind + "." + key.Name }

// Load reads all records. An entry that is not one of them is passed over.
func (f *FinalizerRecords) Load(ctx context.Context) (map[object.Ref]FinalizerRecord, error) {
	o, err := f.writer.Get(ctx, configMapResource, f.ref)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	data := map[string]string{}
	if raw, ok := o.Field("data"); ok {
		if err := json.Unmarshal(raw, &data); err != nil {
			return nil, fmt.Errorf("%s: data: %w", f.ref, err)
		}
	}
	all := map[object.Ref]FinalizerRecord{}
	for name, value := range data {
		kind, controller, _ := strings.Cut(name, ".")
		var r FinalizerRecord
		if err := json.Unmarshal([]byte(value), &r); err != nil || r.Finalizer == "" {
			klog.FromContext(ctx).Error(err, "a record of finalizers cannot be read", "configMap", f.ref.String(), "key", name)
			continue
		}
		for _, k := range kinds {
			if k.GVK.Kind == kind {
				all[object.Ref{GVK: k.GVK, Name: controller}] = r
			}
		}
	}
	return all, nil
}

// Store writes the record of one controller.
func (f *FinalizerRecords) Store(ctx context.Context, key object.Ref, r FinalizerRecord) error {
	value, err := json.Marshal(r)
	if err != nil {
		return err
	}
	err = f.patch(ctx, key, string(value))
	if !apierrors.IsNotFound(err) {
		return err
	}
	_, err = f.writer.Do(ctx, plan.Action{
		Verb: plan.Create, Resource: configMapResource, Ref: f.ref, Why: "the first controller with a finalize hook",
		Body: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{
				"name": f.ref.Name, "namespace": f.ref.Namespace,
				"labels": map[string]any{"app.kubernetes.io/managed-by": "hookloop"},
			},
			"data": map[string]any{recordKey(key): string(value)},
		},
	})
	var taken *act.TakenError
	if errors.As(err, &taken) || errors.Is(err, act.ErrStale) { // another engine was first
		return f.patch(ctx, key, string(value))
	}
	return err
}

// Delete removes the record of one controller.
func (f *FinalizerRecords) Delete(ctx context.Context, key object.Ref) error {
	if err := f.patch(ctx, key, nil); !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

// patch sets one entry; nil deletes it. No other engine's entry is touched.
func (f *FinalizerRecords) patch(ctx context.Context, key object.Ref, value any) error {
	_, err := f.writer.Patch(ctx, configMapResource, f.ref, types.MergePatchType,
		map[string]any{"data": map[string]any{recordKey(key): value}}, "")
	return err
}
