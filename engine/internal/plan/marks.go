package plan

// The marks of outputs, the children of map controllers.
const (
	// MapKey is a label with the hash of an output's map key, and an annotation with the map key
	// itself: the input that the output was made from.
	MapKey = "metacontroller.k8s.io/map-key"
	// MapController is an annotation that names the map controller that an output belongs to.
	MapController = "metacontroller.k8s.io/map-controller"
)
