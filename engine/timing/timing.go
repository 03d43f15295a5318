// Package timing says how long the prefill and decode parts of a pass take: a [Model] answers in milliseconds, a
// [Timer] scales the answer by the speed-up ratios and rounds it to nanoseconds as the reference does.
package timing

import (
	"math"

	"mockbench/engine"
)

// Model is a timing model.
type Model = engine.TimingModel

// NewModel returns the model that c chooses.
func NewModel(c engine.TimingConfig) (Model, error) {
	switch c.Type {
	case "polynomial":
		return polynomial{}, nil
	case "fixed":
		return fixed{prefill: c.PrefillMS, decode: c.DecodeMS}, nil
	case "external":
		if c.External != nil {
			return c.External, nil
		}
	}
	return nil, &engine.SettingError{Setting: "engine.timing_model", Kind: engine.KindUnsupported,
		Given: c.Type, Allowed: "must be polynomial, fixed, or external with a model"}
}

// polynomial was fitted to measured GPU runs. Conversions to float64 keep the compiler from fusing operations, which
// would change the last bit.
type polynomial struct{}

func (polynomial) Prefill(requests, meanISL, meanPrefix int) float64 {
	t := float64(requests * max(meanISL-meanPrefix, 0))
	if t == 0 {
		return 0
	}
	return float64(4.209989e-07*float64(t*t)) + float64(1.518344e-02*t) + 1.650142e+01
}

func (polynomial) Decode(requests, activeTokens, _, capacityTokens int) float64 {
	if requests == 0 {
		return 0
	}
	u := 1.0
	if capacityTokens > 0 {
		u = min(float64(activeTokens)/float64(capacityTokens), 1)
	}
	return max(float64(-25.74*float64(u*u))+float64(54.01*u)+5.74, 1)
}

// fixed takes the same time for every pass.
type fixed struct{ prefill, decode float64 }

func (f fixed) Prefill(requests, meanISL, meanPrefix int) float64 {
	if requests == 0 || meanISL <= meanPrefix {
		return 0
	}
	return f.prefill
}

func (f fixed) Decode(requests, _, _, _ int) float64 {
	if requests == 0 {
		return 0
	}
	return f.decode
}

// Timer asks a model and scales its answers.
type Timer struct {
	model           Model
	prefill, decode float64 // divisors; 0 leaves the time as it is
}

// NewTimer returns the timer of one rank.
func NewTimer(m Model, c engine.Config) Timer {
	return Timer{model: m, prefill: c.SpeedupRatio, decode: c.SpeedupRatio * c.DecodeSpeedupRatio}
}

// Tuned returns the timer of a rank whose settings change. The model stays unless it is another one.
func (t Timer) Tuned(from, to engine.Config) (Timer, error) {
	model := t.model
	if to.Timing != from.Timing {
		var err error
		if model, err = NewModel(to.Timing); err != nil {
			return t, err
		}
	}
	return NewTimer(model, to), nil
}

// Prefill returns the call as it is recorded, and the scaled length of the prefill part.
func (t Timer) Prefill(requests, meanISL, meanPrefix int) (engine.ModelCall, engine.Time) {
	ms := t.model.Prefill(requests, meanISL, meanPrefix)
	call := engine.ModelCall{Requests: requests, MeanISL: meanISL, MeanPrefix: meanPrefix, Milliseconds: ms}
	return call, Scale(ms, t.prefill)
}

// Decode returns the call as it is recorded, and the scaled length of the decode part. The requests are at least one.
func (t Timer) Decode(requests, activeTokens, capacityTokens int) (engine.ModelCall, engine.Time) {
	mean := activeTokens / requests
	ms := t.model.Decode(requests, activeTokens, mean, capacityTokens)
	call := engine.ModelCall{Requests: requests, MeanISL: mean, ActiveTokens: activeTokens,
		CapacityTokens: capacityTokens, Milliseconds: ms}
	return call, Scale(ms, t.decode)
}

// Scale rounds a model's answer to whole nanoseconds, divides it by the ratio, unless that is 0, and rounds again.
func Scale(ms, ratio float64) engine.Time {
	ns := nanoseconds(ms / 1000)
	if ratio > 0 && ns > 0 {
		ns = nanoseconds(ns / 1e9 / ratio)
	}
	return engine.Time(float64(ns/1e9) * 1000)
}

// nanoseconds rounds the exact value of a number of seconds to whole nanoseconds, ties to even.
func nanoseconds(seconds float64) float64 {
	product := seconds * 1e9
	whole, fraction := math.Modf(product)
	if fraction != 0.5 {
		return math.RoundToEven(product)
	}
	switch rest := math.FMA(seconds, 1e9, -product); { // what the product lost
	case rest > 0:
		return whole + 1
	case rest < 0:
		return whole
	}
	return math.RoundToEven(product)
}
