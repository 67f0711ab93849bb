package controller

import (
	"errors"
	"fmt"

	"github.com/hookloop/hookloop/engine/internal/act"
	"github.com/hookloop/hookloop/engine/object"
)

// ErrConflict reports that a write met a newer object than the one that the reconciler has read.
// Nothing is wrong: the key is reconciled again when the cache shows the newer object or, if it
// does not, after a second.
var ErrConflict = act.ErrStale

// errEnded reports the use of a Runtime after its reconcile.
var errEnded = errors.New("the reconcile has ended; a Runtime is valid during its reconcile only")

// errNil reports a nil object, such as Request.Object of a key without an object.
var errNil = errors.New("the object is nil")

// NotFoundError reports that an object does not exist.
type NotFoundError struct{ Ref object.Ref }

func (e *NotFoundError) Error() string { return e.Ref.String() + " does not exist" }

// IsNotFound reports whether err is a NotFoundError of a read, or the API server's answer to a
// write that the object does not exist.
func IsNotFound(err error) bool {
	var missing *NotFoundError
	return errors.As(err, &missing) || act.Gone(err)
}

// UndeclaredError reports the use of a type that the controller does not declare.
type UndeclaredError struct {
	Controller string
	Type       string
}

func (e *UndeclaredError) Error() string {
	return fmt.Sprintf("controller %q does not declare the type %s; expected a Watch of it", e.Controller, e.Type)
}

// DecodeError reports that an object does not fit its Go type.
type DecodeError struct {
	Ref  object.Ref
	Type Type
	// Err names the field.
	Err error
}

func (e *DecodeError) Error() string { return fmt.Sprintf("%s as %s: %v", e.Ref, e.Type, e.Err) }

// Unwrap returns the decoder's error.
func (e *DecodeError) Unwrap() error { return e.Err }
