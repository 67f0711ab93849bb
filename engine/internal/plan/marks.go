package plan

import "github.com/hookloop/hookloop/internal/protocol/answers"

// The marks of outputs, the children of map controllers.
var (
	// MapKey is a label with the hash of an output's map key, and an annotation with the map key
	// itself: the input that the output was made from.
	MapKey = answers.Rules.Marks.MapKey.Key
	// MapController is an annotation that names the map controller that an output belongs to.
	MapController = answers.Rules.Marks.MapController.Key
)
