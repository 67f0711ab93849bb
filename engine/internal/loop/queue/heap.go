package queue

import "container/heap"

// readyHeap holds the keys of one priority in the order of their arrival.
type readyHeap[K comparable] []*entry[K]

var _ heap.Interface = (*readyHeap[int])(nil)

func (h readyHeap[K]) Len() int           { return len(h) }
func (h readyHeap[K]) Less(i, j int) bool { return h[i].before(h[j]) }

func (h readyHeap[K]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at = i
	h[j].at = j
}

// Push appends an entry; callers use heap.Push.
func (h *readyHeap[K]) Push(x any) {
	e := x.(*entry[K])
	e.at = len(*h)
	*h = append(*h, e)
}

// Pop removes the last entry; callers use heap.Pop.
func (h *readyHeap[K]) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	e.at = -1
	return e
}

// laterHeap orders by the time at which a key is due.
type laterHeap[K comparable] []*delay[K]

var _ heap.Interface = (*laterHeap[int])(nil)

func (h laterHeap[K]) Len() int           { return len(h) }
func (h laterHeap[K]) Less(i, j int) bool { return h[i].due.Before(h[j].due) }

func (h laterHeap[K]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at = i
	h[j].at = j
}

// Push appends a delay; callers use heap.Push.
func (h *laterHeap[K]) Push(x any) {
	d := x.(*delay[K])
	d.at = len(*h)
	*h = append(*h, d)
}

// Pop removes the last delay; callers use heap.Pop.
func (h *laterHeap[K]) Pop() any {
	last := len(*h) - 1
	d := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return d
}
