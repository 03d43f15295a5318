package vllm_test

import (
	"slices"

	"mockbench/engine"
	"mockbench/engine/spec"
	"mockbench/engine/timing"
	"mockbench/kv"
)

// naive is the scheduler in its simplest form: lists that are walked, hashes that are computed again whenever they are
// needed, and nothing kept that could be derived. It is the oracle of the real one.
type naive struct {
	cfg     engine.Config
	ranks   int
	timer   timing.Timer
	sampler *spec.Sampler

	waiting, running []*naiveSequence
	resident         map[uint64][]*naiveBlock // copies of a hash, oldest first
	inactive         []*naiveBlock            // least recently released first
	blocks           int                      // private or cached
	preemptions      uint64
	crowded          bool
	events           uint64

	pass      naivePass
	budget    uint64
	preempted bool
}

type naiveBlock struct {
	hash   uint64
	cached bool
	refs   int
}

type naiveSequence struct {
	r           *engine.Request
	tokens      []uint32
	table       []*naiveBlock
	hashed      int // leading blocks with a hash
	computed    int
	firstCached int
	ran, again  bool
	answered    bool
	promptWork  int // prompt tokens in this pass
}

func (q *naiveSequence) generated() int { return len(q.tokens) - len(q.r.Prompt) }

// naivePass is what both schedulers must agree on.
type naivePass struct {
	Work        []engine.Work
	Admissions  []engine.Admission
	Preemptions []engine.Preemption
	Outputs     []engine.Output
	Events      []kv.Event
	Sequence    []uint64
	Load        engine.Load
	End         engine.Time
	BudgetLeft  uint64
	Drafts      engine.Drafts
	Queued      [4]int // numbers and sums of both kinds of waiting requests
}

func newNaive(cfg engine.Config, ranks int, timer timing.Timer, sampler *spec.Sampler) *naive {
	return &naive{cfg: cfg, ranks: ranks, timer: timer, sampler: sampler, resident: map[uint64][]*naiveBlock{}}
}

// schedule returns 1 if q got its tokens, 0 if it is blocked and -1 if it was preempted itself.
func (n *naive) schedule(q *naiveSequence, hits []*naiveBlock, waited bool) int {
	cached := len(hits) * n.cfg.BlockSize
	if q.computed > 0 {
		cached = 0
	}
	length, prompt := len(q.tokens), len(q.r.Prompt)
	start := q.computed + cached
	before := min(start, prompt)
	if rest := prompt - before; rest > 0 && !n.cfg.EnableChunkedPrefill && uint64(rest) > n.budget {
		return 0
	}
	tokens := int(min(uint64(length-start), n.budget))
	if tokens == 0 && length > start {
		return 0
	}
	target := start + tokens
	for n.ceil(target) > len(q.table) {
		blocks, ok := n.reserve(hits, n.ceil(target)-len(q.table)-len(hits))
		if ok {
			q.table = append(append(q.table, hits...), blocks...)
			break
		}
		switch n.preempt(false) {
		case nil:
			return 0
		case q:
			return -1
		}
	}
	q.computed = target
	n.publish(q, start/n.cfg.BlockSize, target/n.cfg.BlockSize)
	q.promptWork = min(target, prompt) - before
	n.pass.Work = append(n.pass.Work, engine.Work{Request: q.r, Tokens: tokens, Prompt: q.promptWork, Prefix: before,
		Length: length, Waited: waited})
	n.budget -= uint64(tokens)
	return 1
}

func (n *naive) remaining(q *naiveSequence) int {
	left := q.r.OutputLimit() - q.generated()
	if n.cfg.MaxModelLen > 0 {
		left = min(left, n.cfg.MaxModelLen-len(q.tokens))
	}
	return max(left, 0)
}

// run is one pass.
func (n *naive) run(now engine.Time, step uint64) naivePass {
	n.pass, n.budget, n.preempted = naivePass{}, n.cfg.MaxNumBatchedTokens, false
	for _, q := range slices.Concat(n.waiting, n.running) {
		q.promptWork = 0
	}
	deferring := n.cfg.PrefillScheduleInterval > 1 && n.ranks > 1 && step%uint64(n.cfg.PrefillScheduleInterval) != 0 && !n.crowded &&
		slices.ContainsFunc(n.running, func(q *naiveSequence) bool { return q.computed >= len(q.r.Prompt) })
	for i := 0; i < len(n.running) && n.budget > 0; {
		q := n.running[i]
		if deferring && q.computed < len(q.r.Prompt) {
			i++
			continue
		}
		outcome := n.schedule(q, nil, false)
		if outcome == 0 {
			break
		}
		if outcome == 1 {
			i++
		}
	}
	rejected := n.admit(deferring)
	if !deferring && !n.preempted {
		n.crowded = len(n.waiting) > 0
	}
	n.pass.BudgetLeft = n.budget
	n.pass.End = now
	n.timePrefill()
	n.produce()
	for _, r := range rejected {
		n.pass.Outputs = append(n.pass.Outputs, engine.Output{Request: r, Position: -1, Completed: true, Rejected: true, Cached: -1})
	}
	for _, q := range n.waiting {
		if q.again {
			n.pass.Queued[2]++
			n.pass.Queued[3] += len(q.tokens)
		} else {
			n.pass.Queued[0]++
			n.pass.Queued[1] += len(q.r.Prompt)
		}
	}
	return n.pass
}

func (n *naive) load() engine.Load {
	return engine.Load{ActiveBlocks: n.active(), InactiveBlocks: len(n.inactive), TotalBlocks: n.cfg.NumGPUBlocks,
		Running: len(n.running), Waiting: len(n.waiting), Preemptions: n.preemptions}
}

