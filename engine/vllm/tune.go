package vllm

import "mockbench/engine"

// Tune implements engine.Tunable.
func (s *Scheduler) Tune(t engine.Tuning) error {
	cfg := s.cfg.With(t)
	timer, err := s.timer.Tuned(s.cfg, cfg)
	if err != nil {
		return err
	}
	s.cfg, s.timer = cfg, timer
	return nil
}

// Retire implements engine.Replaceable.
func (s *Scheduler) Retire(now engine.Time) (*engine.Pass, engine.Serial) {
	s.open(now)
	s.record.Idle = true
	s.pool.Reserve(nil, s.pool.Capacity(), nil) // takes the place of everything cached
	s.announceRemoved()
	if s.host != nil {
		s.host.pool.Clear(float64(now))
		s.announceHost()
		s.record.Transfers = s.appendTransfers(s.record.Transfers)
	}
	s.record.close(now)
	return &s.record.Pass, engine.Serial{Passes: s.record.opened, Events: s.log.Next(), Preemptions: s.preemptions}
}

// Succeed implements engine.Replaceable.
func (s *Scheduler) Succeed(from engine.Serial) {
	s.record.opened, s.preemptions = from.Passes, from.Preemptions
	s.log.Continue(from.Events)
}
