// Package v1alpha1 is the API group metacontroller.k8s.io: what a user declares so that a
// controller runs. Its types carry every field of Metacontroller v4.17.2, so that a manifest
// written for it stays valid, and the gRPC hook beside the webhook.
//
// It holds types, their defaults and their validation, and no behaviour: the engine reads it,
// package supervisor acts on it, and a hook's transport settings are read by the transport of that
// name. Its data comes from the API server, which has checked it against manifests/crds (generated
// from the markers here by "make gen"); Default and Validate repeat the rules that matter for
// objects that were stored under an older schema, and add the rules that a schema cannot express.
//
// The values are plain structs; a shared value must not be changed. The tests beside the files
// run good and bad manifests through the generated schemas (structural schema, defaults, CEL within
// its cost budget) and through Validate.
//
// +kubebuilder:object:generate=true
// +groupName=metacontroller.k8s.io
package v1alpha1
