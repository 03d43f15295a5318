package trace

import (
	"fmt"
	"math"

	"mockbench/engine"
	"mockbench/engine/random"
)

// Synthetic describes a made-up workload.
type Synthetic struct {
	Input, Output int // tokens of every prompt and answer
	Requests      int // of a plain list; sessions if Turns or a shared prefix is asked for
	Turns         int // of every session; 0 and 1 are one turn
	PrefixRatio   float64
	PrefixGroups  int
	Delay         float64 // milliseconds between an answer and the next turn
	Arrivals      Arrivals
	BlockSize     int // of the engine, tokens
}

// Arrivals says when requests arrive. Zero values are none: then a concurrency says so.
type Arrivals struct {
	Given    bool
	Rate     float64 // requests a second, at random
	Interval float64 // milliseconds between two, if Rate is 0; 0 is all at once
	Seed     uint64
}

// sessionSeed is the seed of what sessions share.
const sessionSeed = 42

// Validate returns a *engine.SettingError for the first setting that is out of range.
func (s Synthetic) Validate() error {
	wrong := func(setting string, given any, allowed string) error {
		return &engine.SettingError{Setting: setting, Kind: engine.KindRange, Given: fmt.Sprint(given), Allowed: allowed}
	}
	switch a := s.Arrivals; {
	case s.Input < 1:
		return wrong("input_tokens", s.Input, "must be at least 1")
	case s.Output < 1:
		return wrong("output_tokens", s.Output, "must be at least 1")
	case s.Requests < 1:
		return wrong("request_count", s.Requests, "must be at least 1")
	case s.Turns < 0:
		return wrong("turns_per_session", s.Turns, "must be at least 1")
	case a.Given && a.Rate != 0 && !(a.Rate > 0 && a.Rate <= math.MaxFloat64):
		return wrong("request_rate", short(a.Rate), "must be finite and positive")
	case a.Given && !(a.Interval >= 0 && a.Interval <= math.MaxFloat64):
		return wrong("arrival_interval_ms", short(a.Interval), "must be finite and not negative")
	case !(s.PrefixRatio >= 0 && s.PrefixRatio <= 1):
		return wrong("shared_prefix_ratio", short(s.PrefixRatio), "must be between 0 and 1")
	case s.PrefixGroups < 0:
		return wrong("num_prefix_groups", s.PrefixGroups, "must not be negative")
	case !(s.Delay >= 0 && s.Delay <= math.MaxFloat64):
		return wrong("inter_turn_delay_ms", short(s.Delay), "must be finite and not negative")
	}
	return nil
}

// Sessions reports whether the workload is sessions; else it is a list whose prompts share nothing.
func (s Synthetic) Sessions() bool {
	return s.Turns > 1 || s.PrefixRatio > 0 || s.PrefixGroups > 0 || s.Delay > 0
}

// Generate returns the workload. The settings have been validated.
func (s Synthetic) Generate() *Trace {
	t := &Trace{BlockSize: s.BlockSize, Sessions: make([]Session, s.Requests)}
	times := s.Arrivals.Times(s.Requests)
	if !s.Sessions() {
		t.BlockSize = 0
		turns := make([]Turn, s.Requests)
		for i := range turns {
			turns[i] = Turn{Input: s.Input, Output: s.Output}
			t.Sessions[i] = Session{Name: fmt.Sprintf("request_%d", i+1), Arrival: times[i], Turns: turns[i : i+1 : i+1]}
		}
		return t
	}
	draws, ids := random.New(sessionSeed), newInterner()
	fresh := uint64(1)
	blocks := (s.Input + s.BlockSize - 1) / s.BlockSize
	shared := min(int(math.Round(float64(blocks)*s.PrefixRatio)), blocks)
	for i := range t.Sessions {
		session := Session{Name: fmt.Sprintf("session_%d", i), Named: true, Arrival: times[i]}
		prefix, group := 0, uint64(0)
		if s.PrefixGroups > 0 && s.PrefixRatio > 0 {
			prefix, group = shared, uint64(draws.Below(uint32(s.PrefixGroups)))
		}
		for k := range max(s.Turns, 1) {
			u := Turn{IDs: make([]uint32, blocks), Input: s.Input, Output: s.Output}
			for b := range u.IDs {
				if b < prefix {
					u.IDs[b] = ids.number(0xD00D000000000000 | group<<32 | uint64(b))
					continue
				}
				u.IDs[b] = ids.number(fresh)
				fresh++
			}
			if k > 0 {
				u.Delay = s.Delay
			}
			session.Turns = append(session.Turns, u)
		}
		t.Sessions[i] = session
	}
	t.IDs = ids.len()
	t.plan()
	return t
}

// Times returns n arrival times in milliseconds, NaN if arrivals are not given.
func (a Arrivals) Times(n int) []float64 {
	times := make([]float64, n)
	draws, now, gap := random.New(a.Seed), 0.0, a.Interval
	if gap > 0 {
		gap = 1000 / (1000 / gap)
	}
	for i := range times {
		switch {
		case !a.Given:
			now = math.NaN()
		case i == 0:
		case a.Rate > 0:
			u := min(max(1-draws.Float64(), 0x1p-1022), 1)
			now += -(1000 / a.Rate) * math.Log(u)
		default:
			now += gap
		}
		times[i] = now
	}
	return times
}

// SyntheticToken returns a prompt token of a plain synthetic list: request is counted from 0.
func SyntheticToken(request uint64, position int) uint32 {
	v := ((request << 32) ^ uint64(position)) + 0x9E3779B97F4A7C15
	v ^= v >> 30
	v *= 0xBF58476D1CE4E5B9
	v ^= v >> 27
	v *= 0x94D049BB133111EB
	v ^= v >> 31
	if uint32(v) == 0 {
		return 1
	}
	return uint32(v)
}
