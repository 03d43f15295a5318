package app

import (
	"context"
	"fmt"
	"time"

	"mockbench/engine/live"
)

// stuckAfter is how long nothing may happen in a run with a load before its stalled requests are taken to be its end.
const stuckAfter = 10 * time.Second

// stuck waits until no worker has made a pass for a while although requests are left, and every worker that has any is
// stalled. A load that waits for those would never reach its goal.
func (f *fleet) stuck(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var passes uint64
	since := time.Now()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		now, stall, all := f.standstill()
		if !all || now != passes {
			passes, since = now, time.Now()
		}
		if all && time.Since(since) >= stuckAfter {
			h := stall.Hint
			if stall.Waits() {
				return fmt.Errorf("the load cannot go on: %s rank %d waits for blocks that %d transfers hold, and none of them ends",
					stall.Worker, stall.Rank, h.Handoffs)
			}
			return fmt.Errorf("the load cannot go on: %s rank %d is stalled by request %s, which needs %d where there are %d; raise %s to %d",
				stall.Worker, stall.Rank, label(h.Head), h.Need, h.Have, h.Setting, h.Raise)
		}
	}
}

// standstill returns the passes made so far, a stall, and whether every worker with requests has one.
func (f *fleet) standstill() (passes uint64, stall live.Stall, all bool) {
	busy := false
	for _, w := range f.workers {
		passes += w.Passes()
		if w.InFlight() == 0 {
			continue
		}
		busy = true
		stalls := w.Stalled()
		if len(stalls) == 0 {
			return passes, stall, false
		}
		stall = stalls[0]
	}
	return passes, stall, busy
}
