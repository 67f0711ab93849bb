package validate

import (
	"fmt"
	"io"
)

// WriteText writes a line for each finding, and nothing if there is none.
func (r *Report) WriteText(w io.Writer) error {
	for _, f := range r.Findings {
		if _, err := fmt.Fprintln(w, f); err != nil {
			return err
		}
	}
	return nil
}
