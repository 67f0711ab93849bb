package parts

import "slices"

// MaxFailures bounds the failures of one parent that are described.
const MaxFailures = 5

// Failure describes the fault of one part.
type Failure struct {
	// Part is the map key of the part.
	Part            string
	Reason, Message string
	// key identifies the fault; the message may have other ports and times with each try.
	key string
}

// failures are the parts of one parent with a fault. It describes the first few. When one of them
// recovers, the next other part that fails again is described instead.
type failures struct {
	total int
	first []Failure
}

// set notes the fault of a part. It reports whether that is a change.
func (f *failures) set(p *part, fault Failure) bool {
	changed := !p.failed
	if changed {
		p.failed = true
		f.total++
	}
	at := slices.IndexFunc(f.first, func(other Failure) bool { return other.Part == fault.Part })
	switch {
	case at >= 0 && f.first[at].key == fault.key:
		return changed
	case at >= 0:
		f.first[at] = fault
		return true
	case len(f.first) < MaxFailures:
		f.first = append(f.first, fault)
		return true
	}
	return changed
}

// clear notes that a part has no fault. It reports whether that is a change.
func (f *failures) clear(p *part) bool {
	if !p.failed {
		return false
	}
	p.failed = false
	f.total--
	f.first = slices.DeleteFunc(f.first, func(other Failure) bool { return other.Part == p.name })
	return true
}
