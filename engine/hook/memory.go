package hook

import "context"

// Memory counts the memory of answers against the memory budget of the process.
type Memory interface {
	// Reserve counts bytes until release is called, or until the sync of ctx ends. It waits while
	// there is no room, unless the sync already holds memory of an earlier answer. The error is an
	// *Error, or ctx's error.
	Reserve(ctx context.Context, bytes int64) (release func(), err error)
}

// Reserve counts bytes of an answer against the memory budget of the process, so that many large
// answers at once make the engine slower and do not end it. Call it when the size of an answer is
// known and before the answer is decoded, with the context of [Hook.Ask]:
//
//	release, err := config.Reserve(ctx, 3*int64(len(body)))
//	if err != nil {
//		return nil, err
//	}
//	answer, err := decode(body)
//	if err != nil {
//		release()
//		return nil, err
//	}
//	return answer, nil
//
// The engine calls release when the sync ends; call it yourself only to give memory back early. It
// may be called more than once. The error is to be returned as it is: an [*Error] if there is no
// room, or ctx's error. Without a Memory, Reserve counts nothing.
func (c *Config) Reserve(ctx context.Context, bytes int64) (release func(), err error) {
	if c.Memory == nil {
		return func() {}, nil
	}
	return c.Memory.Reserve(ctx, bytes)
}
