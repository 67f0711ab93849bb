package queue

import "container/heap"

// readyHeap holds the keys of one priority in the order of their arrival.
type readyHeap []*entry

var _ heap.Interface = (*readyHeap)(nil)

func (h readyHeap) Len() int           { return len(h) }
func (h readyHeap) Less(i, j int) bool { return h[i].serial < h[j].serial }

func (h readyHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

// Push appends an entry; callers use heap.Push.
func (h *readyHeap) Push(x any) {
	e := x.(*entry)
	e.at = len(*h)
	*h = append(*h, e)
}

// Pop removes the last entry; callers use heap.Pop.
func (h *readyHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	e.at = -1
	return e
}

// laterHeap orders by the time at which a key is due.
type laterHeap []*delay

var _ heap.Interface = (*laterHeap)(nil)

func (h laterHeap) Len() int           { return len(h) }
func (h laterHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }

func (h laterHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

// Push appends a delay; callers use heap.Push.
func (h *laterHeap) Push(x any) {
	d := x.(*delay)
	d.at = len(*h)
	*h = append(*h, d)
}

// Pop removes the last delay; callers use heap.Pop.
func (h *laterHeap) Pop() any {
	last := len(*h) - 1
	d := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return d
}
