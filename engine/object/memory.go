package object

const (
	// valueBytes is about what one JSON value takes beside its text: a slot of a slice that grows,
	// or of a map.
	valueBytes = 64
	// objectBytes is what a JSON object takes beyond that: a struct or a map.
	objectBytes = 256
	// copies is how often a JSON text is there: as it came, and cut into its parts.
	copies = 2
)

// Memory estimates how many bytes JSON will take once it is decoded into maps, without decoding it.
// Call it before decoding JSON from another process: a list of empty items takes about a hundred
// times its text. Counting stops once the estimate exceeds limit. For invalid JSON the estimate
// means nothing.
func Memory(data []byte, limit int64) int64 {
	memory := copies * int64(len(data))
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			i = closingQuote(data, i)
		case '{':
			memory += valueBytes + objectBytes
		case '[', ',':
			memory += valueBytes
		}
		if memory > limit {
			return memory
		}
	}
	return memory
}
