package main

import (
	"context"
	"fmt"

	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/test/bench/compare/website"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reconcile writes the children and the status of a Website.
func reconcile(ctx context.Context, req *controller.Request[*website.Website]) (controller.Result, error) {
	site := req.Object
	if site == nil || site.DeletionTimestamp != nil {
		return controller.Result{}, nil
	}
	theme, err := controller.Get[*corev1.ConfigMap](req, controller.Key{Namespace: site.Namespace, Name: site.Spec.Theme})
	if controller.IsNotFound(err) {
		return controller.Result{}, setStatus(ctx, req, site.Status.Ready, site.Status.ThemeHash,
			controller.False("Ready", "ThemeNotFound", fmt.Sprintf("ConfigMap %q does not exist", site.Spec.Theme)))
	}
	if err != nil {
		return controller.Result{}, err
	}
	deployment, err := writeChildren(ctx, req, theme)
	if err != nil {
		return controller.Result{}, err
	}
	ready := controller.True("Ready", "PodsReady", "")
	if !website.IsReady(deployment, site) {
		ready = controller.False("Ready", "PodsNotReady", "")
	}
	return controller.Result{}, setStatus(ctx, req, deployment.Status.ReadyReplicas, website.Hash(theme.Data), ready)
}

func writeChildren(
	ctx context.Context, req *controller.Request[*website.Website], theme *corev1.ConfigMap,
) (*appsv1.Deployment, error) {
	site := req.Object
	name := metav1.ObjectMeta{Name: req.Key.Name}
	page := &corev1.ConfigMap{ObjectMeta: name}
	err := controller.CreateOrUpdateChild(ctx, req.Runtime, site, page, func(c *corev1.ConfigMap) error {
		website.SetPage(c, site, theme.Data)
		return nil
	})
	if err != nil {
		return nil, err
	}
	deployment := &appsv1.Deployment{ObjectMeta: name}
	err = controller.CreateOrUpdateChild(ctx, req.Runtime, site, deployment, func(d *appsv1.Deployment) error {
		website.SetDeployment(d, site)
		return nil
	})
	if err != nil {
		return nil, err
	}
	service := &corev1.Service{ObjectMeta: name}
	return deployment, controller.CreateOrUpdateChild(ctx, req.Runtime, site, service, func(s *corev1.Service) error {
		website.SetService(s, site)
		return nil
	})
}

func setStatus(
	ctx context.Context, req *controller.Request[*website.Website], ready int32, hash string, condition metav1.Condition,
) error {
	return controller.SetStatus(ctx, req.Runtime, req.Object, func(site *website.Website) {
		site.Status.Ready = ready
		site.Status.ThemeHash = hash
		site.Status.ObservedGeneration = site.Generation
		controller.SetConditions(site, &site.Status.Conditions, condition)
	})
}
