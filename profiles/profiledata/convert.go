package profiledata

import (
	"errors"
	"math"

	"mockbench/engine/timing"
)

// resolution is the number of points of each axis of a converted table.
const resolution = 100

// shortestSeconds is the least a converted table says.
const shortestSeconds = 1e-6

// Errors of results through which no sensible line goes.
var (
	ErrPrefillFit = errors.New("prefill times do not rise with the prompt length, no line can be put through them")
	ErrDecodeFit  = errors.New("decode steps do not rise with the tokens in use, no plane can be put through them")
)

// Table puts a line through the prefill times and a plane over batch size and tokens in use through the decode times,
// and tabulates both, in the way of the reference. Samples without a time widen the axes only.
func (r *Results) Table() (*timing.Table, error) {
	t := &timing.Table{}
	if err := r.prefill(t); err != nil {
		return nil, err
	}
	return t, r.decode(t)
}

func (r *Results) prefill(t *timing.Table) error {
	var tokens, seconds []float64
	low, high := math.Inf(1), math.Inf(-1)
	for i, isl := range r.PrefillISL {
		x := math.Trunc(isl)
		low, high = min(low, x), max(high, x)
		if y := r.PrefillTTFT[i] / 1000; y != 0 {
			tokens, seconds = append(tokens, x), append(seconds, y)
		}
	}
	if len(tokens) == 0 {
		return ErrPrefillFit
	}
	base, slope := fit(seconds, tokens)
	if slope[0] < 0 {
		return ErrPrefillFit
	}
	t.PrefillTokens = linspace(low, high)
	for _, x := range t.PrefillTokens {
		t.PrefillMS = append(t.PrefillMS, max(shortestSeconds, base+slope[0]*x)*1000)
	}
	return nil
}

func (r *Results) decode(t *timing.Table) error {
	var batches, tokens, seconds []float64
	mostTokens, longest := 0.0, math.Inf(-1)
	for i, usage := range r.KVUsage {
		kv, batch := math.RoundToEven(usage*r.MaxKVTokens), 1.0
		if ctx := r.Context[i]; ctx > 0 {
			batch = max(1, math.RoundToEven(kv/ctx))
		}
		mostTokens, longest = max(mostTokens, kv), max(longest, kv/batch)
		if y := r.ITL[i] / 1000; y != 0 {
			batches, tokens, seconds = append(batches, batch), append(tokens, kv), append(seconds, y)
		}
	}
	if len(tokens) == 0 {
		return ErrDecodeFit
	}
	base, slope := fit(seconds, batches, tokens)
	if slope[1] < 0 {
		return ErrDecodeFit
	}
	if slope[0] < -1e-6 {
		slope[0] = 0 // the rest of the plane stays
	}
	t.ActiveTokens, t.Context = linspace(0, mostTokens), linspace(1, longest)
	t.DecodeShape = [2]int{resolution, resolution}
	for _, kv := range t.ActiveTokens {
		for _, ctx := range t.Context {
			seconds := base + slope[0]*max(1, kv/ctx) + slope[1]*kv
			t.DecodeMS = append(t.DecodeMS, max(shortestSeconds, seconds)*1000)
		}
	}
	return nil
}

// linspace returns equally spaced values from low to high.
func linspace(low, high float64) []float64 {
	step := (high - low) / (resolution - 1)
	v := make([]float64, resolution)
	for i := range v {
		v[i] = float64(float64(i)*step) + low
	}
	v[resolution-1] = high
	return v
}
