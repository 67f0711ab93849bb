package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/hookloop/hookloop/engine/actor"
	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/test/kit"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
)

// tier is what the types of the tests have in common: a part of a database.
type tier struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		Size int `json:"size,omitempty"`
		// Fault makes the actor fail in a way.
		Fault string `json:"fault,omitempty"`
	} `json:"spec"`
	Status struct {
		Endpoint   string             `json:"endpoint,omitempty"`
		Size       int                `json:"size,omitempty"`
		Conditions []metav1.Condition `json:"conditions,omitempty"`
	} `json:"status,omitempty"`
}

func (t *tier) base() *tier { return t }

// GetConditions implements actor.Conditional.
func (t *tier) GetConditions() []metav1.Condition { return t.Status.Conditions }

// tiered is a type that contains a tier.
type tiered interface {
	actor.Object
	base() *tier
}

type logService struct{ tier }

type dnGroup struct {
	tier
	Deps struct {
		LogService *logService `json:"logService,omitempty"`
	} `json:"deps"`
}

func (d *dnGroup) Dependencies() []actor.Dependency {
	return []actor.Dependency{actor.Require(d.Deps.LogService, actor.ConditionTrue("Ready"))}
}

type cnGroup struct {
	tier
	Deps struct {
		DNGroup    *dnGroup    `json:"dnGroup,omitempty"`
		LogService *logService `json:"logService,omitempty"`
	} `json:"deps"`
}

func (c *cnGroup) Dependencies() []actor.Dependency {
	return []actor.Dependency{
		actor.Require(c.Deps.DNGroup, actor.ConditionTrue("Ready")),
		actor.Require(c.Deps.LogService, actor.ConditionTrue("Ready")),
	}
}

type matrixOne struct{ tier }

// volume depends on the volume that it names, if any, and on a snapshot, if it names one.
type volume struct {
	tier
	After    string `json:"after,omitempty"`
	Snapshot string `json:"snapshot,omitempty"`
}

func (v *volume) Dependencies() []actor.Dependency {
	var after *volume
	if v.After != "" {
		after = &volume{}
		after.Name = v.After
	}
	var from *snapshot
	if v.Snapshot != "" {
		from = &snapshot{}
		from.Name = v.Snapshot
	}
	return []actor.Dependency{
		actor.Optional(after, actor.ConditionTrue("Ready")), actor.Optional(from, actor.ConditionTrue("Ready")),
	}
}

type snapshot struct{ tier }

func (o *logService) DeepCopyObject() runtime.Object { return copied(o) }
func (o *dnGroup) DeepCopyObject() runtime.Object    { return copied(o) }
func (o *cnGroup) DeepCopyObject() runtime.Object    { return copied(o) }
func (o *matrixOne) DeepCopyObject() runtime.Object  { return copied(o) }
func (o *volume) DeepCopyObject() runtime.Object     { return copied(o) }
func (o *snapshot) DeepCopyObject() runtime.Object   { return copied(o) }

func copied[T any](o *T) *T {
	data, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	var c T
	if err := json.Unmarshal(data, &c); err != nil {
		panic(err)
	}
	return &c
}

// actorScheme has the types in a test's group.
func actorScheme(group string) *runtime.Scheme {
	s := runtime.NewScheme()
	if err := corev1.AddToScheme(s); err != nil {
		panic(err)
	}
	gv := schema.GroupVersion{Group: group, Version: "v1"}
	for kind, o := range map[string]runtime.Object{
		"LogService": &logService{}, "DNGroup": &dnGroup{}, "CNGroup": &cnGroup{}, "MatrixOneCluster": &matrixOne{},
		"Volume": &volume{}, "Snapshot": &snapshot{},
	} {
		s.AddKnownTypeWithName(gv.WithKind(kind), o)
	}
	return s
}

// tierActor makes a ConfigMap for a tier. The tier is ready when the test sets ready in the
// ConfigMap.
type tierActor[T tiered] struct {
	// prefix is the beginning of the ConfigMap's name; the target's name follows.
	prefix string
	// slow is called in the action of a target with the fault "slow"; may be nil.
	slow func()
	// endpoint returns the endpoint of the tier below, for the ConfigMap.
	endpoint func(actor.Context[T]) (string, error)
}

func (a tierActor[T]) Observe(ctx actor.Context[T]) (*actor.Action[T], error) {
	t := ctx.Target.base()
	switch t.Spec.Fault {
	case "panic":
		panic("as the test asks for")
	case "busy":
		return actor.Do("Step", a.step), nil
	case "action":
		return actor.Do("Break", func(actor.Context[T]) error { return errors.New("the disk is full") }), nil
	}
	config, err := controller.Get[*corev1.ConfigMap](ctx, controller.Key{
		Namespace: t.Namespace, Name: a.prefix + t.Name,
	})
	if controller.IsNotFound(err) {
		return actor.Do("CreateConfig", a.createConfig), nil
	}
	if err != nil {
		return nil, err
	}
	if config.Data["size"] != fmt.Sprint(t.Spec.Size) {
		return actor.Do("Resize", a.resize), nil
	}
	t.Status.Endpoint = t.Name + ":6001"
	t.Status.Size = t.Spec.Size
	setReady(t, config.Data["ready"] == "true")
	return nil, nil
}

