package meter

import (
	"fmt"
	"strconv"
	"strings"
)

// Samples are the series of a metrics page with their values, in the order of the page.
type Samples []sample

type sample struct {
	name, labels string
	value        float64
}

// Parse reads a page in Prometheus' text format.
func Parse(page string) (Samples, error) {
	var samples Samples
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		space := strings.LastIndexByte(line, ' ')
		if space < 0 {
			return nil, fmt.Errorf("metrics: line %q: expected a name and a value", line)
		}
		value, err := strconv.ParseFloat(line[space+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("metrics: line %q: %w", line, err)
		}
		name, labels, _ := strings.Cut(line[:space], "{")
		samples = append(samples, sample{name: name, labels: strings.TrimSuffix(labels, "}"), value: value})
	}
	return samples, nil
}

// Sum returns the sum of all series with the name.
func (s Samples) Sum(name string) float64 {
	var sum float64
	for _, v := range s.By(name, "") {
		sum += v
	}
	return sum
}

// By returns the sums of the series with the name, by the values of one label. A series without the
// label counts as "".
func (s Samples) By(name, label string) map[string]float64 {
	sums := map[string]float64{}
	for _, one := range s {
		if one.name == name {
			sums[labelOf(one.labels, label)] += one.value
		}
	}
	return sums
}

// labelOf returns a label's value. It cuts values at escaped quotes: the counters that are read
// here have none.
func labelOf(labels, label string) string {
	if label == "" {
		return ""
	}
	_, rest, found := strings.Cut(","+labels, ","+label+`="`)
	if !found {
		return ""
	}
	value, _, _ := strings.Cut(rest, `"`)
	return value
}