func (n *naive) admit(deferring bool) (rejected []*engine.Request) {
	for !n.preempted && uint64(len(n.running)) < n.cfg.MaxNumSeqs && len(n.waiting) > 0 {
		q := n.waiting[0]
		if n.cfg.MaxModelLen > 0 && len(q.r.Prompt) >= n.cfg.MaxModelLen {
			n.waiting = n.waiting[1:]
			rejected = append(rejected, q.r)
			continue
		}
		var hits []*naiveBlock
		if len(q.r.Prompt) > 0 {
			hits = n.lookup(q)
			active := 0
			for _, b := range hits {
				if b.refs > 0 {
					active++
				}
			}
			if !q.ran && n.ceil(len(q.tokens)) > n.cfg.NumGPUBlocks {
				n.waiting = n.waiting[1:]
				rejected = append(rejected, q.r)
				continue
			}
			if q.generated() != q.r.OutputLimit() {
				hits = hits[:min(len(hits), (len(q.tokens)-1)/n.cfg.BlockSize)]
				if n.sampler != nil && len(hits) > 0 {
					hits = hits[:len(hits)-1]
				}
			}
			if n.ceil(len(q.tokens))-min(active, len(hits)) > n.cfg.NumGPUBlocks-n.active() {
				return rejected
			}
			if deferring && len(q.tokens)-len(hits)*n.cfg.BlockSize > 1 {
				return rejected
			}
		}
		left := n.budget
		if n.schedule(q, hits, true) != 1 {
			return rejected
		}
		n.waiting = slices.DeleteFunc(n.waiting, func(w *naiveSequence) bool { return w == q })
		n.running = append(n.running, q)
		cached := len(hits) * n.cfg.BlockSize
		n.pass.Admissions = append(n.pass.Admissions, engine.Admission{Request: q.r, Reused: cached, First: !q.ran})
		if !q.ran {
			q.ran, q.firstCached = true, cached
		}
		if left == 0 {
			return rejected
		}
	}
	return rejected
}

func (n *naive) timePrefill() {
	count, isl, prefix := 0, 0, 0
	for _, w := range n.pass.Work {
		if w.Prompt > 0 && n.cfg.Role != engine.DecodeRole {
			count, isl, prefix = count+1, isl+w.Prefix+w.Prompt, prefix+w.Prefix
		}
	}
	if count > 0 && isl/count > prefix/count {
		_, length := n.timer.Prefill(count, isl/count, prefix/count)
		n.pass.End += length
	}
}

func (n *naive) produce() {
	n.running = slices.DeleteFunc(n.running, func(q *naiveSequence) bool {
		if q.computed < len(q.tokens) || n.remaining(q) > 0 {
			return false
		}
		n.pass.Outputs = append(n.pass.Outputs, engine.Output{Request: q.r, Position: -1, Completed: true, Cached: q.cachedOnce()})
		n.release(q)
		return true
	})
	producers, spare := n.producers()
	count, tokens := 0, 0
	for _, q := range producers {
		if n.cfg.Role != engine.Aggregated || n.sampler != nil || q.generated() > 0 || q.promptWork == 0 {
			count, tokens = count+1, tokens+len(q.tokens)
		}
	}
	if count > 0 && n.cfg.Role != engine.PrefillRole {
		_, length := n.timer.Decode(count, tokens, n.cfg.NumGPUBlocks*n.cfg.BlockSize)
		n.pass.End += length
	}
	for _, q := range producers {
		accepted := 1
		if n.sampler != nil && n.cfg.Role != engine.PrefillRole {
			accepted = n.sampler.Accept()
		}
		if q.promptWork == 0 && n.cfg.Role != engine.PrefillRole {
			n.pass.Drafts.Accepted += accepted
			n.pass.Drafts.Forwards++
		}
		for left := min(accepted, n.remaining(q)); left > 0; left-- {
			n.append(q)
			if n.sampler != nil && len(q.table) < n.ceil(len(q.tokens)) {
				q.table, spare = append(q.table, spare[0]), spare[1:]
			}
			if left > 1 {
				q.computed = len(q.tokens)
				n.publish(q, (len(q.tokens)-1)/n.cfg.BlockSize, len(q.tokens)/n.cfg.BlockSize)
			}
		}
		if n.remaining(q) == 0 {
			n.release(q)
			n.running = slices.DeleteFunc(n.running, func(x *naiveSequence) bool { return x == q })
		}
	}
	n.blocks -= len(spare)
}

// producers lists the requests that get tokens, with blocks for their longest bursts.
func (n *naive) producers() (list []*naiveSequence, spare []*naiveBlock) {
	for {
		list = nil
		need := 0
		for _, q := range n.running {
			if q.computed == len(q.tokens) {
				burst := 1
				if n.sampler != nil && n.cfg.Role != engine.PrefillRole {
					burst = min(1+n.sampler.Drafts(), n.remaining(q))
				}
				list = append(list, q)
				need += n.ceil(len(q.tokens)+burst) - n.ceil(len(q.tokens))
			}
		}
		if n.sampler == nil || len(list) == 0 {
			return list, nil
		}
		if spare, ok := n.reserve(nil, need); ok {
			return list, spare
		}
		n.preempt(true)
	}
}

func (n *naive) append(q *naiveSequence) {
	k := q.generated()
	token := kv.SyntheticToken(q.r.ID, k)
	if k < len(q.r.Output) {
		token = q.r.Output[k]
	}
	q.tokens = append(q.tokens, token)
	n.pass.Outputs = append(n.pass.Outputs, engine.Output{Request: q.r, Position: int32(k), Token: token, HasToken: true,
		Completed: n.remaining(q) == 0, Cached: q.cachedOnce()})
}

func (q *naiveSequence) cachedOnce() int32 {
	if q.answered {
		return -1
	}
	q.answered = true
	return int32(q.firstCached)
}
