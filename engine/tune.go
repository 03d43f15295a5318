package engine

import "fmt"

// Tuning is the settings that a rank can take over between two passes. All others are fixed for its life.
type Tuning struct {
	MaxNumSeqs              uint64
	MaxNumBatchedTokens     uint64
	PrefillScheduleInterval int
	PrefillDecodeInterval   int
	EnableChunkedPrefill    bool
	PreemptionMode          PreemptionMode
	SpeedupRatio            float64
	DecodeSpeedupRatio      float64
	SGLang                  SGLangConfig
	Timing                  TimingConfig
}

// Tuning returns the part of the configuration that can change between two passes.
func (c Config) Tuning() Tuning {
	return Tuning{MaxNumSeqs: c.MaxNumSeqs, MaxNumBatchedTokens: c.MaxNumBatchedTokens,
		PrefillScheduleInterval: c.PrefillScheduleInterval, PrefillDecodeInterval: c.PrefillDecodeInterval,
		EnableChunkedPrefill: c.EnableChunkedPrefill, PreemptionMode: c.PreemptionMode, SpeedupRatio: c.SpeedupRatio,
		DecodeSpeedupRatio: c.DecodeSpeedupRatio, SGLang: c.SGLang, Timing: c.Timing}
}

// With returns the configuration with another tuning.
func (c Config) With(t Tuning) Config {
	c.MaxNumSeqs, c.MaxNumBatchedTokens = t.MaxNumSeqs, t.MaxNumBatchedTokens
	c.PrefillScheduleInterval, c.PrefillDecodeInterval = t.PrefillScheduleInterval, t.PrefillDecodeInterval
	c.EnableChunkedPrefill, c.PreemptionMode = t.EnableChunkedPrefill, t.PreemptionMode
	c.SpeedupRatio, c.DecodeSpeedupRatio = t.SpeedupRatio, t.DecodeSpeedupRatio
	c.SGLang, c.Timing = t.SGLang, t.Timing
	return c
}

// Equal reports whether two configurations say the same.
func (c Config) Equal(o Config) bool {
	a, b := c.HostOffload, o.HostOffload
	c.HostOffload, o.HostOffload = nil, nil
	return c == o && (a == b || a != nil && b != nil && *a == *b)
}

// SameButTuning reports whether a rank of c can become one of o between two passes, without a new engine.
func (c Config) SameButTuning(o Config) bool { return c.With(o.Tuning()).Equal(o) }

// Tunable is a scheduler some of whose settings can change while it owns requests.
type Tunable interface {
	// Tune makes the settings those of the next pass; it must not be called during one. What runs stays, also if there
	// is more of it than the new limits allow. The configuration that results has been validated; an error is a
	// *SettingError, and then nothing has changed.
	Tune(t Tuning) error
}

// Serial is where the numbers of a rank's records stand.
type Serial struct {
	Passes, Events, Preemptions uint64
}

// Replaceable is a scheduler whose place another one can take.
type Replaceable interface {
	// Retire ends a drained rank. The record tells that everything it has announced as stored is gone.
	Retire(now Time) (*Pass, Serial)

	// Succeed makes a rank that has not run yet go on with the numbers of the one before it.
	Succeed(s Serial)
}

// Tune changes the settings of all ranks, or of none with an error. It must not be called during a pass.
func (g *Group) Tune(from Config, t Tuning) error {
	to := from.With(t)
	if err := to.Validate(); err != nil {
		return err
	}
	for i, r := range g.ranks {
		tunable, ok := r.(Tunable)
		err := error(nil)
		if ok {
			err = tunable.Tune(t)
		} else {
			err = fmt.Errorf("rank %d: its settings cannot change", i)
		}
		if err == nil {
			continue
		}
		for _, done := range g.ranks[:i] {
			_ = done.(Tunable).Tune(from.Tuning()) // they had these settings before
		}
		return err
	}
	return nil
}

// Replace gives a drained group the ranks of another one, which has not run yet and has as many. The records, one a
// rank, tell that everything in the caches before is gone.
func (g *Group) Replace(next *Group, now Time) ([]*Pass, error) {
	for i, r := range g.ranks {
		_, old := r.(Replaceable)
		_, fresh := next.ranks[i].(Replaceable)
		if !old || !fresh {
			return nil, fmt.Errorf("rank %d: its engine cannot be replaced", i)
		}
	}
	for i, r := range g.ranks {
		record, serial := r.(Replaceable).Retire(now)
		record.Load = next.ranks[i].Load()
		next.ranks[i].(Replaceable).Succeed(serial)
		g.records[i] = record
	}
	g.ranks, g.step = next.ranks, 0
	return g.records, nil
}