func (a tierActor[T]) createConfig(ctx actor.Context[T]) error {
	endpoint := ""
	if ctx.Target.base().Spec.Fault == "slow" {
		a.slow()
		if err := awaitDeletion(ctx, ctx.Target); err != nil {
			return err
		}
	}
	if a.endpoint != nil {
		var err error
		endpoint, err = a.endpoint(ctx)
		if err != nil {
			return err
		}
	}
	return actor.CreateChild(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: a.prefix + ctx.Target.GetName()},
		Data:       map[string]string{"from": endpoint, "size": fmt.Sprint(ctx.Target.base().Spec.Size)},
	})
}

// step writes at every call.
func (a tierActor[T]) step(ctx actor.Context[T]) error {
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: a.prefix + ctx.Target.GetName()}}
	return actor.CreateOrUpdateChild(ctx, config, func(c *corev1.ConfigMap) error {
		if c.Data == nil {
			c.Data = map[string]string{}
		}
		c.Data["steps"] += "."
		return nil
	})
}

// awaitDeletion waits until the cache shows that an object is being deleted.
func awaitDeletion[T tiered](r controller.Reader, o T) error {
	return wait.PollUntilContextTimeout(context.Background(), 10*time.Millisecond, kit.Deadline, true,
		func(context.Context) (bool, error) {
			now, err := controller.Get[T](r, controller.KeyOf(o))
			return err == nil && now.GetDeletionTimestamp() != nil, err
		})
}

func (a tierActor[T]) resize(ctx actor.Context[T]) error {
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: a.prefix + ctx.Target.GetName()}}
	return actor.CreateOrUpdateChild(ctx, config, func(c *corev1.ConfigMap) error {
		c.Data["size"] = fmt.Sprint(ctx.Target.base().Spec.Size)
		return nil
	})
}

func (a tierActor[T]) Finalize(ctx actor.Context[T]) (bool, error) {
	if ctx.Target.base().Spec.Fault == "finalize" {
		return false, nil
	}
	return actor.Cleanup(ctx)
}

func setReady(t *tier, ready bool) {
	c := metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Starting", Message: "it starts",
		ObservedGeneration: t.Generation}
	if ready {
		c.Status = metav1.ConditionTrue
		c.Reason = "Running"
		c.Message = "it runs"
	}
	meta.SetStatusCondition(&t.Status.Conditions, c)
}

// clusterActor makes the tiers of a database, in one action that Observe always returns, as the
// example of the design does.
type clusterActor struct{}

func (a clusterActor) Observe(ctx actor.Context[*matrixOne]) (*actor.Action[*matrixOne], error) {
	computing, err := controller.Get[*cnGroup](ctx, controller.KeyOf(ctx.Target))
	if err != nil && !controller.IsNotFound(err) {
		return nil, err
	}
	setReady(&ctx.Target.tier, err == nil && meta.IsStatusConditionTrue(computing.Status.Conditions, "Ready"))
	return actor.Do("Sync", a.sync), nil
}

func (clusterActor) sync(ctx actor.Context[*matrixOne]) error {
	size := ctx.Target.Spec.Size
	logs := &logService{}
	dn := &dnGroup{}
	cn := &cnGroup{}
	for _, o := range []tiered{logs, dn, cn} {
		o.SetNamespace(ctx.Target.Namespace)
		o.SetName(ctx.Target.Name)
	}
	if err := actor.CreateOrUpdateChild(ctx, logs, func(o *logService) error {
		o.Spec.Size = size
		return nil
	}); err != nil {
		return err
	}
	if err := actor.CreateOrUpdateChild(ctx, dn, func(o *dnGroup) error {
		o.Spec.Size = size
		o.Deps.LogService = logs
		return nil
	}); err != nil {
		return err
	}
	return actor.CreateOrUpdateChild(ctx, cn, func(o *cnGroup) error {
		o.Spec.Size, o.Deps.LogService, o.Deps.DNGroup = size, logs, actor.Reference(dn)
		return nil
	})
}

func (clusterActor) Finalize(ctx actor.Context[*matrixOne]) (bool, error) { return actor.Cleanup(ctx) }

// database declares the actors of a database.
func database() []controller.Declared {
	maps := actor.TypeOf[*corev1.ConfigMap]()
	return []controller.Declared{
		actor.New("cluster", clusterActor{}).Owns(actor.TypeOf[*logService](), actor.TypeOf[*dnGroup](),
			actor.TypeOf[*cnGroup]()),
		actor.New("log", tierActor[*logService]{prefix: "log-"}).Owns(maps),
		actor.New("dn", tierActor[*dnGroup]{prefix: "dn-", endpoint: func(ctx actor.Context[*dnGroup]) (string, error) {
			logs, err := actor.DependencyOf[*logService](ctx)
			if err != nil {
				return "", err
			}
			return logs.Status.Endpoint, nil
		}}).Owns(maps),
		actor.New("cn", tierActor[*cnGroup]{prefix: "cn-", endpoint: func(ctx actor.Context[*cnGroup]) (string, error) {
			populated, err := ctx.Dependencies()
			return populated.Deps.DNGroup.Status.Endpoint, err
		}}).Owns(maps),
	}
}
