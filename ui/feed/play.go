package feed

import "mockbench/engine"

// Play takes in what another feed collected, as if the passes had just come: frames with the requests that they refer
// to, KV events and marks.
func (f *Feed) Play(frames []Frame, items []Item, events []Event, marks []Mark) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := &f.fill
	for _, x := range frames {
		own := items[x.FirstItem : x.FirstItem+x.Items]
		if len(b.Items)+len(own) > maxItems {
			own = nil
		}
		x.FirstItem, x.Items = int32(len(b.Items)), int32(len(own))
		b.Items = append(b.Items, own...)
		put(b, &b.Frames, &b.frame, MaxFrames, x)
	}
	for _, e := range events {
		put(b, &b.Events, &b.event, maxEvents, e)
	}
	for _, m := range marks {
		b.mark(m)
	}
}

// Set makes the sums and loads those that another feed had.
func (f *Feed) Set(t Totals, dropped uint64, loads []engine.Load) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fill.Totals, f.fill.Dropped = t, dropped
	copy(f.fill.Loads, loads)
}
