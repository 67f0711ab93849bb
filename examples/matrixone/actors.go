package main

import (
	"fmt"

	"github.com/hookloop/hookloop/engine/actor"
	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/examples/matrixone/api"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// actors returns the declarations of all four actors.
func actors() []controller.Declared {
	workload := []actor.Type{actor.TypeOf[*corev1.ConfigMap](), actor.TypeOf[*appsv1.StatefulSet]()}
	return []controller.Declared{
		actor.New("matrixone-cluster", clusterActor{}).
			Owns(actor.TypeOf[*api.LogService](), actor.TypeOf[*api.DNGroup](), actor.TypeOf[*api.CNGroup]()),
		actor.New("log-service", logActor{}).Owns(workload...),
		actor.New("dn-group", dnActor{}).Owns(workload...),
		actor.New("cn-group", cnActor{}).Owns(workload...),
	}
}

// clusterActor makes the three groups of a database. It does not know in which order they start:
// their dependencies do.
type clusterActor struct{}

func (clusterActor) Observe(
	ctx actor.Context[*api.MatrixOneCluster],
) (*actor.Action[*api.MatrixOneCluster], error) {
	c := ctx.Target
	logs, syncLogs := ensure(ctx, "SyncLogService", named(&api.LogService{}, c, "-log"), func(o *api.LogService) {
		o.Spec = api.GroupSpec{Image: c.Spec.Image, Replicas: c.Spec.LogReplicas}
	})
	dn, syncDN := ensure(ctx, "SyncDNGroup", named(&api.DNGroup{}, c, "-dn"), func(o *api.DNGroup) {
		o.Spec = api.GroupSpec{Image: c.Spec.Image, Replicas: c.Spec.DNReplicas}
		o.Deps.LogService = actor.Reference(logs)
	})
	cn, syncCN := ensure(ctx, "SyncCNGroup", named(&api.CNGroup{}, c, "-cn"), func(o *api.CNGroup) {
		o.Spec = api.GroupSpec{Image: c.Spec.Image, Replicas: c.Spec.CNReplicas}
		o.Deps.LogService, o.Deps.DNGroup = actor.Reference(logs), actor.Reference(dn)
	})
	if action, err := first(syncLogs, syncDN, syncCN); action != nil || err != nil {
		return action, err
	}
	ready := 0
	for _, conditions := range [][]metav1.Condition{logs.Status.Conditions, dn.Status.Conditions, cn.Status.Conditions} {
		if meta.IsStatusConditionTrue(conditions, api.Ready) {
			ready++
		}
	}
	setReady(&c.Status.Conditions, c.Generation, ready == 3, fmt.Sprintf("%d of 3 groups are ready", ready))
	return nil, nil
}

// Finalize deletes the groups. Each waits until no other group depends on it.
func (clusterActor) Finalize(ctx actor.Context[*api.MatrixOneCluster]) (bool, error) {
	return actor.Cleanup(ctx)
}

// logActor runs a log. Its processes need nothing but their own configuration.
type logActor struct{}

func (logActor) Observe(ctx actor.Context[*api.LogService]) (*actor.Action[*api.LogService], error) {
	return run(ctx, ctx.Target.Spec, &ctx.Target.Status, "")
}

func (logActor) Finalize(ctx actor.Context[*api.LogService]) (bool, error) { return actor.Cleanup(ctx) }

// dnActor runs a data group, which is configured with the address of its log.
type dnActor struct{}

func (dnActor) Observe(ctx actor.Context[*api.DNGroup]) (*actor.Action[*api.DNGroup], error) {
	g, err := ctx.Dependencies()
	if err != nil {
		return nil, err
	}
	return run(ctx, g.Spec, &ctx.Target.Status, "ha-keeper-address="+g.Deps.LogService.Status.Endpoint)
}

func (dnActor) Finalize(ctx actor.Context[*api.DNGroup]) (bool, error) { return actor.Cleanup(ctx) }

// cnActor runs a compute group, which is configured with the addresses of log and data.
type cnActor struct{}

func (cnActor) Observe(ctx actor.Context[*api.CNGroup]) (*actor.Action[*api.CNGroup], error) {
	g, err := ctx.Dependencies()
	if err != nil {
		return nil, err
	}
	return run(ctx, g.Spec, &ctx.Target.Status, fmt.Sprintf("ha-keeper-address=%s\ndn-address=%s",
		g.Deps.LogService.Status.Endpoint, g.Deps.DNGroup.Status.Endpoint))
}

func (cnActor) Finalize(ctx actor.Context[*api.CNGroup]) (bool, error) { return actor.Cleanup(ctx) }

// run returns the next action for a group of processes with a configuration, and sets the group's
// status if there is none.
func run[T actor.Object](
	ctx actor.Context[T], spec api.GroupSpec, status *api.GroupStatus, config string,
) (*actor.Action[T], error) {
	_, syncConfig := ensure(ctx, "SyncConfig", named(&corev1.ConfigMap{}, ctx.Target, ""), func(o *corev1.ConfigMap) {
		o.Data = map[string]string{"config": config}
	})
	processes, syncProcesses := ensure(ctx, "SyncProcesses", named(&appsv1.StatefulSet{}, ctx.Target, ""),
		func(o *appsv1.StatefulSet) { fill(o, spec, config) })
	if action, err := first(syncConfig, syncProcesses); action != nil || err != nil {
		return action, err
	}
	ready := processes.Status.ObservedGeneration == processes.Generation &&
		processes.Status.ReadyReplicas == spec.Replicas && processes.Status.UpdatedReplicas == spec.Replicas
	if ready {
		status.Endpoint = fmt.Sprintf("%s.%s.svc:32001", processes.Name, processes.Namespace)
	}
	setReady(&status.Conditions, ctx.Target.GetGeneration(), ready,
		fmt.Sprintf("%d of %d processes are ready", processes.Status.ReadyReplicas, spec.Replicas))
	return nil, nil
}

// fill sets the fields of a StatefulSet that the group decides; the API server sets others.
func fill(o *appsv1.StatefulSet, spec api.GroupSpec, config string) {
	labels := map[string]string{"group": o.Name}
	o.Spec.Replicas = &spec.Replicas
	o.Spec.ServiceName = o.Name
	o.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	o.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
	o.Spec.Template.Labels = labels
	o.Spec.Template.Annotations = map[string]string{"matrixone.example.com/config": config}
	if len(o.Spec.Template.Spec.Containers) == 0 {
		o.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main"}}
	}
	o.Spec.Template.Spec.Containers[0].Image = spec.Image
}

// step is the result of one look at a child.
type step[T actor.Object] struct {
	action *actor.Action[T]
	err    error
}

// first returns the first action or error of the steps.
func first[T actor.Object](steps ...step[T]) (*actor.Action[T], error) {
	for _, s := range steps {
		if s.action != nil || s.err != nil {
			return s.action, s.err
		}
	}
	return nil, nil
}

// ensure returns a child as it is, or as it is to be created, and the action that brings it to its
// desired state, if it does not have that.
func ensure[C, T actor.Object](ctx actor.Context[T], action string, child C, desire func(C)) (C, step[T]) {
	present, err := controller.Get[C](ctx, controller.KeyOf(child))
	switch {
	case err == nil:
		copied, _ := present.DeepCopyObject().(C)
		desire(copied)
		if equality.Semantic.DeepEqual(present, copied) {
			return present, step[T]{}
		}
		child = present
	case !controller.IsNotFound(err):
		return child, step[T]{err: err}
	}
	return child, step[T]{action: actor.Do(action, func(ctx actor.Context[T]) error {
		return actor.CreateOrUpdateChild(ctx, child, func(o C) error {
			desire(o)
			return nil
		})
	})}
}

// named gives a child the namespace and the name of its owner, with a suffix.
func named[C actor.Object](child C, owner actor.Object, suffix string) C {
	child.SetNamespace(owner.GetNamespace())
	child.SetName(owner.GetName() + suffix)
	return child
}

// setReady sets the condition Ready.
func setReady(conditions *[]metav1.Condition, generation int64, ready bool, message string) {
	c := metav1.Condition{
		Type: api.Ready, Status: metav1.ConditionFalse, Reason: "Starting", Message: message, ObservedGeneration: generation,
	}
	if ready {
		c.Status = metav1.ConditionTrue
		c.Reason = "Running"
	}
	meta.SetStatusCondition(conditions, c)
}
