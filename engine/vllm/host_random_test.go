package vllm_test

import (
	"testing"

	"pgregory.net/rapid"

	"mockbench/engine"
	"mockbench/engine/backend"
	"mockbench/kv"
	"mockbench/kv/hostcache"
)

// hostRun is a worker with host offload under random load.
type hostRun struct {
	group   *engine.Group
	cfg     engine.Config
	ranks   int
	now     engine.Time
	hint    engine.Hint
	still   bool // the last pass had neither length nor effect: only a transfer can help
	tokens  map[*engine.Request]int
	limits  map[*engine.Request]int // tokens a request must have produced in the end; absent if cancelled
	indexes []map[uint64]bool       // blocks on the device, as events have it, by rank
	host    []map[uint64]bool       // blocks on the host, as events have it, by rank
}

func newHostRun(t *rapid.T) *hostRun {
	cfg := engine.DefaultConfig(engine.VLLM)
	cfg.NumGPUBlocks = rapid.IntRange(6, 16).Draw(t, "blocks")
	cfg.BlockSize = rapid.IntRange(2, 4).Draw(t, "block size")
	cfg.MaxNumSeqs, cfg.EmitKVEvents, cfg.KVCacheBytesPerToken = 4, true, 100_000
	cfg.MaxNumBatchedTokens = rapid.SampledFrom([]uint64{3, 8, 64}).Draw(t, "budget")
	cfg.PreemptionMode = rapid.SampledFrom([]engine.PreemptionMode{engine.LIFO, engine.FIFO}).Draw(t, "preemption")
	cfg.Role = rapid.SampledFrom([]engine.Role{engine.Aggregated, engine.DecodeRole}).Draw(t, "role")
	cfg.HostOffload = engine.DefaultHostOffload(rapid.IntRange(2, 40).Draw(t, "host blocks"))
	h := cfg.HostOffload
	speeds := []float64{0, 0.01, 0.05, 1}
	h.D2HBandwidthGBps = rapid.SampledFrom(speeds).Draw(t, "store speed")
	h.H2DBandwidthGBps = rapid.SampledFrom(speeds).Draw(t, "load speed")
	h.LatencyMS = rapid.SampledFrom([]float64{0, 1.5}).Draw(t, "latency")
	r := &hostRun{cfg: cfg, ranks: 2, tokens: map[*engine.Request]int{}, limits: map[*engine.Request]int{}}
	var shared *hostcache.Pool
	if rapid.Bool().Draw(t, "shared") {
		h.Scope, h.KVLayoutID = engine.ScopeShared, "layout"
		h.SharedD2HBandwidthGBps = rapid.SampledFrom(speeds).Draw(t, "shared store speed")
		shared = backend.NewSharedHost(cfg, 1)
	}
	var err error
	if r.group, err = backend.NewSharingGroup(cfg, 0, r.ranks, shared); err != nil {
		t.Fatal(err)
	}
	for range r.ranks {
		r.indexes, r.host = append(r.indexes, map[uint64]bool{}), append(r.host, map[uint64]bool{})
	}
	return r
}

// TestRandomOperationsWithHostOffload checks that every request gets all its tokens, that blocks add up, that events
// tell the contents of both tiers, and that nothing is left over.
func TestRandomOperationsWithHostOffload(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newHostRun(t)
		var submitted []*engine.Request
		for range 40 {
			switch rapid.IntRange(0, 5).Draw(t, "action") {
			case 0, 1:
				q := r.request(t, len(submitted)+1)
				submitted = append(submitted, q)
				if err := r.group.Submit(q.Key, q, r.now); err != nil {
					t.Fatal(err)
				}
				r.limits[q] = q.MaxOutput
			case 2:
				if len(submitted) > 0 && rapid.IntRange(0, 2).Draw(t, "cancel") == 0 {
					r.cancel(rapid.SampledFrom(submitted).Draw(t, "request"))
				}
			default:
				r.advance(t, submitted)
			}
		}
		for passes := 0; !r.group.Drained(); passes++ {
			if passes > 20000 {
				t.Fatal("the worker never drains")
			}
			r.advance(t, nil)
		}
		for q, want := range r.limits {
			if r.tokens[q] != want {
				t.Fatalf("request %d has %d tokens, want %d", q.ID[15], r.tokens[q], want)
			}
		}
		var s engine.Snapshot
		r.group.Rank(0).Inspect(&s)
		if s.Host.Pending != 0 || s.Host.Pinned != 0 || s.Load.ActiveBlocks != 0 || s.Queued != 0 {
			t.Fatalf("left over: host tier %+v, load %+v, %d queued", s.Host, s.Load, s.Queued)
		}
	})
}

