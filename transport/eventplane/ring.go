package eventplane

import "mockbench/kv"

// ringEvents is how many events a rank keeps for routers that missed some.
const ringEvents = 1024

// ring keeps the newest events of a rank and their blocks. Its memory follows what it holds.
type ring struct {
	events fifo[kv.Event] // Offset is not used
	words  fifo[uint64]   // blocks of the events: sequence hashes, then local hashes of stored ones
}

// ringWords returns how many words the blocks of an event take.
func ringWords(e kv.Event) int {
	if e.Kind == kv.Stored {
		return 2 * int(e.Count)
	}
	return int(e.Count)
}

func (r *ring) add(e kv.Event, sequence, local []uint64) {
	if held := r.events.list(); len(held) == ringEvents {
		r.words.drop(ringWords(held[0]))
		r.events.drop(1)
	}
	r.events.add(e)
	r.words.add(sequence...)
	if e.Kind == kv.Stored {
		r.words.add(local...)
	}
}

// oldest returns the id of the oldest event kept; ok is false if there is none.
func (r *ring) oldest() (id uint64, ok bool) {
	if held := r.events.list(); len(held) > 0 {
		return held[0].ID, true
	}
	return 0, false
}

// each calls f for every event with at least the given id, oldest first.
func (r *ring) each(from uint64, f func(e kv.Event, sequence, local []uint64)) {
	words := r.words.list()
	for _, e := range r.events.list() {
		blocks := words[:ringWords(e)]
		words = words[len(blocks):]
		if e.ID >= from {
			f(e, blocks[:e.Count], blocks[e.Count:])
		}
	}
}

// fifo is a list that grows at its end and shrinks at its start.
type fifo[T any] struct {
	items []T
	gone  int // dropped items that still stand in front
}

func (f *fifo[T]) list() []T { return f.items[f.gone:] }

func (f *fifo[T]) drop(n int) { f.gone += n }

func (f *fifo[T]) add(items ...T) {
	if f.gone > len(f.items)/2 {
		f.items = append(f.items[:0], f.items[f.gone:]...)
		f.gone = 0
	}
	f.items = append(f.items, items...)
}
