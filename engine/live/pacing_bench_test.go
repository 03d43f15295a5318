package live

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"mockbench/engine"
)

// BenchmarkPacing runs 1000 passes of 5.7 ms on each kind of alarm and prints how far the time between two passes is
// from the model, in ms.
func BenchmarkPacing(b *testing.B) {
	const length, passes = 5.7, 1000
	for name, alarm := range map[string]func() alarm{"runtime": newRuntimeAlarm, "best": newAlarm} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				ends := make([]time.Time, 0, passes)
				reader := readerFunc(func(*engine.Pass) { ends = append(ends, time.Now()) })
				w := start(Options{Name: "w", Clock: NewClock(1), Readers: []engine.Reader{reader}},
					engine.NewGroup([]engine.Scheduler{&fakeRank{length: length}}), alarm())
				begin := time.Now()
				s, err := w.Submit(Request{MaxOutput: passes, Rank: -1})
				if err != nil {
					b.Fatal(err)
				}
				for end := Open; end == Open; {
					if _, end, err = s.Take(context.Background(), nil); err != nil {
						b.Fatal(err)
					}
				}
				w.Close()
				report(b, length, begin, ends, w.Slip())
			}
		})
	}
}

func report(b *testing.B, length float64, begin time.Time, ends []time.Time, slip time.Duration) {
	var errors, late []float64
	sum := 0.0
	for k := range ends {
		late = append(late, float64(ends[k].Sub(begin))/1e6-length*float64(k+1))
		if k > 0 {
			e := float64(ends[k].Sub(ends[k-1]))/1e6 - length
			sum += e
			errors = append(errors, math.Abs(e))
		}
	}
	slices.Sort(errors)
	slices.Sort(late)
	quantile := func(list []float64, q float64) float64 { return list[int(q*float64(len(list)-1))] }
	b.ReportMetric(sum/float64(len(errors)), "mean-error-ms")
	b.ReportMetric(quantile(errors, 0.5), "p50-ms")
	b.ReportMetric(quantile(errors, 0.99), "p99-ms")
	b.ReportMetric(quantile(late, 0.5), "late-p50-ms")
	b.ReportMetric(quantile(late, 0.99), "late-p99-ms")
	b.ReportMetric(slip.Seconds()*1000, "slip-ms")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkOutputs sends 64 requests of 500 tokens through a worker whose passes have no length and reads all streams.
func BenchmarkOutputs(b *testing.B) {
	const streams, tokens = 64, 500
	for _, backed := range []bool{false, true} {
		b.Run(fmt.Sprint("engine=", backed), func(b *testing.B) {
			for range b.N {
				outputs(b, backed, streams, tokens)
			}
			b.ReportMetric(float64(b.N)*streams*tokens/b.Elapsed().Seconds(), "outputs/s")
		})
	}
}

func outputs(b *testing.B, backed bool, streams, tokens int) {
	o := Options{Name: "w", Engine: fixedTiming(16384, 0, 0), Ranks: 1, Clock: NewClock(1)}
	var w *Worker
	if backed {
		var err error
		if w, err = Start(context.Background(), o); err != nil {
			b.Fatal(err)
		}
	} else {
		w = start(o, engine.NewGroup([]engine.Scheduler{&fakeRank{}}), newAlarm())
	}
	var readers sync.WaitGroup
	for k := range streams {
		s, err := w.Submit(Request{Prompt: prompt(k, 64), MaxOutput: tokens, Rank: -1})
		if err != nil {
			b.Fatal(err)
		}
		readers.Go(func() {
			var got []Token
			for n, end := 0, Open; end == Open; n += len(got) {
				if got, end, err = s.Take(context.Background(), got[:0]); err != nil {
					b.Error(err)
				}
			}
		})
	}
	readers.Wait()
	w.Close()
}
