package fast

import (
	"errors"

	"mockbench/engine"
	"mockbench/engine/timing"
	"mockbench/kv/pool"
)

// ErrBeyond says that a run did something that only the general loop can do.
var ErrBeyond = errors.New("replay: beyond the fast path")

// calendarDays is the number of lists by the pass in which requests end. Requests of later rounds stay in their list.
const calendarDays = 256

// rank is one engine: the pass of engine/vllm for the cases that Supports allows. Requests that generate one token in
// every pass are steady. They are not touched but in passes in which they begin or fill a block, or end.
type rank struct {
	index    int
	block    int // tokens
	budget   uint64
	maxSeqs  uint64
	maxLen   int // 0: none
	capacity int // token slots of the pool
	timer    timing.Timer
	hasher   *hasher

	pool    *pool.Pool
	changes *changes // for a router; nil: nobody asks
	waiting list
	queued  int
	running list // admitted, in order
	count   int
	orders  uint64

	pass       uint64 // number of the pass under way or done last
	steady     int
	tokens     int                // known by the steady requests, together
	boundaries []list             // of steady requests, by (length - joined) mod block
	calendar   [calendarDays]list // of steady requests, by the pass in which they end
	partial    *request           // whose prompt is not complete; it is the last of running
	ended      engine.Time        // end of the last pass
	joined     [2][]*request      // that became steady in the last pass and in this one

	out  outcome
	hits []int32

	inPass bool
	end    engine.Time // of the pass under way
	idle   bool        // waits for its turn to begin a pass
}

// outcome is what a pass did.
type outcome struct {
	effect    bool
	preempted bool
	prefilled int        // tokens of prompts that were computed
	quiet     []*request // complete without output
	tokens    int        // steady requests that got a token
	done      []*request // steady requests that are complete
	fresh     []*request // others that got a token
	refused   []*request
	admitted  []admission

	requests, lengths, prefixes int // that the prefill model is asked about
	budget                      uint64
}

type admission struct {
	q      *request
	cached int
}

func newRank(index int, cfg *engine.Config, m timing.Model, h *hasher) *rank {
	return &rank{index: index, block: cfg.BlockSize, budget: cfg.MaxNumBatchedTokens, maxSeqs: cfg.MaxNumSeqs, maxLen: cfg.MaxModelLen,
		capacity: cfg.NumGPUBlocks * cfg.BlockSize, timer: timing.NewTimer(m, *cfg), hasher: h, pool: pool.Bare(cfg.NumGPUBlocks),
		boundaries: make([]list, cfg.BlockSize)}
}

func (r *rank) blocks(tokens int) int { return (tokens + r.block - 1) / r.block }

// ready reports whether there is anything to do.
func (r *rank) ready() bool { return r.queued > 0 || r.count > 0 }

// submit queues a request.
func (r *rank) submit(q *request) {
	r.waiting.pushBack(q, inOrder)
	r.queued++
}

// begin decides a pass and returns its end.
func (r *rank) begin(now engine.Time) (end engine.Time, err error) {
	r.pass++
	o := &r.out
	*o = outcome{quiet: o.quiet[:0], done: o.done[:0], fresh: o.fresh[:0], refused: o.refused[:0], admitted: o.admitted[:0], budget: r.budget}
	if err := r.serve(); err != nil {
		return 0, err
	}
	if err := r.admit(); err != nil {
		return 0, err
	}
	end = now
	if isl, prefix := o.lengths/max(o.requests, 1), o.prefixes/max(o.requests, 1); isl != prefix {
		_, ms := r.timer.Prefill(o.requests, isl, prefix)
		end += ms
	}
	end += r.produce()
	o.effect = o.preempted || o.tokens+len(o.quiet)+len(o.fresh)+len(o.refused)+len(o.admitted) > 0 || r.partial != nil || !r.changes.empty()
	return end, nil
}
