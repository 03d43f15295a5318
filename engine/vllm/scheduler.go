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
	"mockbench/kv/hostcache"
	"mockbench/kv/pool"
)

// Scheduler is one rank. It implements engine.Scheduler and engine.Disaggregated.
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

	handoffs handoffs
	host     *host // nil without host offload
	serial   uint64

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
	Host        *HostTier     // nil: none
}

// HostTier is a host cache and the rank's connection to it.
type HostTier struct {
	Pool *hostcache.Pool
	Port *hostcache.Port
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
	s.handoffs = handoffs{byID: map[engine.ID]*sequence{}, generation: 1}
	if o.Host != nil {
		s.host = &host{pool: o.Host.Pool, port: o.Host.Port, loading: map[uint64]int{}}
	}
	return s
}

// Submit implements engine.Scheduler.
func (s *Scheduler) Submit(r *engine.Request, now engine.Time) error {
	_, err := s.enqueue(r, now)
	return err
}

func (s *Scheduler) enqueue(r *engine.Request, now engine.Time) (*sequence, error) {
	q, err := s.own(r, now)
	if err == nil {
		q.place = inWaiting
		s.waiting.pushBack(q)
	}
	return q, err
}

// own registers a request that is not active yet.
func (s *Scheduler) own(r *engine.Request, now engine.Time) (*sequence, error) {
	s.command(now)
	if s.sequences[r.ID] != nil {
		return nil, fmt.Errorf("rank %d: %w", s.rank, engine.ErrActive)
	}
	q := &sequence{}
	if last := len(s.spare) - 1; last >= 0 {
		q, s.spare = s.spare[last], s.spare[:last]
	}
	s.start(q, r, now)
	s.sequences[r.ID] = q
	return q, nil
}

// Cancel implements engine.Scheduler. Held sources and destinations without their KV are out of its reach.
func (s *Scheduler) Cancel(id engine.ID, now engine.Time, discard bool) engine.CancelResult {
	s.command(now)
	q := s.sequences[id]
	if s.host != nil && s.host.pool.Shared() && !s.record.active {
		s.host.pool.Advance(float64(now))
	}
	if q == nil || q.place != inWaiting && q.place != inDeferred && q.place != inRunning && q.place != destinationReady {
		if !discard || !s.record.drop(id) {
			return engine.CancelResult{}
		}
		return engine.CancelResult{Suppressed: true, Retired: true}
	}
	s.stop(q)
	if !s.record.active {
		s.attempt(&s.handoffs.steps)
	}
	return s.result(engine.CancelResult{Applied: true, Retired: true, Suppressed: s.record.drop(id)})
}

// stop takes a request out of its queue and ends it.
func (s *Scheduler) stop(q *sequence) {
	switch q.place {
	case inWaiting:
		s.waiting.remove(q)
	case inDeferred:
		s.host.deferred.remove(q)
		s.withdrawLoad(q, engine.Time(s.pool.Now))
	case inRunning:
		s.running = without(s.running, q)
	case destinationReady:
		s.handoffs.leave(q)
		s.waiting.remove(q)
	}
	if len(q.units) > 0 {
		s.handoffs.generation++
	}
	s.release(q)
	s.forget(q)
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
func (s *Scheduler) Ready() bool {
	return s.waiting.n > 0 || len(s.running) > 0 || s.host != nil && s.host.deferred.ready > 0
}

// Drained implements engine.Scheduler.
func (s *Scheduler) Drained() bool {
	return len(s.sequences) == 0 && (s.host == nil || !s.host.port.Busy())
}

// Deadline implements engine.Scheduler.
func (s *Scheduler) Deadline() (engine.Time, bool) {
	if s.host == nil {
		return 0, false
	}
	t, ok := s.host.port.Deadline()
	return engine.Time(t), ok
}

// Advance implements engine.Scheduler.
func (s *Scheduler) Advance(now engine.Time) *engine.Pass {
	if d, ok := s.Deadline(); !ok || d > now {
		return nil
	}
	s.open(now)
	s.record.Idle = true
	s.meetHost(now)
	s.record.Transfers = s.appendTransfers(s.record.Transfers)
	s.record.close(now)
	s.record.Load = s.Load()
	return &s.record.Pass
}

// Load implements engine.Scheduler.
func (s *Scheduler) Load() engine.Load {
	return engine.Load{
		ActiveBlocks: s.pool.Active(), InactiveBlocks: s.pool.Inactive(), TotalBlocks: s.pool.Capacity(),
		Running: len(s.running), Waiting: s.queued(), Preemptions: s.preemptions,
	}
}

// queued returns the number of requests that wait for anything.
func (s *Scheduler) queued() int {
	n := s.waiting.n + s.handoffs.arriving.N
	if s.host != nil {
		n += s.host.deferred.n
	}
	return n
}

// blocks returns the number of blocks that n tokens start.
func (s *Scheduler) blocks(n int) int { return (n + s.blockSize - 1) / s.blockSize }
