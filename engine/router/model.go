package router

import (
	"encoding/json"
	"fmt"
	"math"

	"mockbench/engine"
)

// Model is the weights of the cost of a rank. Costs are in blocks; the lowest wins. JSON names are those of the
// reference's router configuration.
type Model struct {
	OverlapCredit       float64 `json:"overlap_score_credit"`         // blocks taken off for a cached device block
	OverlapCreditDecay  float64 `json:"overlap_score_credit_decay"`   // how fast a prefill backlog devalues that credit
	PrefillScale        float64 `json:"prefill_load_scale"`           // of the prefill term
	ActiveRequestWeight float64 `json:"decode_active_request_weight"` // blocks for an active request
	HostWeight          float64 `json:"host_cache_hit_weight"`        // of a block in host memory, 0 to 1
	DiskWeight          float64 `json:"disk_cache_hit_weight"`        // of a block on disk, 0 to 1
	Temperature         float64 `json:"router_temperature"`           // 0: always the lowest cost
	TrackPrefill        bool    `json:"router_track_prefill_tokens"`
}

// DefaultModel returns the reference's defaults.
func DefaultModel() Model {
	return Model{OverlapCredit: 1, PrefillScale: 1, HostWeight: 0.75, DiskWeight: 0.25, TrackPrefill: true}
}

// ParseModel reads a router configuration in the reference's JSON form over the defaults. Keys that concern other parts
// of the router are ignored. The deprecated overlap_score_weight sets the scale of the prefill term, and 0 also switches
// the credit off.
func ParseModel(data []byte) (Model, error) {
	m := DefaultModel()
	var old struct {
		Weight *float64 `json:"overlap_score_weight"`
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("router configuration: %w", err)
	}
	if err := json.Unmarshal(data, &old); err != nil {
		return m, fmt.Errorf("router configuration: %w", err)
	}
	if old.Weight != nil {
		m.PrefillScale = *old.Weight
		if *old.Weight == 0 {
			m.OverlapCredit = 0
		}
	}
	return m, m.Validate()
}

// Validate returns a *engine.SettingError for the first weight that is out of range.
func (m Model) Validate() error {
	for _, w := range []struct {
		name       string
		value, max float64
	}{
		{"overlap_score_credit", m.OverlapCredit, math.MaxFloat64},
		{"overlap_score_credit_decay", m.OverlapCreditDecay, math.MaxFloat64},
		{"prefill_load_scale", m.PrefillScale, math.MaxFloat64},
		{"decode_active_request_weight", m.ActiveRequestWeight, math.MaxFloat64},
		{"router_temperature", m.Temperature, math.MaxFloat64},
		{"host_cache_hit_weight", m.HostWeight, 1},
		{"disk_cache_hit_weight", m.DiskWeight, 1},
	} {
		if w.value >= 0 && w.value <= w.max { // false for NaN
			continue
		}
		allowed := "must be finite and not negative"
		if w.max == 1 {
			allowed = "must be between 0 and 1"
		}
		return &engine.SettingError{Setting: "router." + w.name, Kind: engine.KindRange, Given: fmt.Sprint(w.value), Allowed: allowed}
	}
	return nil
}

// Rank is what the router knows of one rank when it places a request.
type Rank struct {
	Worker, Rank       int
	Device, Host, Disk int      // blocks of the prompt it holds: leading ones, and those that follow in the lower tiers
	Load               *Load    // nil: never heard of
	Taints             []string // labels of the worker
}

// Load is the router's own view of what a rank is busy with.
type Load struct {
	PrefillTokens    int // prompt tokens placed there and not computed yet
	DecodeBlocks     int // distinct prompt blocks of its requests
	Requests         int
	AdditionalBlocks int // blocks the request to be placed would add
}

// Candidate is one rank with the terms of its cost.
type Candidate struct {
	Worker, Rank  int
	OverlapBlocks int     // cached blocks of the prompt, lower tiers weighted, rounded
	CachedTokens  int     // the same in tokens
	RawTokens     int     // cached tokens of all tiers, unweighted
	PrefillBlocks float64 // waiting prefill and the prompt, less the credit for cached blocks
	DecodeBlocks  int     // blocks of active requests, including what this request adds
	RequestTerm   float64 // weighted number of active requests
	Cost          float64

	loadCost float64 // cost without credit for cached blocks
}

// effective returns the cached blocks with the lower tiers weighted.
func (m Model) effective(r Rank) float64 {
	blocks := float64(r.Device)
	if r.Host > 0 {
		blocks += m.HostWeight * float64(r.Host)
	}
	if r.Disk > 0 {
		blocks += m.DiskWeight * float64(r.Disk)
	}
	return blocks
}

// prompt is what the cost needs to know of a request.
type prompt struct {
	tokens, blockSize int
	decode            bool // placed by a router for decode workers
	minPrefill        int  // smallest backlog of prefill tokens among the candidates
}

func (p prompt) blocks() int { return (p.tokens + p.blockSize - 1) / p.blockSize }

// score computes the cost of one rank.
func (m Model) score(p prompt, r Rank) Candidate {
	effective, size := m.effective(r), float64(p.blockSize)
	c := Candidate{Worker: r.Worker, Rank: r.Rank, OverlapBlocks: int(math.Round(effective)),
		CachedTokens: int(math.Round(effective * size)), RawTokens: (r.Device + r.Host + r.Disk) * p.blockSize}
	var load Load
	if r.Load != nil {
		load = *r.Load
	}
	c.DecodeBlocks = load.DecodeBlocks + load.AdditionalBlocks
	if m.ActiveRequestWeight != 0 {
		c.RequestTerm = m.ActiveRequestWeight * float64(load.Requests)
	}
	credit, cached := 0.0, 0
	if m.OverlapCredit != 0 {
		credit, cached = m.credit(p, r, load), c.CachedTokens
	}
	if p.decode && !m.TrackPrefill && m.OverlapCredit > 0 {
		c.Cost = max(float64(c.DecodeBlocks)-credit, 0) + c.RequestTerm
		c.loadCost = float64(c.DecodeBlocks) + c.RequestTerm
		return c
	}
	raw := 0
	switch {
	case !m.TrackPrefill:
	case r.Load == nil:
		raw = p.tokens
	default:
		raw = load.PrefillTokens + max(p.tokens-cached, 0) + cached
	}
	c.PrefillBlocks = max(float64(raw)/size-credit, 0)
	c.Cost = m.PrefillScale*c.PrefillBlocks + float64(c.DecodeBlocks) + c.RequestTerm
	c.loadCost = m.PrefillScale*float64(raw)/size + float64(c.DecodeBlocks) + c.RequestTerm
	return c
}

// credit returns the blocks taken off for what the rank has cached. A backlog of prefills devalues device blocks.
func (m Model) credit(p prompt, r Rank, load Load) float64 {
	decay := 1.0
	if m.TrackPrefill && m.OverlapCreditDecay > 0 {
		excess := float64(load.PrefillTokens-p.minPrefill) / float64(p.blockSize)
		decay = 1 / (1 + m.OverlapCreditDecay*(excess/float64(max(p.blocks(), 1))))
	}
	credit := m.OverlapCredit * decay * float64(r.Device)
	credit += m.HostWeight * float64(r.Host)
	return credit + m.DiskWeight*float64(r.Disk)
}
