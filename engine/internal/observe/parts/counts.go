package parts

import "slices"

// NoInput is the index of the resource of an input that does not exist or is not selected.
const NoInput = -1

// undecidedInput is that of an input that may exist: the API server does not serve its resource.
const undecidedInput = -2

// part is one part of a parent. It exists while it has an input or outputs.
type part struct {
	name string
	// input is the index of the input's resource, NoInput or undecidedInput; outputs is the number
	// of outputs.
	input, outputs int
	// progress is the part's progress in the current round. leftOut counts the rounds in succession
	// that were replaced before the part was synced.
	progress progress
	leftOut  int
	// deferred reports that the part is to be synced again after the first syncs of the round, and
	// again that it is in the queue for that.
	deferred, again bool
	// failed reports that the last sync of the part had a fault, finalized that the finalize hook
	// has finished with it, and traced that its syncs of this round are traced.
	failed, finalized, traced bool
}

// outputID identifies an output of one parent.
type outputID struct {
	resource        int
	namespace, name string
}

// output is one output: its part and its conditions that are True.
type output struct {
	part       *part
	conditions []string
}

// counts counts the inputs and the outputs of one parent. Events change it one by one; nothing is
// counted twice if an event is repeated.
//
// Invariant: every number is that of a count over parts and outputs.
type counts struct {
	parts   map[string]*part
	all     map[outputID]output
	inputs  []int
	outputs []int
	// conditions counts the outputs with a condition that is True, by resource and condition.
	conditions []map[string]int
	// detachedParts are the parts with outputs and without input; detachedOutputs are their
	// outputs.
	detachedParts, detachedOutputs int
}

func newCounts(inputs, outputs int) counts {
	c := counts{
		parts: map[string]*part{}, all: map[outputID]output{},
		inputs: make([]int, inputs), outputs: make([]int, outputs), conditions: make([]map[string]int, outputs),
	}
	for i := range c.conditions {
		c.conditions[i] = map[string]int{}
	}
	return c
}

// part returns a part, a new one if necessary.
func (c *counts) part(name string) *part {
	p := c.parts[name]
	if p == nil {
		p = &part{name: name, input: NoInput}
		c.parts[name] = p
	}
	return p
}

// setInput notes the resource of a part's input. It reports whether that is a change.
func (c *counts) setInput(p *part, resource int) bool {
	if p.input == resource {
		return false
	}
	c.countDetached(p, -1)
	if p.input >= 0 {
		c.inputs[p.input]--
	}
	p.input = resource
	if resource >= 0 {
		c.inputs[resource]++
	}
	c.countDetached(p, 1)
	return true
}

// setOutput notes an output. It reports whether a number changed.
func (c *counts) setOutput(id outputID, o output) bool {
	before, known := c.all[id]
	if known && before.part == o.part && slices.Equal(before.conditions, o.conditions) {
		return false
	}
	c.removeOutput(id)
	c.all[id] = o
	c.countOutput(id, o, 1)
	return true
}

// removeOutput forgets an output, and returns its part; nil if it is not known.
func (c *counts) removeOutput(id outputID) *part {
	o, known := c.all[id]
	if !known {
		return nil
	}
	delete(c.all, id)
	c.countOutput(id, o, -1)
	return o.part
}

// countOutput adds an output n times to the numbers.
func (c *counts) countOutput(id outputID, o output, n int) {
	c.countDetached(o.part, -1)
	o.part.outputs += n
	c.countDetached(o.part, 1)
	c.outputs[id.resource] += n
	for _, name := range o.conditions {
		c.conditions[id.resource][name] += n
		if c.conditions[id.resource][name] == 0 {
			delete(c.conditions[id.resource], name)
		}
	}
}

// countDetached adds a part n times to the detached ones, if it is detached.
func (c *counts) countDetached(p *part, n int) {
	if p.input == NoInput && p.outputs > 0 {
		c.detachedParts += n
		c.detachedOutputs += n * p.outputs
	}
}
