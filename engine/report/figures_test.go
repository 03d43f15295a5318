package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"mockbench/engine"
)

func sample(r *rand.Rand) float64 { return math.Exp(r.NormFloat64()*2 + 2) }

func relative(a, b float64) float64 {
	if a == b {
		return 0
	}
	return math.Abs(a-b) / math.Abs(b)
}

func TestSketchAgainstSortedSamples(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var whole, left, right sketch
	var all []float64
	sum := 0.0
	for i := range 50_000 {
		x := sample(r)
		if i%100 == 0 {
			x = 0
		}
		all = append(all, x)
		sum += x
		whole.add(x, 1)
		if i < 20_000 {
			left.add(x, 1)
		} else {
			right.add(x, 1)
		}
	}
	left.merge(&right)
	slices.Sort(all)
	mean, squares := sum/float64(len(all)), 0.0
	for _, x := range all {
		squares += (x - mean) * (x - mean)
	}
	want := Distribution{Mean: mean, Min: all[0], Max: all[len(all)-1], Std: math.Sqrt(squares / float64(len(all)))}
	for name, s := range map[string]*sketch{"whole": &whole, "merged": &left} {
		got := s.stats()
		if relative(got.Mean, want.Mean) > 1e-9 || relative(got.Std, want.Std) > 1e-9 || got.Min != want.Min || got.Max != want.Max {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
		for _, p := range []float64{0.5, 10, 50, 75, 90, 95, 99} {
			exact := all[int(math.Round(float64(len(all)-1)*p/100))]
			if got := s.percentile(p); relative(got, exact) > 2*accuracy {
				t.Errorf("%s: p%v is %v, want %v", name, p, got, exact)
			}
		}
	}
}

func TestSketchStaysSmall(t *testing.T) {
	var s sketch
	for e := -300.0; e <= 300; e += 0.1 {
		s.add(math.Pow(10, e), 1)
	}
	if len(s.bins) != maxBins {
		t.Errorf("%d bins", len(s.bins))
	}
	if got := s.percentile(99); relative(got, math.Pow(10, 294)) > 0.03 {
		t.Errorf("p99 is %v", got)
	}
}

func TestDistributionIsExactForFewSamples(t *testing.T) {
	for _, n := range []int{0, 1, 2, exactSamples, exactSamples + 1} {
		var one, a, b distribution
		for i := range n {
			x := float64((i*7919)%n) + 0.5
			one.add(x)
			if i%3 == 0 {
				a.add(x)
			} else {
				b.add(x)
			}
		}
		a.merge(&b)
		if got, exact := a.stats(), n <= exactSamples; a.exact() != exact || got.Samples != uint64(n) ||
			exact && (got.Median != one.stats().Median || n > 0 && got.Median != math.Round(float64(n-1)/2)+0.5) {
			t.Errorf("%d samples: %+v", n, got)
		}
	}
}

func TestHistogram(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var h Histogram
	var all []float64
	for range 10_000 {
		x := sample(r)
		all = append(all, x)
		h.add(x, 1)
	}
	slices.Sort(all)
	for _, p := range []float64{1, 50, 99} {
		if got, ok := h.Percentile(p); !ok || relative(got, all[int(math.Round(9999*p/100))]) > 0.016 {
			t.Errorf("p%v is %v, want %v", p, got, all[int(math.Round(9999*p/100))])
		}
	}
	if got, _ := h.Percentile(100); got != all[9999] {
		t.Errorf("p100 is %v, want %v", got, all[9999])
	}
	for i := range Buckets {
		low, high := h.Range(i)
		if bucket(low) != i || bucket(math.Nextafter(high, 0)) != i {
			t.Fatalf("bucket %d: [%v, %v)", i, low, high)
		}
	}
	if share, _ := h.Share(8); math.Abs(share-0.5154) > 0.02 {
		t.Errorf("share up to 8 is %v", share)
	}
	if bucket(0) != 0 || bucket(1e300) != Buckets-1 {
		t.Error("values outside")
	}
}

// pulse is a record of one first token and one gap of a request that goes on.
func pulse(r *engine.Request, end engine.Time, position int32) *engine.Pass {
	return &engine.Pass{Start: end - 10, End: end, Outputs: []engine.Output{{Request: r, Position: position, HasToken: true}},
		Load: engine.Load{ActiveBlocks: 1, TotalBlocks: 2, Running: 1}}
}

func TestWindowForgets(t *testing.T) {
	c := NewCollector(Options{Workers: []string{"w0", "w1"}})
	request := &engine.Request{}
	for i := range 1000 { // a token each 100 ms: 100 s
		c.Reader(1).Pass(pulse(request, engine.Time(i+1)*100, int32(i)))
	}
	var w Window
	c.Window(&w, All, 100_000, 50)
	if w.ITL.N < 270 || w.ITL.N > 301 || w.TTFT.N != 0 || w.ITL.Max != 100 || math.Abs(w.Seconds-30) > 3 {
		t.Errorf("%d gaps up to %v ms, %d first tokens, %v s", w.ITL.N, w.ITL.Max, w.TTFT.N, w.Seconds)
	}
	if r := w.Rates(5); r.Output != 10 || r.Seconds != 5 || r.Admitted {
		t.Errorf("rates %+v", r)
	}
	if last := w.Columns[len(w.Columns)-1]; len(w.Columns) != 50 || last.Active != 1 || last.Blocks != 2 || last.Running != 1 {
		t.Errorf("%d columns, last %+v", len(w.Columns), last)
	}
	c.Window(&w, 0, 100_000, 50)
	if w.ITL.N != 0 || w.Rates(5).Output != 0 {
		t.Error("the idle worker has figures of the other")
	}
	c.Window(&w, All, 500_000, 1_000_000)
	if w.ITL.N != 0 || len(w.Columns) != columnCount || w.Rates(100).Output != 0 || w.Columns[0].Active != 1 {
		t.Errorf("long after: %d gaps, %d columns", w.ITL.N, len(w.Columns))
	}
}

func TestWindowAtTheStart(t *testing.T) {
	c := NewCollector(Options{Workers: []string{"w0"}, Start: 1000})
	var w Window
	c.Window(&w, All, 1000, 50)
	if len(w.Columns) != 1 || w.Seconds != 0 || w.Rates(5) != (Rates{}) {
		t.Errorf("window %+v, rates %+v", w.Columns, w.Rates(5))
	}
	c.Reader(0).Pass(pulse(&engine.Request{Arrival: 1000}, 1100, 0))
	c.Window(&w, All, 1450, 50)
	if len(w.Columns) != 3 || w.Columns[0].Output != 1 || w.Columns[0].MaxTTFT != 100 || w.Rates(5).Seconds != 0.4 {
		t.Errorf("columns %+v", w.Columns)
	}
}

func TestOccupancyIsAMeanOverTime(t *testing.T) {
	c := NewCollector(Options{Workers: []string{"w0"}})
	m := c.workers[0]
	m.Pass(&engine.Pass{End: 100, Load: engine.Load{ActiveBlocks: 10, TotalBlocks: 10}})
	m.Pass(&engine.Pass{End: 200, Load: engine.Load{ActiveBlocks: 0, TotalBlocks: 10}})
	s := c.Report(Final{Now: 500}).Summary
	if *s.MeanOccupancy != 0.25 || *s.PeakOccupancy != 1 || s.Blocks != 10 {
		t.Errorf("mean %v, peak %v of %d blocks", *s.MeanOccupancy, *s.PeakOccupancy, s.Blocks)
	}
}

func TestCancelledRequestsAreForgotten(t *testing.T) {
	c := NewCollector(Options{Workers: []string{"w0"}})
	m := c.workers[0]
	for i := range 100 {
		r := &engine.Request{}
		m.Submitted(0, r, 0)
		if i%2 == 0 {
			m.Pass(pulse(r, engine.Time(i), 0))
		}
		m.Cancelled(0, r, 0)
		m.Cancelled(0, r, 0)
	}
	s := c.Report(Final{Now: 500}).Summary
	if s.Requests != 100 || s.Cancelled != 100 || s.Unfinished != 0 || s.Emitted != 50 || s.OutputTokens != 0 || len(m.unused) != 1 {
		t.Errorf("summary %+v, %d unused", s, len(m.unused))
	}
}

// A request that is given up in the middle of a pass is named by the record of that pass.
func TestRequestsCancelledDuringAPassCountOnce(t *testing.T) {
	c := NewCollector(Options{Workers: []string{"w0"}})
	m := c.workers[0]
	r := &engine.Request{}
	m.Submitted(0, r, 0)
	m.Cancelled(0, r, 5)
	m.Pass(&engine.Pass{End: 10, Admissions: []engine.Admission{{Request: r, First: true}}, Preemptions: []engine.Preemption{{Request: r}},
		Outputs: []engine.Output{{Request: r, HasToken: true}}})
	s := c.Report(Final{Now: 500}).Summary
	if s.Requests != 1 || s.Cancelled != 1 || s.Unfinished != 0 || len(m.requests) != 0 {
		t.Errorf("summary %+v, %d still known", s, len(m.requests))
	}
}

// The sums of a fleet are those of its workers, whatever goes where.
func TestFleetIsTheSumOfItsWorkers(t *testing.T) {
	names := []string{"w0", "w1", "w2"}
	split, single := NewCollector(Options{Workers: names, Limits: Limits{TTFT: 50, ITL: 20}}), NewCollector(Options{Workers: names[:1], Limits: Limits{TTFT: 50, ITL: 20}})
	r := rand.New(rand.NewPCG(5, 6))
	for i := range 300 {
		q := &engine.Request{Arrival: engine.Time(i), Prompt: make([]uint32, 10+r.IntN(90))}
		end := float64(i)
		for position := range 1 + r.IntN(8) {
			end += sample(r)
			p := pulse(q, engine.Time(end), int32(position))
			p.Outputs[0].Completed = position == 7
			p.Load = engine.Load{}
			split.Reader(i % 3).Pass(p)
			single.Reader(0).Pass(p)
		}
	}
	a, b := split.Report(Final{Now: 1000}).Summary, single.Report(Final{Now: 1000}).Summary
	if a.TTFT.Median != b.TTFT.Median || relative(a.ITL.Mean, b.ITL.Mean) > 1e-9 || relative(a.ITL.Std, b.ITL.Std) > 1e-9 ||
		a.ITL.P99 != b.ITL.P99 || a.Emitted != b.Emitted || *a.Goodput.AttainmentITL != *b.Goodput.AttainmentITL ||
		a.Goodput.Completed != b.Goodput.Completed || a.Completed != b.Completed || a.Completed == 0 {
		t.Errorf("three workers %+v\none worker %+v", a, b)
	}
}

func TestConcurrentLooks(t *testing.T) {
	c := NewCollector(Options{Workers: []string{"w0", "w1"}})
	var wg sync.WaitGroup
	for worker := range 2 {
		wg.Go(func() {
			r := &engine.Request{}
			for i := range 2000 {
				c.Reader(worker).Pass(pulse(r, engine.Time(i*10), int32(i)))
			}
		})
	}
	wg.Go(func() {
		var w Window
		for i := range 200 {
			c.Window(&w, All, engine.Time(i*100), 100)
			c.Report(Final{Now: engine.Time(i * 100)})
			c.Counts(All)
		}
	})
	wg.Wait()
	if got := c.Report(Final{Now: 20_000}).Summary.Emitted; got != 4000 {
		t.Errorf("%d tokens", got)
	}
}

// BenchmarkPass is a decode pass of so many requests; the figure that counts is ns/output.
func BenchmarkPass(b *testing.B) {
	for _, n := range []int{1, 64, 256} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c := NewCollector(Options{Workers: []string{"w0"}})
			p := &engine.Pass{Load: engine.Load{ActiveBlocks: 1, TotalBlocks: 2}}
			for range n {
				r := &engine.Request{}
				p.Work = append(p.Work, engine.Work{Request: r, Tokens: 1})
				p.Outputs = append(p.Outputs, engine.Output{Request: r, HasToken: true})
			}
			b.ReportAllocs()
			for b.Loop() {
				p.Start = p.End
				p.End += 7 + engine.Time(int(p.End)%3)
				c.Reader(0).Pass(p)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/output")
		})
	}
}

func BenchmarkWindow(b *testing.B) {
	c := NewCollector(Options{Workers: make([]string, 64)})
	r := &engine.Request{}
	for worker := range 64 {
		for i := range 1000 {
			c.Reader(worker).Pass(pulse(r, engine.Time(i*100), int32(i)))
		}
	}
	var w Window
	for b.Loop() {
		c.Window(&w, All, 100_000, 200)
	}
}
