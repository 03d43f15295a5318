package goldentest

import (
	"math"

	"mockbench/engine"
)

// deferred returns the requests of a rank that wait for the host tier. The records do not say who leaves the queue for
// that, so the shadow learns it here.
func (r *run) deferred(rank int) (list []string) {
	if r.cfg.HostOffload == nil {
		return nil
	}
	var snapshot engine.Snapshot
	r.group.Rank(rank).Inspect(&snapshot)
	for _, q := range snapshot.Deferred {
		list = append(list, q.Request.Label)
		r.shadows[rank].waiting = remove(r.shadows[rank].waiting, q.Request.Label)
	}
	return list
}

var transferWords = map[engine.TransferKind]string{
	engine.StorePrepared: "store_prepare", engine.StoreStarted: "store_submit", engine.StoreDone: "store_done",
	engine.LoadStarted: "load_queue", engine.LoadDone: "load_done", engine.LoadCancelled: "load_cancel",
	engine.HostEvicted: "evict", engine.StoreRefused: "capacity_retry",
}

// transfers writes down what happened in the host tier.
func (r *run) transfers(list []engine.Transfer) (out []any) {
	for _, t := range list {
		var blocks []any
		for _, h := range t.Blocks {
			blocks = append(blocks, r.label(h))
		}
		f := map[string]any{"ev": transferWords[t.Kind], "at": float64(t.At), "blocks": blocks, "id": t.Request.Label}
		switch t.Kind {
		case engine.StoreRefused:
			f["unfittable"] = t.Unfitting
		case engine.HostEvicted:
		default:
			f["tid"] = t.ID
		}
		if t.Kind == engine.StoreStarted || t.Kind == engine.LoadStarted {
			f["done"] = float64(t.Done)
			if math.IsInf(float64(t.Done), 1) {
				f["done"] = nil
			}
		}
		if t.Kind == engine.LoadStarted {
			f["not_before"] = float64(t.NotBefore)
		}
		out = append(out, f)
	}
	return out
}

// compareOccupancy compares how full a shared host tier is at the end.
func (r *run) compareOccupancy() {
	want := r.c.Expect.PoolOccupancy
	if want == nil {
		return
	}
	var snapshot engine.Snapshot
	r.group.Rank(0).Inspect(&snapshot)
	h := snapshot.Host
	if h.Capacity != want[0] || h.Resident != want[1] || h.Resident+h.Pending != want[2] || !h.Shared {
		r.t.Errorf("host tier %+v, want %v", h, want)
	}
}
