package top

import (
	"math"
	"slices"

	dto "github.com/prometheus/client_model/go"
)

// histogram counts observations in buckets. The zero value has no observations.
type histogram struct {
	// buckets are ordered by their upper limits.
	buckets []bucket
	// exponential is true for the buckets of a native histogram, and false for classic ones.
	exponential bool
}

// bucket counts the observations above lower, up to upper.
type bucket struct {
	lower, upper float64
	count        float64
}

// histogramOf returns the native buckets of a histogram if there are any, and the classic ones
// otherwise.
func histogramOf(h *dto.Histogram) histogram {
	if h.Schema == nil || len(h.PositiveSpan) == 0 && h.GetZeroCount() == 0 {
		return classic(h)
	}
	out := histogram{exponential: true}
	if h.GetZeroCount() > 0 {
		out.buckets = append(out.buckets, bucket{0, h.GetZeroThreshold(), float64(h.GetZeroCount())})
	}
	base := math.Exp2(math.Exp2(-float64(h.GetSchema()))) // the factor between two limits
	index := int32(0)
	count := int64(0)
	at := 0
	for _, span := range h.PositiveSpan {
		index += span.GetOffset()
		for range span.GetLength() {
			if at == len(h.PositiveDelta) {
				return out // an invalid histogram
			}
			count += h.PositiveDelta[at]
			at++
			upper := math.Pow(base, float64(index))
			out.buckets = append(out.buckets, bucket{upper / base, upper, float64(count)})
			index++
		}
	}
	return out
}

// classic returns the classic buckets of a histogram.
func classic(h *dto.Histogram) histogram {
	var out histogram
	lower := 0.0
	below := 0.0
	for _, b := range h.Bucket {
		out.buckets = append(out.buckets, bucket{lower, b.GetUpperBound(), float64(b.GetCumulativeCount()) - below})
		lower = b.GetUpperBound()
		below = float64(b.GetCumulativeCount())
	}
	if rest := float64(h.GetSampleCount()) - below; rest > 0 {
		out.buckets = append(out.buckets, bucket{lower, math.Inf(1), rest})
	}
	return out
}

// plus returns the sum of two histograms.
func (h histogram) plus(other histogram) histogram { return h.merge(other, 1) }

// minus returns the observations since an earlier state. If the engine has restarted or its buckets
// have changed, it returns all of them.
func (h histogram) minus(earlier histogram) histogram {
	rest := h.merge(earlier, -1)
	if h.exponential != earlier.exponential && len(earlier.buckets) > 0 ||
		slices.ContainsFunc(rest.buckets, func(b bucket) bool { return b.count < 0 }) {
		return h
	}
	return rest
}

func (h histogram) merge(other histogram, sign float64) histogram {
	sum := histogram{slices.Clone(h.buckets), h.exponential || other.exponential}
	for _, b := range other.buckets {
		i := slices.IndexFunc(sum.buckets, func(s bucket) bool { return same(s.upper, b.upper) && same(s.lower, b.lower) })
		if i < 0 {
			b.count *= sign
			sum.buckets = append(sum.buckets, b)
			continue
		}
		sum.buckets[i].count += sign * b.count
	}
	slices.SortFunc(sum.buckets, func(a, b bucket) int {
		switch {
		case a.upper < b.upper:
			return -1
		case a.upper > b.upper:
			return 1
		}
		return 0
	})
	return sum
}

// same compares limits of buckets, which may differ by a rounding error.
func same(a, b float64) bool {
	return a == b || math.Abs(a-b) < 1e-9*math.Max(math.Abs(a), math.Abs(b))
}

// count returns the number of observations.
func (h histogram) count() float64 {
	n := 0.0
	for _, b := range h.buckets {
		n += b.count
	}
	return n
}

// quantile estimates the value below which the given share of the observations lies. It
// interpolates as Prometheus does: exponentially within native buckets, linearly within classic
// ones, so the true value is within the same bucket. The engine's native buckets are 19 % wide. For
// the last classic bucket, which has no upper limit, it returns the lower limit. Without
// observations it returns NaN.
func (h histogram) quantile(share float64) float64 {
	rank := share * h.count()
	for i, b := range h.buckets {
		if b.count <= 0 {
			continue
		}
		if rank > b.count && i < len(h.buckets)-1 {
			rank -= b.count
			continue
		}
		part := math.Min(1, rank/b.count)
		switch {
		case math.IsInf(b.upper, 1):
			return b.lower
		case h.exponential && b.lower > 0:
			return b.lower * math.Pow(b.upper/b.lower, part)
		}
		return b.lower + (b.upper-b.lower)*part
	}
	return math.NaN()
}
