package router

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// goldenFile reads one file of the recorded router decisions.
func goldenFile(t *testing.T, name string, into any) {
	t.Helper()
	dir := os.Getenv("MOCKBENCH_GOLDEN")
	if dir == "" {
		dir = filepath.Join("..", "..", "testdata", "golden")
	}
	data, err := os.ReadFile(filepath.Join(dir, "router", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

type drawCase struct {
	Name   string
	Input  struct{ Seed string } // seeds and draws are texts: they do not fit a JSON number
	Expect struct {
		F64   []float64
		U64   []string
		Below []uint64 `json:"usize_0_to_2_plus_i_mod_5"`
	}
}

type selectCase struct {
	Name  string
	Input struct {
		BlockSize int             `json:"block_size"`
		ISLTokens int             `json:"isl_tokens"`
		Label     string          `json:"worker_label"`
		Config    json.RawMessage `json:"config"`
		Track     *bool           `json:"track_prefill_tokens"`
		Workers   []struct {
			ID     int      `json:"id"`
			Rank   int      `json:"dp_rank"`
			Device int      `json:"device_blocks"`
			Host   int      `json:"host_blocks"`
			Disk   int      `json:"disk_blocks"`
			Taints []string `json:"taints"`
			Load   *struct {
				Prefill    int `json:"active_prefill_tokens"`
				Decode     int `json:"active_decode_blocks"`
				Requests   int `json:"active_requests"`
				Additional int `json:"additional_active_blocks"`
			} `json:"load"`
		}
		Seed      uint64
		Repeat    int
		Allowed   []int
		Pinned    *[2]int
		Preferred map[string]float32 `json:"preferred_taints"`
		Required  []string           `json:"required_taints"`
	}
	Expect struct {
		Error     string
		Worker    [2]int
		Required  int       `json:"required_blocks"`
		Effective float64   `json:"effective_overlap_blocks"`
		Cached    int       `json:"cached_tokens"`
		MaxRaw    int       `json:"max_raw_cached_tokens"`
		Raw       int       `json:"selected_raw_cached_tokens"`
		Potential int       `json:"potential_decode_blocks"`
		Cost      *float64  `json:"selected_cost"`
		Costs     []float64 `json:"costs_by_rank"`
		Picks     [][2]int
	}
}

func TestGoldenRouter(t *testing.T) {
	var draws []drawCase
	goldenFile(t, "rng.json", &draws)
	for _, c := range draws {
		t.Run(c.Name, func(t *testing.T) { checkDraws(t, c) })
	}
	var selections []selectCase
	goldenFile(t, "select.json", &selections)
	for _, c := range selections {
		t.Run(c.Name, func(t *testing.T) { checkSelection(t, c) })
	}
}

func checkDraws(t *testing.T, c drawCase) {
	seed, err := strconv.ParseUint(c.Input.Seed, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	got := c.Expect
	got.F64, got.U64, got.Below = nil, nil, nil
	floats, words, choices := rng(seed), rng(seed), rng(seed)
	for range c.Expect.F64 {
		got.F64 = append(got.F64, floats.float())
	}
	for range c.Expect.U64 {
		got.U64 = append(got.U64, strconv.FormatUint(words.next(), 10))
	}
	for i := range c.Expect.Below {
		got.Below = append(got.Below, choices.below(uint64(2+i%5)))
	}
	if d := cmp.Diff(c.Expect, got); d != "" {
		t.Error(d)
	}
}

func checkSelection(t *testing.T, c selectCase) {
	in, want := c.Input, c.Expect
	m, err := ParseModel(in.Config)
	if err != nil {
		t.Fatal(err)
	}
	if in.Track != nil {
		m.TrackPrefill = *in.Track
	}
	s := NewSelector(m, in.BlockSize, in.Seed)
	s.Decode = in.Label == "decode"
	var ranks []Rank
	for _, w := range in.Workers {
		r := Rank{Worker: w.ID, Rank: w.Rank, Device: w.Device, Host: w.Host, Disk: w.Disk, Taints: w.Taints}
		if l := w.Load; l != nil {
			r.Load = &Load{PrefillTokens: l.Prefill, DecodeBlocks: l.Decode, Requests: l.Requests, AdditionalBlocks: l.Additional}
		}
		ranks = append(ranks, r)
	}
	limits := Constraints{Allowed: in.Allowed, Pinned: in.Pinned, Required: in.Required, Preferred: in.Preferred}
	candidates, choice, err := s.Select(in.ISLTokens, ranks, limits, nil)
	if (err != nil) != (want.Error != "") {
		t.Fatalf("error %v, want %q", err, want.Error)
	}
	if err != nil {
		return
	}
	got := candidates[choice]
	if picked := [2]int{got.Worker, got.Rank}; picked != want.Worker {
		t.Errorf("picked %v, want %v", picked, want.Worker)
	}
	blocks := prompt{tokens: in.ISLTokens, blockSize: in.BlockSize}.blocks()
	maxRaw := 0
	for i, candidate := range candidates {
		maxRaw = max(maxRaw, candidate.RawTokens)
		if !near(candidate.Cost, want.Costs[i]) {
			t.Errorf("cost of candidate %d is %v, want %v", i, candidate.Cost, want.Costs[i])
		}
	}
	figures := []int{blocks, got.CachedTokens, got.RawTokens, maxRaw, got.DecodeBlocks + blocks, len(candidates)}
	if d := cmp.Diff([]int{want.Required, want.Cached, want.Raw, want.MaxRaw, want.Potential, len(want.Costs)}, figures); d != "" {
		t.Errorf("blocks, cached, raw, largest raw, potential decode blocks, candidates:\n%s", d)
	}
	if want.Cost != nil && !near(got.Cost, *want.Cost) {
		t.Errorf("cost %v, want %v", got.Cost, *want.Cost)
	}
	if len(want.Picks) > 0 {
		picks := [][2]int{{got.Worker, got.Rank}}
		for range in.Repeat - 1 {
			candidates, choice, err = s.Select(in.ISLTokens, ranks, limits, candidates[:0])
			if err != nil {
				t.Fatal(err)
			}
			picks = append(picks, [2]int{candidates[choice].Worker, candidates[choice].Rank})
		}
		if d := cmp.Diff(want.Picks, picks); d != "" {
			t.Error(d)
		}
	}
}

func near(a, b float64) bool { return a == b || math.Abs(a-b) <= 1e-12*math.Abs(b) }
