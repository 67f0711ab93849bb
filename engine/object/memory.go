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

// Memory returns about how many bytes JSON takes once it is decoded, without decoding it: empty
// items take a hundred times their text. It stops counting beyond limit. Of text that is not JSON
// it returns some estimate, too.
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
