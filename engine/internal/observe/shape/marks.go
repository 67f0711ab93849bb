package shape

import (
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/protocol/answers"
)

// DecoratorAnnotation names the decorator controller that an attachment belongs to (compatibility:
// ownership of attachments).
var DecoratorAnnotation = answers.Rules.Marks.Decorator.Key

// Marked reports whether an object has the mark of an attachment, or one of the marks of an output
// of a map controller. Any of an output's marks counts, because users may have removed the others.
func Marked(o *object.Object) bool {
	for _, key := range []string{DecoratorAnnotation, plan.MapController, plan.MapKey} {
		if _, marked := o.Annotations()[key]; marked {
			return true
		}
	}
	_, marked := o.Labels()[plan.MapKey]
	return marked
}

// Unmarked are the marks of children without a mark: a hook must not answer one.
func Unmarked() map[string]string {
	return map[string]string{DecoratorAnnotation: "", plan.MapController: "", plan.MapKey: ""}
}
