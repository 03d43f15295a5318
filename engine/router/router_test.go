package router

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mockbench/engine"
	"mockbench/kv"
)

const blockSize = 4

func newRouter(t *testing.T, o Options) *Router {
	t.Helper()
	o.BlockSize = blockSize
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func place(t *testing.T, r *Router, label string, prompt []uint32) Decision {
	t.Helper()
	d, err := r.Place(Request{Label: label, Prompt: prompt, MaxOutput: 1})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// tokens returns n token ids that depend on start alone.
func tokens(start, n int) []uint32 {
	out := make([]uint32, n)
	for i := range out {
		out[i] = uint32(start*1000 + i)
	}
	return out
}

// stores returns a record in which a rank stores all complete blocks of a prompt.
func stores(rank int, prompt []uint32) *engine.Pass {
	p := &engine.Pass{Rank: rank}
	p.Events.Local, p.Events.Sequence = kv.AppendHashes(nil, nil, prompt, blockSize)
	p.Events.List = []kv.Event{{Count: int32(len(p.Events.Sequence))}}
	return p
}

func output(label string, position int32, completed bool) *engine.Pass {
	return &engine.Pass{Outputs: []engine.Output{{Request: &engine.Request{Label: label}, Position: position, HasToken: true, Completed: completed}}}
}

func TestRoundRobinTakesWorkersThenRanksInTurn(t *testing.T) {
	r := newRouter(t, Options{Policy: RoundRobin, Workers: 2, Ranks: 2})
	var got [][2]int
	for i := range 5 {
		d := place(t, r, fmt.Sprint(i), tokens(i, 8))
		got = append(got, [2]int{d.Worker, d.Rank})
		if d.Why != WhyTurn {
			t.Errorf("reason %q", d.Why)
		}
	}
	r.SetOpen(1, false)
	d := place(t, r, "5", tokens(5, 8))
	got = append(got, [2]int{d.Worker, d.Rank})
	if d := cmp.Diff([][2]int{{0, 0}, {1, 0}, {0, 1}, {1, 1}, {0, 0}, {0, 1}}, got); d != "" {
		t.Error(d)
	}
}

func TestReasons(t *testing.T) {
	r := newRouter(t, Options{Policy: KV, Workers: 3, Seed: 1})
	shared := tokens(1, 40)
	r.Reader(2).Pass(stores(0, shared))
	if d := place(t, r, "a", shared); d.Worker != 2 || d.Why != WhyOverlap || d.Overlap != 10 {
		t.Errorf("cached prefix: worker %d, reason %q, overlap %d", d.Worker, d.Why, d.Overlap)
	}
	if d := place(t, r, "b", tokens(2, 40)); d.Worker == 2 || d.Why != WhyTie {
		t.Errorf("two idle workers: worker %d, reason %q", d.Worker, d.Why)
	}
	if d := place(t, r, "c", tokens(3, 400)); d.Worker == 2 || d.Why != WhyLeastLoad {
		t.Errorf("one idle worker: worker %d, reason %q", d.Worker, d.Why)
	}
	r.SetOpen(0, false)
	r.SetOpen(1, false)
	if d := place(t, r, "d", tokens(4, 40)); d.Worker != 2 || d.Why != WhyOnly {
		t.Errorf("one open worker: worker %d, reason %q", d.Worker, d.Why)
	}
	r.SetOpen(2, false)
	if _, err := r.Place(Request{Label: "e", Prompt: shared}); !errors.Is(err, ErrNoWorker) {
		t.Errorf("no open worker: %v", err)
	}
}

func TestPrefillLoadEndsWithTheFirstToken(t *testing.T) {
	r := newRouter(t, Options{Policy: KV, Workers: 1})
	place(t, r, "a", tokens(1, 40))
	want := []Counters{{Placed: 1, Active: 1, ActiveBlocks: 10, Prefill: 40}}
	check := func(when string) {
		t.Helper()
		if d := cmp.Diff(want, r.Counters(nil)); d != "" {
			t.Errorf("%s:\n%s", when, d)
		}
	}
	check("placed")
	r.Reader(0).Pass(output("a", 0, false))
	want[0].Prefill = 0
	check("first token")
	r.Reader(0).Pass(output("a", 7, true))
	want[0].Active, want[0].ActiveBlocks = 0, 0
	check("last token")
	r.Free("a")
	check("freed again")
}

func TestPredictedAndActualHits(t *testing.T) {
	r := newRouter(t, Options{Policy: KV, Workers: 1})
	prompt := tokens(1, 40)
	r.Reader(0).Pass(stores(0, prompt))
	place(t, r, "a", prompt)
	q := &engine.Request{Label: "a", Prompt: prompt}
	r.Reader(0).Pass(&engine.Pass{Admissions: []engine.Admission{{Request: q, Reused: 36, First: true}}})
	r.Reader(0).Pass(&engine.Pass{Admissions: []engine.Admission{{Request: q, Reused: 48}}})
	got := r.Counters(nil)[0]
	if got.Admitted != 1 || got.Predicted != 40 || got.Reused != 36 || got.Prompt != 40 || got.Cached != 10 {
		t.Errorf("counters %+v", got)
	}
	r.Forget(0)
	if got := r.Counters(nil)[0]; got.Active != 0 || got.Cached != 0 {
		t.Errorf("forgotten worker still has %+v", got)
	}
}

func TestLeastLoadedBalances(t *testing.T) {
	for _, p := range []Policy{LeastLoaded, TwoChoices, Random} {
		r := newRouter(t, Options{Policy: p, Workers: 4})
		for i := range 400 {
			place(t, r, fmt.Sprint(i), nil)
		}
		lo, hi := 400, 0
		for _, c := range r.Counters(nil) {
			lo, hi = min(lo, c.Active), max(hi, c.Active)
		}
		if limit := map[Policy]int{LeastLoaded: 0, TwoChoices: 10, Random: 60}[p]; hi-lo > limit {
			t.Errorf("%s: between %d and %d requests a worker", p, lo, hi)
		}
	}
}

// The books of a rank are compared with a walk over its live requests.
func TestBooksAgainstAWalk(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	r := newRouter(t, Options{Policy: KV, Workers: 3, Ranks: 2})
	type live struct {
		d      Decision
		prompt []uint32
		waits  bool
	}
	requests := map[string]*live{}
	var labels []string
	for step := range 3000 {
		switch op := random.IntN(3); {
		case op == 0 || len(labels) == 0:
			label := fmt.Sprint(step)
			prompt := append(tokens(random.IntN(3), 4*random.IntN(4)), tokens(3+random.IntN(9), random.IntN(20))...)
			requests[label] = &live{place(t, r, label, prompt), prompt, true}
			labels = append(labels, label)
		case op == 1:
			label := labels[random.IntN(len(labels))]
			requests[label].waits = false
			r.Reader(requests[label].d.Worker).Pass(output(label, 0, false))
		default:
			i := random.IntN(len(labels))
			r.Reader(requests[labels[i]].d.Worker).Pass(output(labels[i], 5, true))
			delete(requests, labels[i])
			labels = append(labels[:i], labels[i+1:]...)
		}
		want := make([]Counters, 3)
		blocks := map[string]bool{}
		for _, q := range requests {
			c := &want[q.d.Worker]
			c.Active++
			if q.waits {
				c.Prefill += len(q.prompt)
			}
			_, sequence := kv.AppendHashes(nil, nil, q.prompt, blockSize)
			for _, h := range sequence {
				if key := fmt.Sprint(q.d.Worker, q.d.Rank, h); !blocks[key] {
					blocks[key] = true
					c.ActiveBlocks++
				}
			}
		}
		for i, got := range r.Counters(nil) {
			got.Placed = 0
			if got != want[i] {
				t.Fatalf("step %d: worker %d has %+v, want %+v", step, i, got, want[i])
			}
		}
	}
}

func TestSameSeedSamePlacements(t *testing.T) {
	run := func(seed uint64) (workers []int) {
		r := newRouter(t, Options{Policy: KV, Workers: 8, Seed: seed})
		for i := range 64 {
			workers = append(workers, place(t, r, fmt.Sprint(i), tokens(i%5, 16)).Worker)
		}
		return workers
	}
	if d := cmp.Diff(run(5), run(5)); d != "" {
		t.Error(d)
	}
	if cmp.Equal(run(5), run(6)) {
		t.Error("another seed gives the same placements")
	}
}

func TestRecentDecisionsNewestFirst(t *testing.T) {
	r := newRouter(t, Options{Policy: Random, Workers: 2})
	for i := range 100 {
		place(t, r, fmt.Sprint(i), nil)
	}
	got := r.Recent(nil, 3)
	if len(got) != 3 || got[0].Label != "99" || got[2].Number != 98 || len(r.Recent(nil, 1000)) != recentDecisions {
		t.Errorf("recent decisions %v", got)
	}
}

func TestWrongOptions(t *testing.T) {
	good := Options{Policy: KV, Workers: 1, BlockSize: 16}
	for setting, change := range map[string]func(*Options){
		"router.policy":                func(o *Options) { o.Policy = "fastest" },
		"router.workers":               func(o *Options) { o.Workers = 0 },
		"router.block_size":            func(o *Options) { o.BlockSize = -1 },
		"router.host_cache_hit_weight": func(o *Options) { o.Model = DefaultModel(); o.Model.HostWeight = 1.5 },
		"router.router_temperature":    func(o *Options) { o.Model = DefaultModel(); o.Model.Temperature = -1 },
	} {
		o := good
		change(&o)
		var wrong *engine.SettingError
		if _, err := New(o); !errors.As(err, &wrong) || wrong.Setting != setting {
			t.Errorf("%s: got %v", setting, err)
		}
	}
}

func BenchmarkPlace(b *testing.B) {
	r, err := New(Options{Policy: KV, Workers: 64, BlockSize: 64})
	if err != nil {
		b.Fatal(err)
	}
	prompt := tokens(1, 2048)
	for b.Loop() {
		if _, err := r.Place(Request{Label: "x", Prompt: prompt}); err != nil {
			b.Fatal(err)
		}
	}
}
