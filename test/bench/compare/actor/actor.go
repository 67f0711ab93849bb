package main

import (
	"github.com/hookloop/hookloop/engine/actor"
	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/test/bench/compare/website"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type siteContext = actor.Context[*website.Website]

type websiteActor struct{}

// theme returns the ConfigMap without which a Website waits.
func theme(site *website.Website) []actor.Dependency {
	return []actor.Dependency{actor.Require(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: site.Spec.Theme}})}
}

// Observe always returns the same action. The desired state is reached when it writes nothing.
func (websiteActor) Observe(siteContext) (*actor.Action[*website.Website], error) {
	return actor.Do("WriteSite", writeSite), nil
}

// writeSite writes the children and the status of a Website.
func writeSite(ctx siteContext) error {
	site := ctx.Target
	name := metav1.ObjectMeta{Name: ctx.Target.Name}
	theme, err := actor.DependencyOf[*corev1.ConfigMap](ctx)
	if err != nil {
		return err
	}
	err = actor.CreateOrUpdateChild(ctx, &corev1.ConfigMap{ObjectMeta: name}, func(c *corev1.ConfigMap) error {
		website.SetPage(c, site, theme.Data)
		return nil
	})
	if err != nil {
		return err
	}
	deployment := &appsv1.Deployment{ObjectMeta: name}
	err = actor.CreateOrUpdateChild(ctx, deployment, func(d *appsv1.Deployment) error {
		website.SetDeployment(d, site)
		return nil
	})
	if err != nil {
		return err
	}
	err = actor.CreateOrUpdateChild(ctx, &corev1.Service{ObjectMeta: name}, func(s *corev1.Service) error {
		website.SetService(s, site)
		return nil
	})
	if err != nil {
		return err
	}
	ready := controller.True("Ready", "PodsReady", "")
	if !website.IsReady(deployment, site) {
		ready = controller.False("Ready", "PodsNotReady", "")
	}
	site.Status.Ready, site.Status.ThemeHash = deployment.Status.ReadyReplicas, website.Hash(theme.Data)
	site.Status.ObservedGeneration = site.Generation
	controller.SetConditions(site, &site.Status.Conditions, ready)
	return nil
}

// Finalize has nothing to do: the API server deletes the children with their owner.
func (websiteActor) Finalize(siteContext) (bool, error) { return true, nil }
