/**
 * Types for Kubernetes' built-in kinds, taken from the package kubernetes-types. They are used only
 * at compile time; a running hook does not load that package.
 */
import type * as admissionregistration from "kubernetes-types/admissionregistration/v1.js";
import type * as apiextensions from "kubernetes-types/apiextensions/v1.js";
import type * as apps from "kubernetes-types/apps/v1.js";
import type * as autoscaling from "kubernetes-types/autoscaling/v2.js";
import type * as batch from "kubernetes-types/batch/v1.js";
import type * as certificates from "kubernetes-types/certificates/v1.js";
import type * as coordination from "kubernetes-types/coordination/v1.js";
import type * as core from "kubernetes-types/core/v1.js";
import type * as discovery from "kubernetes-types/discovery/v1.js";
import type * as networking from "kubernetes-types/networking/v1.js";
import type * as node from "kubernetes-types/node/v1.js";
import type * as policy from "kubernetes-types/policy/v1.js";
import type * as rbac from "kubernetes-types/rbac/v1.js";
import type * as scheduling from "kubernetes-types/scheduling/v1.js";
import type * as storage from "kubernetes-types/storage/v1.js";

/**
 * Maps apiVersion and kind to a type. Add types of your own:
 *
 *     declare module "@hookloop/hook" {
 *       interface KubernetesKinds { "Website.demo.example.com/v1": Website }
 *     }
 *
 * Kinds that are not in this map get the type Unstructured.
 */
export interface KubernetesKinds {
  "ConfigMap.v1": core.ConfigMap;
  "Endpoints.v1": core.Endpoints;
  "Event.v1": core.Event;
  "LimitRange.v1": core.LimitRange;
  "Namespace.v1": core.Namespace;
  "Node.v1": core.Node;
  "PersistentVolume.v1": core.PersistentVolume;
  "PersistentVolumeClaim.v1": core.PersistentVolumeClaim;
  "Pod.v1": core.Pod;
  "PodTemplate.v1": core.PodTemplate;
  "ReplicationController.v1": core.ReplicationController;
  "ResourceQuota.v1": core.ResourceQuota;
  "Secret.v1": core.Secret;
  "Service.v1": core.Service;
  "ServiceAccount.v1": core.ServiceAccount;
  "ControllerRevision.apps/v1": apps.ControllerRevision;
  "DaemonSet.apps/v1": apps.DaemonSet;
  "Deployment.apps/v1": apps.Deployment;
  "ReplicaSet.apps/v1": apps.ReplicaSet;
  "StatefulSet.apps/v1": apps.StatefulSet;
  "HorizontalPodAutoscaler.autoscaling/v2": autoscaling.HorizontalPodAutoscaler;
  "CronJob.batch/v1": batch.CronJob;
  "Job.batch/v1": batch.Job;
  "PodDisruptionBudget.policy/v1": policy.PodDisruptionBudget;
  "MutatingWebhookConfiguration.admissionregistration.k8s.io/v1":
    admissionregistration.MutatingWebhookConfiguration;
  "ValidatingAdmissionPolicy.admissionregistration.k8s.io/v1":
    admissionregistration.ValidatingAdmissionPolicy;
  "ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io/v1":
    admissionregistration.ValidatingAdmissionPolicyBinding;
  "ValidatingWebhookConfiguration.admissionregistration.k8s.io/v1":
    admissionregistration.ValidatingWebhookConfiguration;
  "CustomResourceDefinition.apiextensions.k8s.io/v1": apiextensions.CustomResourceDefinition;
  "CertificateSigningRequest.certificates.k8s.io/v1": certificates.CertificateSigningRequest;
  "Lease.coordination.k8s.io/v1": coordination.Lease;
  "EndpointSlice.discovery.k8s.io/v1": discovery.EndpointSlice;
  "Ingress.networking.k8s.io/v1": networking.Ingress;
  "IngressClass.networking.k8s.io/v1": networking.IngressClass;
  "NetworkPolicy.networking.k8s.io/v1": networking.NetworkPolicy;
  "RuntimeClass.node.k8s.io/v1": node.RuntimeClass;
  "ClusterRole.rbac.authorization.k8s.io/v1": rbac.ClusterRole;
  "ClusterRoleBinding.rbac.authorization.k8s.io/v1": rbac.ClusterRoleBinding;
  "Role.rbac.authorization.k8s.io/v1": rbac.Role;
  "RoleBinding.rbac.authorization.k8s.io/v1": rbac.RoleBinding;
  "PriorityClass.scheduling.k8s.io/v1": scheduling.PriorityClass;
  "CSIDriver.storage.k8s.io/v1": storage.CSIDriver;
  "StorageClass.storage.k8s.io/v1": storage.StorageClass;
  "VolumeAttachment.storage.k8s.io/v1": storage.VolumeAttachment;
}
