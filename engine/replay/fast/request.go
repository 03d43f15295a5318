package fast

import (
	"mockbench/engine"
	"mockbench/engine/report"
	"mockbench/engine/router"
	"mockbench/engine/trace"
	"mockbench/kv"
)

// request is a request from its arrival to its end. It is used again for later ones.
type request struct {
	links [chains]links
	entry report.Entry

	prompt   int    // tokens of the prompt
	length   int    // known tokens; of a steady request, those it had when it became steady
	end      int    // known tokens after which it is complete
	computed int    // leading tokens with KV; not kept of a steady request
	plan     uint64 // where its planned output begins
	sequence []uint64
	tail     []uint32 // prompt tokens behind the last complete block
	units    []int32

	ran    bool // was admitted before
	steady bool
	order  uint64      // of admission
	joined uint64      // pass from which on it has been steady
	next   engine.Time // end of that pass

	ticket router.Ticket
}

// at returns the tokens that a steady request knows when a pass begins.
func (q *request) at(pass uint64) int { return q.length + int(pass-q.joined) }

// hasher makes the tokens and hashes of requests.
type hasher struct {
	traceBlock, block int // tokens an id stands for, tokens of an engine block
	planner           *trace.Planner
	tokens            []uint32 // of one engine block
}

func newHasher(traceBlock, block int) *hasher {
	return &hasher{traceBlock: traceBlock, block: block, planner: trace.NewPlanner(), tokens: make([]uint32, block)}
}

// prompt fills in the hashes of the complete blocks of a prompt and the tokens that follow them. A block that is full of
// one id is hashed once an id.
func (h *hasher) prompt(q *request, ids []uint32) {
	q.sequence = q.sequence[:0]
	var parent, local uint64
	whole := -1 // index of the id whose full block has the hash local
	for b := range q.prompt / h.block {
		first, last := b*h.block/h.traceBlock, ((b+1)*h.block-1)/h.traceBlock
		if first != last || first != whole {
			h.fill(ids, b*h.block)
			local, whole = kv.BlockHash(h.tokens), -1
			if first == last {
				whole = first
			}
		}
		if b == 0 {
			parent = local
		} else {
			parent = kv.SequenceHash(parent, local)
		}
		q.sequence = append(q.sequence, parent)
	}
	q.tail = q.tail[:0]
	for i := len(q.sequence) * h.block; i < q.prompt; i++ {
		q.tail = append(q.tail, ids[i/h.traceBlock])
	}
}

// fill puts the tokens of a block into h.tokens.
func (h *hasher) fill(ids []uint32, from int) {
	for i := 0; i < h.block; {
		id := ids[(from+i)/h.traceBlock]
		end := min(h.block, i+h.traceBlock-(from+i)%h.traceBlock)
		for ; i < end; i++ {
			h.tokens[i] = id
		}
	}
}

// extend adds the hash of the next block of a request, which holds generated tokens.
func (h *hasher) extend(q *request) {
	b := len(q.sequence)
	n := 0
	position := b*h.block - q.prompt // of the first generated token in the block
	if position < 0 {
		n = copy(h.tokens, q.tail)
		position = 0
	}
	h.planner.Read(h.tokens[n:], q.plan+uint64(position))
	hash := kv.BlockHash(h.tokens)
	if b > 0 {
		hash = kv.SequenceHash(q.sequence[b-1], hash)
	}
	q.sequence = append(q.sequence, hash)
}
