// Package sglang schedules one rank in the manner of SGLang: a radix prefix cache, prefill batches that stop decoding,
// and admission that reserves part of the output of what runs already.
package sglang

import (
	"fmt"

	"mockbench/engine"
	"mockbench/engine/spec"
	"mockbench/engine/timing"
	"mockbench/kv"
	"mockbench/kv/radix"
)

// Scheduler is one rank. It implements engine.Scheduler, engine.Disaggregated and engine.RoundKeeper.
type Scheduler struct {
	rank    int
	ranks   int
	page    int // tokens
	cfg     engine.Config
	timer   timing.Timer
	sampler *spec.Sampler // nil without speculative decoding, and for prefill ranks
	pool    *radix.Tree
	reuse   bool // prefix caching
	ratio   ratio
	chunk   int // chunk budget of one prefill batch, tokens

	sequences map[engine.ID]*sequence
	handoffs  map[engine.ID]*sequence
	waiting   queue
	ready     []*sequence // destinations whose KV has arrived
	running   []*sequence
	pending   []*sequence    // destinations that wait for room
	held      int            // destinations with room, not yet activated
	arriving  engine.Moments // prompt lengths of destinations that do not run yet
	retries   uint64         // generation of the destination queue; moves on when room may have appeared

	roundsLeft int // rounds without prefill

	pages  ledger
	pass   record
	scraps []int32
}

// ratio is the share of the remaining output that admission sets aside for what runs. It starts at init, decays with
// every decode pass and jumps to an estimate after a retraction.
type ratio struct{ now, init, min, step float64 }

// New returns rank `rank` of a group of `ranks`. The configuration has been validated; a chunk size that the group
// divides to nothing is the one error left.
func New(cfg engine.Config, rank, ranks int, timer timing.Timer, sampler *spec.Sampler) (*Scheduler, error) {
	chunk, err := chunkOf(cfg, ranks)
	if err != nil {
		return nil, err
	}
	s := &Scheduler{rank: rank, ranks: ranks, ratio: newRatio(cfg, ranks), page: cfg.BlockSize, cfg: cfg, timer: timer,
		pool: radix.New(cfg.NumGPUBlocks), reuse: cfg.EnablePrefixCaching, chunk: chunk,
		sequences: map[engine.ID]*sequence{}, handoffs: map[engine.ID]*sequence{}, retries: 1}
	if cfg.Role != engine.PrefillRole {
		s.sampler = sampler
	}
	s.pages = newLedger(cfg.NumGPUBlocks)
	s.pass.events.On = cfg.EmitKVEvents && cfg.EnablePrefixCaching
	return s, nil
}

// Submit implements engine.Scheduler.
func (s *Scheduler) Submit(r *engine.Request, now engine.Time) error {
	_, err := s.submit(r, now)
	return err
}

func (s *Scheduler) submit(r *engine.Request, now engine.Time) (*sequence, error) {
	q, err := s.own(r, now)
	if err != nil {
		return nil, err
	}
	q.place = inWaiting
	s.waiting.pushBack(q)
	return q, nil
}

// own registers a request that is not active yet.
func (s *Scheduler) own(r *engine.Request, now engine.Time) (*sequence, error) {
	s.pass.command()
	if s.sequences[r.ID] != nil {
		return nil, fmt.Errorf("rank %d: %w", s.rank, engine.ErrActive)
	}
	q := newSequence(r, s.page, s.cfg.MaxModelLen, s.pool.Root(), now)
	s.sequences[r.ID] = q
	return q, nil
}

// forget ends the life of a sequence.
func (s *Scheduler) forget(q *sequence) {
	delete(s.sequences, q.req.ID)
	if q.source || q.destination {
		delete(s.handoffs, q.handoff)
	}
	q.place = nowhere
}

// Cancel implements engine.Scheduler. Held sources and destinations that do not run yet are out of its reach.
func (s *Scheduler) Cancel(id engine.ID, now engine.Time, discard bool) engine.CancelResult {
	s.pass.command()
	q := s.sequences[id]
	if q == nil || q.place != inWaiting && q.place != inReady && q.place != inRunning {
		if !discard || !s.pass.drop(id) {
			return engine.CancelResult{}
		}
		return engine.CancelResult{Suppressed: true, Retired: true}
	}
	s.stop(q)
	result := engine.CancelResult{Applied: true, Retired: true, Suppressed: s.pass.drop(id)}
	if !s.pass.open {
		s.attempt()
	}
	return s.pass.result(result)
}

// stop takes a sequence out of its list and gives up what it owns.
func (s *Scheduler) stop(q *sequence) {
	switch q.place {
	case inWaiting:
		s.waiting.remove(q)
	case inReady:
		s.ready = without(s.ready, q)
		s.arriving.Remove(q.promptLen)
	case inRunning:
		s.running = without(s.running, q)
	}
	if len(q.pages) > 0 || q.last != s.pool.Root() {
		s.retries++
	}
	s.release(q)
	s.forget(q)
}

// Ready implements engine.Scheduler.
func (s *Scheduler) Ready() bool {
	return s.waiting.len() > 0 || len(s.ready) > 0 || len(s.running) > 0 || s.roundsLeft > 0
}

// Drained implements engine.Scheduler.
func (s *Scheduler) Drained() bool { return len(s.sequences) == 0 && !s.Ready() }

// Deadline implements engine.Scheduler; this engine has no internal events.
func (s *Scheduler) Deadline() (engine.Time, bool) { return 0, false }

// Advance implements engine.Scheduler.
func (s *Scheduler) Advance(engine.Time) *engine.Pass { return nil }

// Load implements engine.Scheduler. Cached pages that could be evicted count as active, as the reference has it;
// retractions are not counted as preemptions.
func (s *Scheduler) Load() engine.Load {
	return engine.Load{
		ActiveBlocks: s.used(), TotalBlocks: s.pool.Total(), Running: len(s.running),
		Waiting: s.waiting.len() + len(s.ready) + len(s.pending) + s.held,
	}
}

func (s *Scheduler) used() int { return s.pool.Total() - s.pool.Available() }

// pagesFor returns the number of pages that n tokens start.
func (s *Scheduler) pagesFor(n int) int { return (n + s.page - 1) / s.page }

// round returns n tokens rounded up to whole pages.
func (s *Scheduler) round(n int) int { return s.pagesFor(n) * s.page }

// tokensOf converts pages to tokens.
func (s *Scheduler) tokensOf(pages int) int { return pages * s.page }

// hashesOf returns the local hashes of the first n complete pages of q.
func (s *Scheduler) hashesOf(q *sequence, n int) []uint64 {
	for len(q.hashes) < n {
		from := len(q.hashes) * s.page
		if from+s.page <= q.promptLen {
			q.hashes = append(q.hashes, q.req.PromptBlockHash(len(q.hashes), s.page))
		} else {
			q.hashes = append(q.hashes, kv.BlockHash(s.pageTokens(q, len(q.hashes))))
		}
	}
	return q.hashes[:n]
}

// pageTokens copies the tokens of one page into a scratch buffer.
func (s *Scheduler) pageTokens(q *sequence, page int) []uint32 {
	s.pass.tokens = s.pass.tokens[:0]
	for i := page * s.page; i < (page+1)*s.page; i++ {
		s.pass.tokens = append(s.pass.tokens, q.token(i))
	}
	return s.pass.tokens
}
