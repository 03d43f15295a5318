package replay

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"mockbench/engine"
	"mockbench/engine/replay/fast"
	"mockbench/engine/report"
	"mockbench/engine/router"
	"mockbench/engine/trace"
)

// outcome is all that a run says.
type outcome struct {
	Summary, Records string
	End              engine.Time
	Passes           uint64
	Unfinished       int
}

func outcomeOf(t *rapid.T, r *Result) outcome {
	summary, err := json.Marshal(r.Offline.Summary(r.Fleet))
	if err != nil {
		t.Fatal(err)
	}
	records, err := json.Marshal(r.Offline.Records())
	if err != nil {
		t.Fatal(err)
	}
	return outcome{string(summary), string(records), r.End, r.Passes, r.Unfinished}
}

// randomTrace draws requests that share prefixes, some of which arrive at the same time.
func randomTrace(t *rapid.T, blockSize int) *trace.Trace {
	tr := &trace.Trace{BlockSize: blockSize, Planned: true}
	var at float64
	var plan uint64
	gap := rapid.SampledFrom([]float64{0.5, 5, 40, 400}).Draw(t, "mean gap")
	longest := rapid.SampledFrom([]int{1, 8, 40, 300}).Draw(t, "longest output")
	next := uint32(100)
	for i := range rapid.IntRange(1, 60).Draw(t, "requests") {
		var ids []uint32
		for k := range rapid.IntRange(0, 4).Draw(t, "shared") {
			ids = append(ids, uint32(10*rapid.IntRange(0, 2).Draw(t, "group")+k))
		}
		for range rapid.IntRange(1, 6).Draw(t, "own") {
			ids = append(ids, next)
			next++
		}
		u := trace.Turn{IDs: ids, Input: len(ids)*blockSize - rapid.IntRange(0, blockSize-1).Draw(t, "cut"),
			Output: rapid.IntRange(0, longest).Draw(t, "output"), Plan: plan}
		if rapid.IntRange(0, 9).Draw(t, "has priority") == 0 {
			u.Extra = &trace.Extra{Priority: int32(rapid.IntRange(-1, 3).Draw(t, "priority")), Strict: uint32(rapid.IntRange(0, 1).Draw(t, "strict"))}
		}
		plan += uint64(u.Output)
		name := string(rune('a'+i%26)) + string(rune('a'+i/26))
		tr.Sessions = append(tr.Sessions, trace.Session{Name: name, Arrival: at, Turns: []trace.Turn{u}})
		if rapid.Bool().Draw(t, "later") {
			at += gap * rapid.Float64Range(0, 2).Draw(t, "gap")
		}
	}
	tr.IDs = int(next)
	return tr
}

// randomFleet draws workers with roomy and tight pools.
func randomFleet(t *rapid.T) Pool {
	e := engine.DefaultConfig(engine.VLLM)
	e.BlockSize = rapid.SampledFrom([]int{2, 7, 16, 64}).Draw(t, "block size")
	e.NumGPUBlocks = rapid.IntRange(2, 400).Draw(t, "blocks")
	e.MaxNumBatchedTokens = uint64(rapid.SampledFrom([]int{16, 100, 512, 8192}).Draw(t, "budget"))
	e.MaxNumSeqs = uint64(rapid.SampledFrom([]int{2, 7, 256}).Draw(t, "seqs"))
	e.MaxModelLen = rapid.SampledFrom([]int{0, 0, 200}).Draw(t, "model length")
	e.SpeedupRatio = rapid.SampledFrom([]float64{1, 10}).Draw(t, "speed")
	if rapid.IntRange(0, 3).Draw(t, "fixed") == 0 {
		e.Timing = engine.TimingConfig{Type: "fixed", PrefillMS: rapid.SampledFrom([]float64{0, 10}).Draw(t, "prefill"),
			DecodeMS: rapid.SampledFrom([]float64{0, 5}).Draw(t, "decode")}
	}
	return Pool{Engine: e, Workers: rapid.SampledFrom([]int{1, 2, 3, 70}).Draw(t, "workers")}
}

func randomRouter(t *rapid.T) *router.Config {
	if rapid.Bool().Draw(t, "round robin") {
		return nil
	}
	c := router.DefaultConfig()
	c.TrackBlocks, c.AssumeReuse = rapid.Bool().Draw(t, "track blocks"), rapid.Bool().Draw(t, "assume reuse")
	c.TrackPrefill = rapid.Bool().Draw(t, "track prefill")
	if rapid.Bool().Draw(t, "queue") {
		x := rapid.SampledFrom([]float64{0, 0.01, 0.5}).Draw(t, "threshold")
		c.QueueThreshold = &x
		c.QueuePolicy = rapid.SampledFrom([]router.QueuePolicy{router.FCFS, router.LCFS, router.WSPT}).Draw(t, "policy")
	}
	return &c
}

// The fast path and the general loop are two implementations of the same thing, on any number of cores.
func TestFastPathEqualsGeneralLoop(t *testing.T) {
	runs, short := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		o := Options{MaxTime: -1, Workers: randomFleet(t), Router: randomRouter(t), Records: rapid.Bool().Draw(t, "records"),
			Bounds: report.Bounds{TTFT: 100}, Trace: randomTrace(t, rapid.SampledFrom([]int{5, 16, 64, 128}).Draw(t, "trace block"))}
		if !o.short() || !suits(o.Trace) {
			t.Fatal("the fast path does not take it")
		}
		general := o
		general.General = true
		want, stuck := Run(general)
		runs++
		for cores := 1; cores <= 2; cores++ {
			o.Cores = cores
			got, err := runShort(&o)
			if errors.Is(err, fast.ErrBeyond) {
				return
			}
			if err != nil || stuck != nil {
				t.Fatalf("the fast path gives the error %v, the general loop %v", err, stuck)
			}
			if d := cmp.Diff(outcomeOf(t, want), outcomeOf(t, got)); d != "" {
				t.Fatalf("on %d cores, general loop and fast path: %s", cores, d)
			}
		}
		short++
	})
	if 2*short < runs {
		t.Errorf("only %d of %d runs stayed on the fast path", short, runs)
	}
	t.Logf("%d of %d runs on the fast path", short, runs)
}
