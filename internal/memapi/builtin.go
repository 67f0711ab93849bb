package memapi

import (
	"reflect"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
)

var (
	namespaces  = schema.GroupResource{Resource: "namespaces"}
	pods        = schema.GroupResource{Resource: "pods"}
	definitions = schema.GroupResource{Group: apiextensionsv1.GroupName, Resource: "customresourcedefinitions"}
)

// words returns the set of the words of a text.
func words(text string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(text) {
		set[word] = true
	}
	return set
}

// The rules of the built-in resources that their Go types do not show. The API server has them in
// the strategies of each resource.
var (
	// servedGroups are the groups and versions that are served: one version of each group.
	servedGroups = words(`v1 admissionregistration.k8s.io/v1 apiextensions.k8s.io/v1 apps/v1
		authentication.k8s.io/v1 authorization.k8s.io/v1 autoscaling/v2 batch/v1 certificates.k8s.io/v1
		coordination.k8s.io/v1 discovery.k8s.io/v1 events.k8s.io/v1 networking.k8s.io/v1
		node.k8s.io/v1 policy/v1 rbac.authorization.k8s.io/v1 scheduling.k8s.io/v1 storage.k8s.io/v1`)
	clusterScoped = words(`namespaces nodes persistentvolumes componentstatuses
		mutatingwebhookconfigurations validatingwebhookconfigurations validatingadmissionpolicies
		validatingadmissionpolicybindings mutatingadmissionpolicies mutatingadmissionpolicybindings
		customresourcedefinitions selfsubjectreviews tokenreviews selfsubjectaccessreviews
		selfsubjectrulesreviews subjectaccessreviews certificatesigningrequests clustertrustbundles
		ingressclasses ipaddresses servicecidrs runtimeclasses clusterroles clusterrolebindings
		priorityclasses csidrivers csinodes storageclasses volumeattachments volumeattributesclasses`)
	withGeneration = words(`mutatingwebhookconfigurations validatingwebhookconfigurations
		validatingadmissionpolicies validatingadmissionpolicybindings mutatingadmissionpolicies
		mutatingadmissionpolicybindings customresourcedefinitions daemonsets deployments replicasets
		statefulsets cronjobs jobs pods podtemplates replicationcontrollers endpointslices ingresses
		ingressclasses networkpolicies poddisruptionbudgets priorityclasses csidrivers volumeattachments`)
	createdByUpdate = words(`runtimeclasses rolebindings clusterrolebindings roles clusterroles leases
		limitranges events services endpoints`)
	updatedWithVersion = words(`customresourcedefinitions poddisruptionbudgets runtimeclasses csidrivers
		csistoragecapacities volumeattachments csinodes leases validatingadmissionpolicies
		mutatingadmissionpolicies mutatingwebhookconfigurations validatingwebhookconfigurations
		validatingadmissionpolicybindings mutatingadmissionpolicybindings`)
	returnedWhenDeleted = words(`resourcequotas persistentvolumes serviceaccounts persistentvolumeclaims pods
		services podtemplates csidrivers storageclasses volumeattachments csinodes volumeattributesclasses`)
	reviews = words(`selfsubjectreviews selfsubjectaccessreviews selfsubjectrulesreviews
		subjectaccessreviews localsubjectaccessreviews tokenreviews`)
	// notResources are kinds with metadata that have no resource of their own.
	notResources = words(`RangeAllocation PodStatusResult SerializedReference Binding ComponentStatus
		DeleteOptions Scale`)
	selectorFields = map[string]string{
		"pods": `spec.nodeName spec.restartPolicy spec.schedulerName spec.serviceAccountName status.phase
			status.podIP status.nominatedNodeName spec.hostNetwork`,
		"namespaces":             "status.phase",
		"nodes":                  "spec.unschedulable",
		"secrets":                "type",
		"jobs":                   "status.successful",
		"replicasets":            "status.replicas",
		"replicationcontrollers": "status.replicas",
		"services":               "spec.clusterIP spec.type",
		"events": `involvedObject.kind involvedObject.namespace involvedObject.name involvedObject.uid
			involvedObject.apiVersion involvedObject.resourceVersion involvedObject.fieldPath reason
			reportingComponent source type regarding.kind regarding.namespace regarding.name regarding.uid`,
		"certificatesigningrequests": "spec.signerName",
	}
	scaled     = words(`deployments statefulsets replicasets replicationcontrollers`)
	shortNames = map[string]string{
		"configmaps": "cm", "namespaces": "ns", "pods": "po", "services": "svc", "serviceaccounts": "sa",
		"deployments": "deploy", "statefulsets": "sts", "daemonsets": "ds", "replicasets": "rs", "nodes": "no",
		"events": "ev", "ingresses": "ing", "cronjobs": "cj", "endpoints": "ep", "persistentvolumes": "pv",
		"persistentvolumeclaims": "pvc", "networkpolicies": "netpol", "poddisruptionbudgets": "pdb",
		"customresourcedefinitions": "crd", "horizontalpodautoscalers": "hpa", "resourcequotas": "quota",
		"storageclasses": "sc", "limitranges": "limits", "certificatesigningrequests": "csr",
		"priorityclasses": "pc", "replicationcontrollers": "rc",
	}
)

// serveBuiltins serves the resources of the scheme.
func (s *Server) serveBuiltins() error {
	object := reflect.TypeFor[metav1.Object]()
	for gvk, goType := range s.scheme.AllKnownTypes() {
		if !servedGroups[gvk.GroupVersion().String()] || notResources[gvk.Kind] ||
			!reflect.PointerTo(goType).Implements(object) {
			continue
		}
		if _, ok := goType.FieldByName("ObjectMeta"); !ok { // options and lists
			continue
		}
		plural, singular := meta.UnsafeGuessKindToResource(gvk)
		if plural.Resource == "endpointses" {
			plural.Resource = "endpoints"
			singular.Resource = "endpoints"
		}
		s.add(&resource{
			gvk: gvk, plural: plural.Resource, singular: singular.Resource, listKind: gvk.Kind + "List",
			shortNames: strings.Fields(shortNames[plural.Resource]),
			traits:     builtinTraits(plural.Resource, goType),
		})
	}
	// The kind of aggregated APIs has its Go type in a module of its own. The server has none of them.
	s.add(&resource{
		gvk:    schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"},
		plural: "apiservices", singular: "apiservice", listKind: "APIServiceList",
		custom: &customKind{types: managedfields.NewDeducedTypeConverter()}, traits: traits{status: true},
	})
	return nil
}

func builtinTraits(plural string, goType reflect.Type) traits {
	_, status := goType.FieldByName("Status")
	t := traits{
		namespaced: !clusterScoped[plural], status: status && !reviews[plural],
		generation: withGeneration[plural], upsert: createdByUpdate[plural],
		conditional: updatedWithVersion[plural], returnsDeleted: returnedWhenDeleted[plural],
		createOnly: reviews[plural], fields: strings.Fields(selectorFields[plural]),
	}
	if scaled[plural] {
		t.scale = &scale{".spec.replicas", ".status.replicas", ".spec.selector"}
	}
	return t
}
