// Package calibration makes a table of pass times from measurements of a running engine, and says how far the table is
// from them.
//
// Both parts follow a trend whose coefficients are not negative and minimise relative errors: base + a x tokens +
// b x tokens squared for prefill, base + a x requests + b x tokens in use for a decode step. At a measured point the table
// has the mean of its measurements. Between points prefill is interpolated, and decode is the trend times what the points
// around are above or below it; beyond them the trend goes on. Prefill times are made to rise with the tokens, so that
// noise makes no large pass shorter than a small one.
package calibration

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"mockbench/engine/timing"
	"mockbench/profiles/profiledata"
)

// Sample is one measurement: a batch of equal requests. A time of 0 was not measured.
type Sample struct {
	Batch   int
	ISL     float64 // prompt tokens of a request
	Context float64 // tokens of a request, prompt and answer, in the middle of its decode steps
	TTFTMS  float64 // until the prompts of the batch, computed together, gave their first tokens
	ITLMS   float64 // of a decode step of the batch
}

func (s *Sample) promptTokens() float64 { return math.Round(float64(s.Batch) * s.ISL) }

func (s *Sample) tokensInUse() float64 { return math.Round(float64(s.Batch) * s.Context) }

// Errors are relative errors of one part of a table.
type Errors struct {
	Samples, Points  int // measurements, and different places among them
	Median, P90, Max float64
}

// Quality is how well a table says what was measured.
type Quality struct {
	Prefill, Decode Errors

	// LeftOut are the errors at each point of a table that was made without it; Samples is 0 if there were too few points
	// or too many.
	PrefillLeftOut, DecodeLeftOut Errors
}

// Errors of measurements from which no table can be made.
var (
	ErrPrefillPoints = errors.New("TTFT must be measured for at least 2 different numbers of prompt tokens")
	ErrDecodePoints  = errors.New("ITL must be measured for at least 2 different batches or contexts")
)

// mostLeftOut bounds the points that are left out one at a time.
const mostLeftOut = 400

// Fit makes a table.
func Fit(samples []Sample) (*timing.Table, *Quality, error) {
	prompts, steps := prefillPoints(samples), decodePoints(samples)
	switch {
	case len(prompts) < 2:
		return nil, nil, ErrPrefillPoints
	case len(steps) < 2:
		return nil, nil, ErrDecodePoints
	}
	t := &timing.Table{}
	newCurve(prompts).tabulate(t)
	newSurface(steps).tabulate(t)
	model, err := profiledata.Model(t)
	if err != nil {
		return nil, nil, fmt.Errorf("the measurements make no usable table: %w", err)
	}
	q := assess(model, samples)
	q.Prefill.Points, q.Decode.Points = len(prompts), len(steps)
	q.PrefillLeftOut = leaveOut(prompts, func(rest []point) func(point) float64 {
		return newCurve(rest).at
	})
	q.DecodeLeftOut = leaveOut(steps, func(rest []point) func(point) float64 {
		return newSurface(rest).at
	})
	return t, q, nil
}

// assess compares a model with the measurements.
func assess(m timing.Model, samples []Sample) *Quality {
	var prefill, decode []float64
	for i := range samples {
		s := &samples[i]
		if s.TTFTMS > 0 {
			prefill = append(prefill, relative(m.Prefill(1, int(s.promptTokens()), 0), s.TTFTMS))
		}
		if s.ITLMS > 0 {
			context := int(math.Round(s.Context))
			decode = append(decode, relative(m.Decode(s.Batch, int(s.tokensInUse()), context, 0), s.ITLMS))
		}
	}
	return &Quality{Prefill: summary(prefill), Decode: summary(decode)}
}

func relative(got, want float64) float64 { return math.Abs(got-want) / want }

func summary(values []float64) Errors {
	if len(values) == 0 {
		return Errors{}
	}
	slices.Sort(values)
	rank := func(q float64) float64 { return values[max(0, int(math.Ceil(q*float64(len(values))))-1)] }
	return Errors{Samples: len(values), Median: rank(0.5), P90: rank(0.9), Max: values[len(values)-1]}
}

// leaveOut predicts each point from the others.
func leaveOut(points []point, fit func([]point) func(point) float64) Errors {
	if len(points) < 4 || len(points) > mostLeftOut {
		return Errors{}
	}
	var values []float64
	rest := make([]point, 0, len(points))
	for i, p := range points {
		rest = append(append(rest[:0], points[:i]...), points[i+1:]...)
		values = append(values, relative(fit(rest)(p), p.ms))
	}
	e := summary(values)
	e.Points = len(points)
	return e
}
