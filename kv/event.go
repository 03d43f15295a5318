// Package kv holds what the block pools, the KV event publishers and the routers share: block hashes and KV events.
//
// A full block of prompt or generated tokens has a local hash (its tokens alone) and a sequence hash (its tokens and
// everything before them). Pools are keyed by sequence hash; KV events carry both.
package kv

// Tier says which memory an event is about.
type Tier uint8

const (
	Device     Tier = iota // G1, the GPU pool
	HostPinned             // G2, pinned host memory
)

// EventKind says what happened to the blocks of an event.
type EventKind uint8

const (
	Stored EventKind = iota
	Removed
)

// Event is one KV event. Its blocks are Events.Sequence[Offset : Offset+Count].
type Event struct {
	ID        uint64 // per rank, from 0, +1 an event, shared by all tiers
	Kind      EventKind
	Tier      Tier
	HasParent bool
	Parent    uint64 // sequence hash of the block before the first one, if HasParent
	Position  int32  // index of the first block in its sequence; -1 where the engine does not say
	Offset    int32
	Count     int32
}

// Events is a list of KV events with their blocks in flat buffers, so that a pass allocates nothing for them once the
// buffers have grown. A reader that keeps events copies them.
type Events struct {
	List     []Event
	Sequence []uint64 // sequence hash of each block
	Local    []uint64 // local hash of each block; 0 in removed events
	Tokens   []uint32 // token ids of stored blocks, block after block, only if the scheduler was asked for them
}

// Reset empties the list and keeps its buffers.
func (e *Events) Reset() {
	e.List, e.Sequence, e.Local, e.Tokens = e.List[:0], e.Sequence[:0], e.Local[:0], e.Tokens[:0]
}

// Blocks returns the sequence and local hashes of one event of the list.
func (e *Events) Blocks(ev Event) (sequence, local []uint64) {
	end := ev.Offset + ev.Count
	return e.Sequence[ev.Offset:end], e.Local[ev.Offset:end]
}
