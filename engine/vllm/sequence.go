package vllm

import (
	"slices"

	"mockbench/engine"
	"mockbench/kv"
	"mockbench/kv/hostcache"
)

// place says where a sequence is in its life.
type place uint8

const (
	gone place = iota
	inWaiting
	inDeferred // waits for the host tier
	inRunning
	sourceHeld         // complete, its KV is kept for another rank
	destinationPending // wants room for a prompt that another rank computes
	destinationHeld    // has the room, the KV is on its way
	destinationReady   // the KV has arrived
)

// sequence is a request as the scheduler sees it: known tokens, the block table and how much of it is computed. What a
// decoding request needs in every pass comes first, so that it lies together.
type sequence struct {
	req       *engine.Request
	prompt    int     // tokens of the prompt
	length    int     // known tokens: prompt and generated
	end       int     // known tokens after which it is complete
	computed  int     // leading tokens whose KV exists or is planned in this pass
	allocated int     // leading tokens covered by units
	units     []int32 // block table, one unit a block of allocated tokens

	pass       uint64 // number of the pass it was scheduled in last, plus one
	work       int    // its entry in that pass's record, until entries without request are removed
	prefilling bool   // computes prompt tokens in that pass
	place      place
	ran        bool // was admitted before
	preempted  bool // waits for the second time or more
	answered   bool // had an output

	sequence []uint64 // sequence hashes of complete blocks, as far as they are known; none without prefix caching
	local    []uint64 // local hashes of the same blocks
	limit    int      // output tokens, not counting what the model length cuts off
	cached   int      // tokens reused at first admission
	since    engine.Time

	handoff  engine.ID
	received bool   // its prompt is computed by another rank
	source   bool   // is held after its last token
	refused  uint64 // generation in which it got no room, as a pending destination

	serial    uint64 // tells requests apart that a sequence served one after the other
	sleeping  bool   // deferred until a transfer is complete
	load      *load
	lastStore *hostcache.Transfer
	nextStore int // prompt blocks handed to the host tier

	prev, next *sequence // neighbours in the waiting queue
}

// generated returns the number of output tokens so far.
func (q *sequence) generated() int { return q.length - q.prompt }

// remaining returns the number of tokens it may still produce.
func (q *sequence) remaining() int { return max(0, q.end-q.length) }

// token returns a known token or, for the position length, the next one.
func (q *sequence) token(i int) uint32 {
	if i < q.prompt {
		return q.req.PromptToken(i)
	}
	k := i - q.prompt
	if k < len(q.req.Output) {
		return q.req.Output[k]
	}
	return kv.SyntheticToken(q.req.ID, k)
}

// outputBlocks is how many blocks of output a sequence has room for from the start.
const outputBlocks = 16

// start prepares a sequence, fresh or used before, for a request.
func (s *Scheduler) start(q *sequence, r *engine.Request, now engine.Time) {
	s.serial++
	prompt := r.PromptLen()
	*q = sequence{serial: s.serial, req: r, prompt: prompt, length: prompt, limit: s.policy.OutputLimit(prompt, r.OutputLimit()),
		units: q.units[:0], sequence: q.sequence[:0], local: q.local[:0], since: now}
	q.end = q.prompt + q.limit
	if s.cfg.MaxModelLen > 0 {
		q.end = min(q.end, s.cfg.MaxModelLen)
	}
	if s.cfg.EnablePrefixCaching {
		blocks := q.prompt/s.blockSize + min(q.limit/s.blockSize, outputBlocks)
		q.local, q.sequence = slices.Grow(q.local, blocks), slices.Grow(q.sequence, blocks)
		q.local, q.sequence = r.AppendPromptHashes(q.local, q.sequence, s.blockSize)
	}
}

// hashNext extends the hashes of a sequence by its next block, all of whose tokens are known.
func (s *Scheduler) hashNext(q *sequence) {
	b := len(q.sequence)
	s.tokens = q.appendTokens(s.tokens[:0], b*s.blockSize, (b+1)*s.blockSize)
	local := kv.BlockHash(s.tokens)
	hash := local
	if b > 0 {
		hash = kv.SequenceHash(q.sequence[b-1], local)
	}
	q.local, q.sequence = append(q.local, local), append(q.sequence, hash)
}

func (q *sequence) appendTokens(dst []uint32, from, to int) []uint32 {
	for i := from; i < to; i++ {
		dst = append(dst, q.token(i))
	}
	return dst
}

// release gives all units back, the last block first, so that it is the first to be evicted.
func (s *Scheduler) release(q *sequence) {
	for i := len(q.units) - 1; i >= 0; i-- {
		s.pool.Release(q.units[i])
	}
	q.units = q.units[:0]
	q.computed, q.allocated = 0, 0
}

// forget ends the life of a sequence that is in no queue and owns nothing.
func (s *Scheduler) forget(q *sequence) {
	delete(s.sequences, q.req.ID)
	if s.handoffs.byID[q.handoff] == q { // requests without a handoff share the zero id with one that may be a handoff's
		delete(s.handoffs.byID, q.handoff)
	}
	q.place, q.req = gone, nil
	s.spare = append(s.spare, q)
}
