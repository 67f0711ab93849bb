// Package kubelet replaces the kubelets that a bare control plane lacks: Pods become Running and
// Ready, and Pods that are not restarted succeed.
//
// It runs no container and schedules nothing. A Pod with the annotation
// "stand-in.hookloop.dev/hold" stays pending until the annotation is removed, for tests of Pods
// that do not become ready. Examples and tests use it.
package kubelet

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Hold is the annotation of a Pod that stays pending.
const Hold = "stand-in.hookloop.dev/hold"

// Run serves all Pods until ctx is done. It passes errors of writes to fault, which must not block.
func Run(ctx context.Context, config *rest.Config, fault func(error)) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	tend := func(obj any) {
		pod, ok := obj.(*corev1.Pod)
		if !ok {
			return
		}
		if err := start(ctx, client, pod); err != nil && ctx.Err() == nil {
			fault(err)
		}
	}
	if _, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: tend, UpdateFunc: func(_, current any) { tend(current) },
	}); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	<-ctx.Done()
	factory.Shutdown()
	return nil
}

// start makes a pending Pod run, or succeed if it is not restarted.
func start(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) error {
	_, held := pod.Annotations[Hold]
	if held || pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodPending {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status(pod)})
	if err != nil {
		return err
	}
	_, err = client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch,
		metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // the Pod is gone, or another one has its name
	}
	if err != nil {
		return fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

func status(pod *corev1.Pod) corev1.PodStatus {
	now := metav1.NewTime(time.Now())
	phase := corev1.PodRunning
	ready := corev1.ConditionTrue
	if pod.Spec.RestartPolicy == corev1.RestartPolicyNever {
		phase = corev1.PodSucceeded
		ready = corev1.ConditionFalse
	}
	s := corev1.PodStatus{Phase: phase, StartTime: &now}
	for _, kind := range []corev1.PodConditionType{corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		value := ready
		if kind == corev1.PodInitialized {
			value = corev1.ConditionTrue
		}
		s.Conditions = append(s.Conditions, corev1.PodCondition{Type: kind, Status: value, LastTransitionTime: now})
	}
	return s
}
