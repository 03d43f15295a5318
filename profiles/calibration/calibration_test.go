package calibration

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"mockbench/engine"
	"mockbench/engine/timing"
	"mockbench/profiles/profiledata"
)

// measured asks a model about a grid of batches, with some relative noise.
func measured(t *testing.T, noise float64) []Sample {
	t.Helper()
	model, err := timing.NewModel(engine.TimingConfig{Type: "polynomial"})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	off := func() float64 { return 1 + noise*(2*r.Float64()-1) }
	var list []Sample
	for _, isl := range []float64{128, 512, 2048, 8192} {
		for _, batch := range []int{1, 4, 16, 64} {
			for range 3 {
				s := Sample{Batch: batch, ISL: isl, Context: isl + 64}
				s.ITLMS = off() * model.Decode(batch, int(s.tokensInUse()), int(s.Context), 16384*64)
				if batch <= 4 {
					s.TTFTMS = off() * model.Prefill(batch, int(isl), 0)
				}
				list = append(list, s)
			}
		}
	}
	return list
}

func TestTheTableSaysWhatWasMeasured(t *testing.T) {
	table, q, err := Fit(measured(t, 0))
	if err != nil {
		t.Fatal(err)
	}
	if q.Prefill.Max > 1e-9 || q.Decode.Max > 1e-9 {
		t.Errorf("errors without noise: %+v", q)
	}
	if q.Prefill.Samples != 24 || q.Prefill.Points != 5 || q.Decode.Samples != 48 || q.Decode.Points != 16 {
		t.Errorf("counts: %+v", q)
	}
	if q.PrefillLeftOut.Samples != 5 || q.DecodeLeftOut.Samples != 16 || q.DecodeLeftOut.Median > 0.1 {
		t.Errorf("left out: %+v", q)
	}
	model, err := profiledata.Model(table)
	if err != nil {
		t.Fatal(err)
	}
	// What lies between the measurements and beyond them stays near the measured model.
	want, _ := timing.NewModel(engine.TimingConfig{Type: "polynomial"})
	for _, c := range []struct{ batch, isl int }{{1, 300}, {8, 1000}, {32, 4000}, {2, 12000}} {
		tokens := c.batch * c.isl
		if e := relative(model.Prefill(1, c.isl, 0), want.Prefill(1, c.isl, 0)); e > 0.15 {
			t.Errorf("prefill of %d tokens is %v off", c.isl, e)
		}
		if e := relative(model.Decode(c.batch, tokens, c.isl, 16384*64), want.Decode(c.batch, tokens, c.isl, 16384*64)); e > 0.15 {
			t.Errorf("decode of %d requests of %d tokens is %v off", c.batch, c.isl, e)
		}
	}
}

func TestNoiseIsReportedAndMakesNoPassShorter(t *testing.T) {
	table, q, err := Fit(measured(t, 0.3))
	if err != nil {
		t.Fatal(err)
	}
	if q.Decode.Max < 0.05 || q.Decode.Max > 0.6 || q.Decode.Median > q.Decode.P90 || q.Decode.P90 > q.Decode.Max {
		t.Errorf("errors of noisy data: %+v", q.Decode)
	}
	if !slices.IsSorted(table.PrefillMS) {
		t.Errorf("prefill times fall: %v", table.PrefillMS)
	}
}

func TestRising(t *testing.T) {
	in := []point{{ms: 1, weight: 1}, {ms: 4, weight: 1}, {ms: 2, weight: 3}, {ms: 2.4, weight: 1}, {ms: 9, weight: 1}}
	var got []float64
	for _, p := range rising(in) {
		got = append(got, p.ms)
	}
	same := func(x, y float64) bool { return math.Abs(x-y) < 1e-12 }
	if want := []float64{1, 2.48, 2.48, 2.48, 9}; !slices.EqualFunc(got, want, same) { // (4 + 3 x 2 + 2.4) / 5
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTooLittle(t *testing.T) {
	one := []Sample{{Batch: 1, ISL: 100, Context: 120, TTFTMS: 5, ITLMS: 3}, {Batch: 1, ISL: 100, Context: 120, TTFTMS: 6, ITLMS: 4}}
	if _, _, err := Fit(one); !errors.Is(err, ErrPrefillPoints) {
		t.Errorf("one prompt length: got %v", err)
	}
	if _, _, err := Fit(append(one, Sample{Batch: 1, ISL: 200, TTFTMS: 9})); !errors.Is(err, ErrDecodePoints) {
		t.Errorf("one decode batch: got %v", err)
	}
	two := append(one, Sample{Batch: 1, ISL: 200, Context: 220, TTFTMS: 9, ITLMS: 3})
	if _, q, err := Fit(two); err != nil || q.DecodeLeftOut.Samples != 0 {
		t.Errorf("two points: got %+v, %v", q, err)
	}
}

// TestAnyMeasurements makes tables from nonsense: it may not fit, but it must not fail or give nonsense back.
func TestAnyMeasurements(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		var list []Sample
		for range 2 + r.IntN(30) {
			s := Sample{Batch: 1 + r.IntN(300), ISL: float64(1 + r.IntN(1<<r.IntN(18))), ITLMS: math.Exp(20*r.Float64() - 10), TTFTMS: math.Exp(20*r.Float64() - 10)}
			s.Context = s.ISL + float64(r.IntN(100))
			list = append(list, s)
		}
		table, _, err := Fit(list)
		if errors.Is(err, ErrPrefillPoints) || errors.Is(err, ErrDecodePoints) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range append(table.PrefillMS, table.DecodeMS...) {
			if !(v >= 0) || math.IsInf(v, 0) {
				t.Fatalf("a time of %v from %+v", v, list)
			}
		}
	}
}
