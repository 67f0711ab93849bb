package validate

import (
	"fmt"
	"io"

	"github.com/hookloop/hookloop/internal/printable"
)

// maxLine bounds the line of a finding, in characters.
const maxLine = 8000

// WriteText writes a line for each finding, and nothing if there is none.
func (r *Report) WriteText(w io.Writer) error {
	for _, f := range r.Findings {
		if _, err := fmt.Fprintln(w, printable.Text(f.String(), maxLine)); err != nil {
			return err
		}
	}
	return nil
}
