package ais

import (
	"cmp"
	"slices"
)

// Lane is a kernel that measured rows come from.
type Lane = string

const anyLane Lane = "default"

// LanePolicy says which kernel serves a backend.
type LanePolicy struct {
	// Known is false if the data names no kernel for this backend, version and architecture of the GPU.
	Known bool

	// Pinned is the kernel that the backend chooses by itself, "default" if that is open.
	Pinned Lane
}

// familiar are the kernels that are tried, by size, before the default one.
var familiar = []Lane{"fa3", "flashinfer", "fla", "triton", "trtllm_mha"}

// laneKey is an attention key measured with one kernel.
type laneKey struct {
	lane Lane
	AttentionKey
}

// attention is a table of attention latencies.
type attention struct {
	name   string
	lanes  []Lane            // in the order in which they are asked
	slices map[laneKey]*grid // nil for a key that was measured but is not needed
}

// lane counts what a kernel has measured.
type laneSize struct {
	name         Lane
	slices, rows int
}

// newAttention builds the table. build returns nil for a key that will not be asked for.
func newAttention(name string, policy LanePolicy, c *collector[laneKey], build func(AttentionKey, []row) *grid) *attention {
	t := &attention{name: name, slices: map[laneKey]*grid{}}
	var sizes []laneSize
	c.groups(func(key laneKey, rows []row) {
		i := slices.IndexFunc(sizes, func(s laneSize) bool { return s.name == key.lane })
		if i < 0 {
			i = len(sizes)
			sizes = append(sizes, laneSize{name: key.lane})
		}
		sizes[i].slices++
		sizes[i].rows += len(rows)
		t.slices[key] = build(key.AttentionKey, rows)
	})
	t.lanes = order(policy, sizes)
	return t
}

// order ranks kernels: the pinned one, familiar ones by size, the default one, the rest by size. Without a policy the
// default one comes first and the rest follow as the data names them.
func order(policy LanePolicy, sizes []laneSize) []Lane {
	var lanes []Lane
	if policy.Known {
		if policy.Pinned != anyLane {
			lanes = append(lanes, policy.Pinned)
		}
		slices.SortFunc(sizes, func(x, y laneSize) int {
			return cmp.Or(cmp.Compare(y.slices, x.slices), cmp.Compare(y.rows, x.rows), cmp.Compare(x.name, y.name))
		})
		for _, s := range sizes {
			if slices.Contains(familiar, s.name) {
				lanes = append(lanes, s.name)
			}
		}
	}
	lanes = append(lanes, anyLane)
	for _, s := range sizes {
		if !slices.Contains(lanes, s.name) {
			lanes = append(lanes, s.name)
		}
	}
	return lanes
}

// find returns the measurements of the first kernel that has this key.
func (t *attention) find(key AttentionKey) (*grid, error) {
	for _, lane := range t.lanes {
		if g := t.slices[laneKey{lane, key}]; g != nil {
			return g, nil
		}
	}
	return nil, missing(t.name, key, func(yield func(AttentionKey) bool) {
		for k := range t.slices {
			if !yield(k.AttentionKey) {
				return
			}
		}
	})
}

// has reports whether prompts were measured in these formats, whatever their heads.
func (t *attention) has(fmha, kv Quant) bool {
	for k := range t.slices {
		if k.FMHA == fmha && k.KVCache == kv {
			return true
		}
	}
	return false
}
