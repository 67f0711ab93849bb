package main

import (
	"context"
	"fmt"

	"github.com/hookloop/hookloop/test/bench/compare/website"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

type reconciler struct{ client.Client }

// themeIndex is the index of Websites by the name of their theme.
const themeIndex = "spec.theme"

func (r *reconciler) setup(ctx context.Context, manager ctrl.Manager) error {
	err := manager.GetFieldIndexer().IndexField(ctx, &website.Website{}, themeIndex, func(o client.Object) []string {
		return []string{o.(*website.Website).Spec.Theme}
	})
	if err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(manager).
		For(&website.Website{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		Owns(&corev1.ConfigMap{}).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.sitesOf)).
		WithOptions(controller.Options{MaxConcurrentReconciles: 10}).
		Complete(r)
}

// sitesOf returns the Websites with a theme.
func (r *reconciler) sitesOf(ctx context.Context, theme client.Object) []ctrl.Request {
	var sites website.WebsiteList
	uses := client.MatchingFields{themeIndex: theme.GetName()}
	if err := r.List(ctx, &sites, client.InNamespace(theme.GetNamespace()), uses); err != nil {
		// A map function cannot fail: the event is lost.
		log.FromContext(ctx).Error(err, "listing the Websites of a theme", "theme", theme.GetName())
		return nil
	}
	requests := make([]ctrl.Request, len(sites.Items))
	for i := range sites.Items {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&sites.Items[i])
	}
	return requests
}

// Reconcile writes the children and the status of a Website.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var site website.Website
	if err := r.Get(ctx, req.NamespacedName, &site); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !site.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	var theme corev1.ConfigMap
	err := r.Get(ctx, client.ObjectKey{Namespace: site.Namespace, Name: site.Spec.Theme}, &theme)
	if apierrors.IsNotFound(err) {
		return ctrl.Result{}, r.setStatus(ctx, &site, site.Status.Ready, site.Status.ThemeHash, metav1.Condition{
			Type: "Ready", Status: metav1.ConditionFalse, Reason: "ThemeNotFound",
			Message: fmt.Sprintf("ConfigMap %q does not exist", site.Spec.Theme),
		})
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	deployment, err := r.writeChildren(ctx, &site, &theme)
	if err != nil {
		return ctrl.Result{}, err
	}
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "PodsReady"}
	if !website.IsReady(deployment, &site) {
		ready.Status = metav1.ConditionFalse
		ready.Reason = "PodsNotReady"
	}
	return ctrl.Result{}, r.setStatus(ctx, &site, deployment.Status.ReadyReplicas, website.Hash(theme.Data), ready)
}

func (r *reconciler) writeChildren(
	ctx context.Context, site *website.Website, theme *corev1.ConfigMap,
) (*appsv1.Deployment, error) {
	name := metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name}
	page := &corev1.ConfigMap{ObjectMeta: name}
	if err := r.write(ctx, site, page, func() { website.SetPage(page, site, theme.Data) }); err != nil {
		return nil, err
	}
	deployment := &appsv1.Deployment{ObjectMeta: name}
	if err := r.write(ctx, site, deployment, func() { website.SetDeployment(deployment, site) }); err != nil {
		return nil, err
	}
	service := &corev1.Service{ObjectMeta: name}
	return deployment, r.write(ctx, site, service, func() { website.SetService(service, site) })
}

func (r *reconciler) write(ctx context.Context, site *website.Website, child client.Object, set func()) error {
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, child, func() error {
		set()
		return controllerutil.SetControllerReference(site, child, r.Scheme())
	})
	return err
}

func (r *reconciler) setStatus(
	ctx context.Context, site *website.Website, ready int32, hash string, condition metav1.Condition,
) error {
	before := site.Status.DeepCopy()
	site.Status.Ready = ready
	site.Status.ThemeHash = hash
	site.Status.ObservedGeneration = site.Generation
	condition.ObservedGeneration = site.Generation
	meta.SetStatusCondition(&site.Status.Conditions, condition)
	if equality.Semantic.DeepEqual(before, &site.Status) {
		return nil
	}
	return r.Status().Update(ctx, site)
}
