package codec

import (
	"errors"
	"fmt"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/protocol/decode"
	"github.com/hookloop/hookloop/internal/transports/budget"
	"google.golang.org/protobuf/proto"
)

// maxStatusMemory bounds what the JSON of a status takes once it is decoded: twice its text, and
// room for values.
const maxStatusMemory = 2*MaxMessageBytes + 16<<20

// Build builds the message, if the lease can have as much memory as it takes. The error is a
// *decode.LimitError, a *budget.ExhaustedError, or the fault of the message.
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

// Unaffordable is the error of the port for a message for which there is no memory now; nil if
// err is another.
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

// checkStatus refuses a status that takes too much memory.
func checkStatus(status []byte) error {
	if object.Memory(status, maxStatusMemory) > maxStatusMemory {
		return fmt.Errorf("status: has too many values: it would take more than %d bytes of memory", maxStatusMemory)
	}
	return nil
}
