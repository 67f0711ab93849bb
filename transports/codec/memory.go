package codec

import (
	"errors"
	"fmt"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/budget"
	"github.com/hookloop/hookloop/internal/protocol/decode"
	"google.golang.org/protobuf/proto"
)

// maxStatusMemory bounds the memory of a decoded status: twice its text, and room for values.
const maxStatusMemory = 2*MaxMessageBytes + 16<<20

// Build decodes the message into m, after the lease has grown to the memory that this takes. The error
// is a *decode.LimitError, a *budget.ExhaustedError, or tells what is malformed.
func (r *Raw) Build(m proto.Message, lease *budget.Lease, limit int64) error {
	limits := decode.Limits{Memory: uint64(limit)} //nolint:gosec // not negative
	size, err := decode.Estimate(r.Data, m.ProtoReflect().Descriptor(), limits)
	if err != nil {
		return err
	}
	if err := lease.Resize(int64(len(r.Data)) + int64(size)); err != nil { //nolint:gosec // within the limit
		return err
	}
	return decode.Unmarshal(r.Data, m, limits)
}

// Unaffordable returns the error of a hook whose answer does not fit into the memory budget, and nil if
// err has another cause.
func Unaffordable(name string, err error) *hook.Error {
	var exhausted *budget.ExhaustedError
	if !errors.As(err, &exhausted) {
		return nil
	}
	return &hook.Error{
		Kind:   hook.Failed,
		Reason: "MemoryBudget",
		Hook:   name,
		Err:    fmt.Errorf("the answer cannot be read: %w", err),
	}
}

// checkStatus returns an error for a status that needs too much memory.
func checkStatus(status []byte) error {
	if object.Memory(status, maxStatusMemory) > maxStatusMemory {
		return fmt.Errorf("status: has too many values: it would take more than %d bytes of memory", maxStatusMemory)
	}
	return nil
}
