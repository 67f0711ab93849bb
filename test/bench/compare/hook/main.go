// Command hook runs the Website controller, written as a hook of a CompositeController.
package main

import (
	"context"

	"github.com/hookloop/hookloop/sdk/go/hook"
	"github.com/hookloop/hookloop/test/bench/compare/website"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func main() { hook.Main(hook.Composite{Sync: sync}) }

// sync returns the children and the status of a Website.
func sync(_ context.Context, req *hook.SyncRequest) (*hook.SyncResponse, error) {
	site, err := hook.Parent[website.Website](req)
	if err != nil {
		return nil, err
	}
	resp := &hook.SyncResponse{}
	themes, shown, err := hook.RequireRelated[corev1.ConfigMap](req, &resp.Requirements, hook.RelatedRule{
		Name: "theme", APIVersion: "v1", Resource: "configmaps",
		Namespace: site.Namespace, Names: []string{site.Spec.Theme},
	})
	if err != nil || !shown {
		return resp, err
	}
	theme := themes[site.Spec.Theme]
	if theme == nil {
		return nil, hook.Reject("ThemeNotFound", "ConfigMap %q does not exist", site.Spec.Theme)
	}
	deployments, err := hook.ChildrenOf[appsv1.Deployment](req, "Deployment.apps/v1")
	if err != nil {
		return nil, err
	}
	resp.Children = children(site, theme)
	status := website.Status{ThemeHash: website.Hash(theme.Data)}
	ready := hook.Condition{Type: "Ready", Status: hook.ConditionFalse, Reason: "PodsNotReady"}
	if d := deployments[site.Name]; d != nil {
		status.Ready = d.Status.ReadyReplicas
		if website.IsReady(d, site) {
			ready.Status = hook.ConditionTrue
			ready.Reason = "PodsReady"
		}
	}
	resp.Status = status
	resp.Conditions = []hook.Condition{ready}
	return resp, nil
}

func children(site *website.Website, theme *corev1.ConfigMap) []hook.Child {
	name := metav1.ObjectMeta{Name: site.Name}
	page := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: name}
	website.SetPage(page, site, theme.Data)
	deployment := &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: name,
	}
	website.SetDeployment(deployment, site)
	service := &corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: name}
	website.SetService(service, site)
	return []hook.Child{{Object: page}, {Object: deployment}, {Object: service}}
}
