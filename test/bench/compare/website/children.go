package website

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// SiteLabel is the label of children and Pods with the Website's name.
const SiteLabel = "compare.example.com/site"

// SetDeployment sets the fields of the Deployment that the Website decides on, in an empty or in an
// observed object, and no other.
func SetDeployment(d *appsv1.Deployment, w *Website) {
	labels := map[string]string{SiteLabel: w.Name}
	d.Labels = merged(d.Labels, labels)
	d.Spec.Replicas = &w.Spec.Replicas
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	template := &d.Spec.Template
	template.Labels = merged(template.Labels, labels)
	if len(template.Spec.Containers) != 1 {
		template.Spec.Containers = make([]corev1.Container, 1)
	}
	server := &template.Spec.Containers[0]
	server.Name = "server"
	server.Image = w.Spec.Image
	server.VolumeMounts = []corev1.VolumeMount{{Name: "page", MountPath: "/www"}}
	if len(template.Spec.Volumes) != 1 || template.Spec.Volumes[0].ConfigMap == nil {
		template.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{},
		}}}
	}
	template.Spec.Volumes[0].Name, template.Spec.Volumes[0].ConfigMap.Name = "page", w.Name
}

// SetService sets the fields of the Service that the Website decides on.
func SetService(s *corev1.Service, w *Website) {
	labels := map[string]string{SiteLabel: w.Name}
	s.Labels = merged(s.Labels, labels)
	s.Spec.Selector = labels
	if len(s.Spec.Ports) != 1 {
		s.Spec.Ports = make([]corev1.ServicePort, 1)
	}
	s.Spec.Ports[0].Port, s.Spec.Ports[0].TargetPort = 80, intstr.FromInt32(8080)
}

// SetPage sets the fields of the ConfigMap that the Website decides on: the theme's data, and the
// page.
func SetPage(c *corev1.ConfigMap, w *Website, theme map[string]string) {
	c.Labels = merged(c.Labels, map[string]string{SiteLabel: w.Name})
	c.Data = merged(theme, map[string]string{"index.html": "<h1>" + w.Name + "</h1>"})
}

// IsReady reports whether the Deployment has as many ready Pods as the Website wants.
func IsReady(d *appsv1.Deployment, w *Website) bool {
	return d.Status.ObservedGeneration >= d.Generation && d.Status.ReadyReplicas >= w.Spec.Replicas
}

// merged returns a new map with the entries of both; the second wins.
func merged(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, b)
	return all
}
