package sglang

import (
	"fmt"

	"mockbench/engine"
)

// Tune implements engine.Tunable. Another conservativeness starts the ratio anew.
func (s *Scheduler) Tune(t engine.Tuning) error {
	cfg := s.cfg.With(t)
	timer, err := s.timer.Tuned(s.cfg, cfg)
	if err != nil {
		return err
	}
	chunk, err := chunkOf(cfg, s.ranks)
	if err != nil {
		return err
	}
	if t.SGLang.ScheduleConservativeness != s.cfg.SGLang.ScheduleConservativeness {
		s.ratio = newRatio(cfg, s.ranks)
	}
	s.roundsLeft = min(s.roundsLeft, cfg.PrefillDecodeInterval)
	s.cfg, s.timer, s.chunk = cfg, timer, chunk
	return nil
}

// chunkOf returns the chunk budget of one rank of a group.
func chunkOf(cfg engine.Config, ranks int) (int, error) {
	chunk := cfg.SGLang.ChunkedPrefillSize / max(ranks, 1)
	if chunk == 0 {
		return 0, &engine.SettingError{Setting: "engine.sglang.chunked_prefill_size", Kind: engine.KindRange,
			Given:   fmt.Sprint(cfg.SGLang.ChunkedPrefillSize),
			Allowed: fmt.Sprintf("must be at least the data-parallel size %d", ranks)}
	}
	return chunk, nil
}

// newRatio returns the ratio at its start.
func newRatio(cfg engine.Config, ranks int) ratio {
	conservativeness := cfg.SGLang.ScheduleConservativeness
	if ranks > 1 {
		conservativeness *= 0.3
	}
	r := ratio{init: 0.7 * conservativeness}
	r.min = r.init * 0.14
	r.step = (r.init - r.min) / 600
	r.now = r.init
	return r
}

// Retire implements engine.Replaceable.
func (s *Scheduler) Retire(now engine.Time) (*engine.Pass, engine.Serial) {
	s.pass.begin(s.rank, now)
	s.pass.passes-- // a record between passes has no number of its own
	s.pass.Idle = true
	pages := make([]int32, len(s.pages.announced))
	for i := range pages {
		pages[i] = int32(i)
	}
	s.retract(pages)
	s.pass.end(now)
	return &s.pass.Pass, engine.Serial{Passes: s.pass.passes, Events: s.pass.events.Next()}
}

// Succeed implements engine.Replaceable.
func (s *Scheduler) Succeed(from engine.Serial) {
	s.pass.passes = from.Passes
	s.pass.events.Continue(from.Events)
}