// request draws a request that fits the pool. Its prompt is not empty: a decode rank serves those before loaded requests,
// also again and again when there is no room for the next token.
func (r *hostRun) request(t *rapid.T, n int) *engine.Request {
	room := r.cfg.NumGPUBlocks * r.cfg.BlockSize
	seed := rapid.Uint32Range(1, 3).Draw(t, "prompt")
	q := &engine.Request{ID: engine.ID{15: byte(n)}, Key: rapid.IntRange(0, r.ranks-1).Draw(t, "rank"),
		MaxOutput: rapid.IntRange(1, 10).Draw(t, "output")}
	for i := range rapid.IntRange(1, min(24, room-q.MaxOutput)).Draw(t, "length") {
		q.Prompt = append(q.Prompt, seed*1000+uint32(i))
	}
	return q
}

func (r *hostRun) cancel(q *engine.Request) {
	if r.group.Cancel(q.Key, q.ID, r.now, true).Retired {
		delete(r.limits, q)
	}
}

// advance does internal work that is due, or a pass, or lets time go by until the next deadline.
func (r *hostRun) advance(t *rapid.T, cancellable []*engine.Request) {
	d, ok := r.group.Deadline()
	if ok && (d <= r.now || !r.group.Ready() || r.still) {
		r.still = false
		r.now = max(r.now, d)
		for rank, p := range r.group.Advance(r.now) {
			if p != nil {
				r.follow(t, rank, p)
			}
		}
		return
	}
	if !r.group.Ready() {
		return
	}
	if r.still { // a request with loaded blocks can stand behind one that needs them: stuck until somebody gives up
		r.giveUp(t)
	}
	start := r.now
	_, end := r.group.Begin(start)
	if len(cancellable) > 0 && rapid.IntRange(0, 9).Draw(t, "cancel during the pass") == 0 {
		r.cancel(rapid.SampledFrom(cancellable).Draw(t, "request"))
	}
	r.now = end
	r.still = end == start
	for rank, p := range r.group.Complete() {
		r.still = r.still && !p.Effect
		if p.Hint.Kind == engine.HintExhausted {
			r.hint = p.Hint
		}
		if _, ok := r.group.Rank(rank).Deadline(); !p.Idle && !p.Effect && r.cfg.HostOffload.Scope == engine.ScopeRank && ok != (p.Hint.Kind == engine.HintTransfer) {
			t.Fatalf("a transfer is under way: %v, hint %+v", ok, p.Hint)
		}
		for _, o := range p.Outputs {
			r.tokens[o.Request]++
		}
		r.follow(t, rank, p)
	}
}

// giveUp cancels the request that holds a stuck rank back.
func (r *hostRun) giveUp(t *rapid.T) {
	h := r.hint
	if h.Head == nil || h.Test != engine.TestPool || h.Need <= h.Have || h.Raise <= r.cfg.NumGPUBlocks {
		t.Fatalf("stuck with the hint %+v", h)
	}
	r.cancel(h.Head)
	r.still = false
}

// follow replays the events of a rank and compares them with the contents of its tiers.
func (r *hostRun) follow(t *rapid.T, rank int, p *engine.Pass) {
	for _, e := range p.Events.List {
		index := r.indexes[rank]
		if e.Tier == kv.HostPinned {
			index = r.host[rank]
		}
		hashes, _ := p.Events.Blocks(e)
		for _, h := range hashes {
			if index[h] == (e.Kind == kv.Stored) {
				t.Fatalf("event %d of rank %d repeats itself", e.ID, rank)
			}
			if e.Kind == kv.Stored {
				index[h] = true
			} else {
				delete(index, h)
			}
		}
	}
	var s engine.Snapshot
	r.group.Rank(rank).Inspect(&s)
	active, inactive := s.Counts[engine.BlockActive]+s.Counts[engine.BlockShared], s.Counts[engine.BlockCached]+s.Counts[engine.BlockHost]
	if active != p.Load.ActiveBlocks || inactive != p.Load.InactiveBlocks || active+inactive+s.Counts[engine.BlockFree] != r.cfg.NumGPUBlocks {
		t.Fatalf("blocks %v, load %+v", s.Counts, p.Load)
	}
	held := map[uint64]bool{}
	for u := range int32(r.cfg.NumGPUBlocks) {
		if b := r.group.Rank(rank).Block(u); b.Hash != 0 {
			held[b.Hash] = true
		}
	}
	for h := range held {
		if !r.indexes[rank][h] {
			t.Fatalf("rank %d: block %x was never announced", rank, h)
		}
	}
	if len(held) != len(r.indexes[rank]) {
		t.Fatalf("rank %d holds %d blocks, events say %d", rank, len(held), len(r.indexes[rank]))
	}
	if h := s.Host; !h.Shared && h.Resident != len(r.host[rank]) {
		t.Fatalf("rank %d: %d blocks on the host, events say %d", rank, h.Resident, len(r.host[rank]))
	}
	if h := s.Host; h.Resident+h.Pending > h.Capacity {
		t.Fatalf("host tier %+v is overfull", h)
	}
}
