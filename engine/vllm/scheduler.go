// Package vllm schedules one rank in the manner of vLLM: every pass first serves what runs, then admits from the head of
// the queue as long as a whole prompt fits, and takes blocks away from running requests when the pool is full.
//
// A request's life is decided in plan.go (which requests run), schedule.go (its blocks), admission.go (the way out of the
// queue) and produce.go (its tokens and its end).
package vllm

import (
	"fmt"

	"mockbench/engine"
	"mockbench/engine/spec"
	"mockbench/engine/timing"
	"mockbench/kv"
	"mockbench/kv/pool"
)

// Scheduler is one rank. It implements engine.Scheduler.
type Scheduler struct {
	cfg       engine.Config
	rank      int
	ranks     int
	blockSize int // tokens
	timer     timing.Timer
	sampler   *spec.Sampler // nil without speculative decoding
	policy    Policy

	pool        *pool.Pool
	sequences   map[engine.ID]*sequence
	waiting     queue
	running     []*sequence // in order of admission
	preemptions uint64
	crowded     bool // requests were still waiting when the last undisturbed pass had been scheduled

	record record
	log    kv.Log

	spare     []*sequence // for reuse
	producing []*sequence
	rejected  []*engine.Request
	hits      []int32
	units     []int32
	tokens    []uint32
}

// Options are what a scheduler needs beside its configuration.
type Options struct {
	Rank, Ranks int
	Timing      timing.Model
	Sampler     *spec.Sampler // nil without speculative decoding
	Policy      Policy        // nil: vLLM's own
}

// New returns an idle rank. The configuration has been validated.
func New(cfg engine.Config, o Options) *Scheduler {
	s := &Scheduler{cfg: cfg, rank: o.Rank, ranks: o.Ranks, blockSize: cfg.BlockSize,
		timer: timing.NewTimer(o.Timing, cfg), sampler: o.Sampler, policy: o.Policy,
		pool: pool.New(cfg.NumGPUBlocks), sequences: map[engine.ID]*sequence{}}
	if s.policy == nil {
		s.policy = optimistic{}
	}
	s.log = kv.Log{On: cfg.EmitKVEvents && cfg.EnablePrefixCaching, To: &s.record.Events}
	return s
}

// Submit implements engine.Scheduler.
func (s *Scheduler) Submit(r *engine.Request, now engine.Time) error {
	if s.sequences[r.ID] != nil {
		return fmt.Errorf("rank %d: %w", s.rank, engine.ErrActive)
	}
	q := s.newSequence()
	s.start(q, r, now)
	s.sequences[r.ID] = q
	q.place = inWaiting
	s.waiting.pushBack(q)
	return nil
}

func (s *Scheduler) newSequence() *sequence {
	last := len(s.spare) - 1
	if last < 0 {
		return &sequence{}
	}
	q := s.spare[last]
	s.spare = s.spare[:last]
	return q
}

// Cancel implements engine.Scheduler.
func (s *Scheduler) Cancel(id engine.ID, now engine.Time, discard bool) engine.CancelResult {
	s.pool.Now = float64(now)
	q := s.sequences[id]
	if q == nil {
		if !discard || !s.record.drop(id) {
			return engine.CancelResult{}
		}
		return engine.CancelResult{Suppressed: true, Retired: true}
	}
	if q.place == inWaiting {
		s.waiting.remove(q)
	} else {
		s.running = without(s.running, q)
	}
	s.release(q)
	s.forget(q)
	return engine.CancelResult{Applied: true, Retired: true, Suppressed: s.record.drop(id)}
}

// without takes q out of a list and keeps the order.
func without(list []*sequence, q *sequence) []*sequence {
	for i, r := range list {
		if r == q {
			return append(list[:i], list[i+1:]...)
		}
	}
	return list
}

// Ready implements engine.Scheduler.
func (s *Scheduler) Ready() bool { return s.waiting.n > 0 || len(s.running) > 0 }

// Drained implements engine.Scheduler.
func (s *Scheduler) Drained() bool { return len(s.sequences) == 0 }

// Deadline implements engine.Scheduler.
func (s *Scheduler) Deadline() (engine.Time, bool) { return 0, false }

// Advance implements engine.Scheduler.
func (s *Scheduler) Advance(engine.Time) *engine.Pass { return nil }

// Load implements engine.Scheduler.
func (s *Scheduler) Load() engine.Load {
	return engine.Load{
		ActiveBlocks: s.pool.Active(), InactiveBlocks: s.pool.Inactive(), TotalBlocks: s.pool.Capacity(),
		Running: len(s.running), Waiting: s.waiting.n, Preemptions: s.preemptions,
	}
}

// blocks returns the number of blocks that n tokens start.
func (s *Scheduler) blocks(n int) int { return (n + s.blockSize - 1) / s.blockSize }
