package recording

import (
	"slices"

	"mockbench/engine"
	"mockbench/ui"
	"mockbench/ui/feed"
)

// detail is how long before the end of a reel the requests in passes are left out, in milliseconds.
const detail = 10_000

// About says what there is to show.
func (r *Recording) About() ui.About {
	h := &r.Header
	return ui.About{Workers: h.Workers, Routing: h.Routing, Window: h.Window, Sides: h.Sides}
}

// Reel returns the moments of at least the time from one to the other.
func (r *Recording) Reel(from, to engine.Time) (ui.Reel, error) {
	first, last := r.segmentAt(from), r.segmentAt(to)
	var out ui.Reel
	for n := first; n <= last; n++ {
		list, err := r.moments(n)
		if err != nil {
			return out, err
		}
		if r.segments[n].last < to-detail {
			withoutItems(list)
		}
		out.Moments = append(out.Moments, list...)
	}
	_, out.End = r.Span()
	if last+1 < len(r.segments) {
		out.End = r.segments[last+1].first
	}
	return out, nil
}

// withoutItems leaves out what takes most memory.
func withoutItems(list []ui.Moment) {
	for i := range list {
		for k := range list[i].Parts {
			b := &list[i].Parts[k].Batch
			b.Items = nil
			for j := range b.Frames {
				b.Frames[j].FirstItem, b.Frames[j].Items = 0, 0
			}
		}
	}
}

// Find returns the time of the next thing of a kind, or of the one before.
func (r *Recording) Find(q ui.Query) (engine.Time, bool, error) {
	step := 1
	if q.Back {
		step = -1
	}
	for n := r.segmentAt(q.From); n >= 0 && n < len(r.segments); n += step {
		if q.Markers && !r.segments[n].has(flagPreempt|flagNote) {
			continue
		}
		list, err := r.moments(n)
		if err != nil {
			return 0, false, err
		}
		if t, ok := nearest(times(list, q), q); ok {
			return t, true, nil
		}
	}
	return 0, false, nil
}

func (s *segment) has(f flags) bool {
	return slices.ContainsFunc(s.blocks, func(b block) bool { return b.flags&f != 0 })
}

// times are when what a query asks for happened.
func times(list []ui.Moment, q ui.Query) (out []engine.Time) {
	for i := range list {
		if q.Markers && len(list[i].Notes) > 0 {
			out = append(out, list[i].At)
		}
		for k := range list[i].Parts {
			p := &list[i].Parts[k]
			for j := range p.Batch.Frames {
				if f := &p.Batch.Frames[j]; wanted(f, p.Worker, q) {
					out = append(out, f.End)
				}
			}
		}
	}
	return out
}

func wanted(f *feed.Frame, worker int, q ui.Query) bool {
	if q.Markers {
		return f.Preempted > 0
	}
	return worker == q.Worker && int(f.Rank) == q.Rank
}

// nearest returns the time that a query asks for.
func nearest(list []engine.Time, q ui.Query) (best engine.Time, ok bool) {
	for _, t := range list {
		if q.Back && t < q.From && (!ok || t > best) || !q.Back && t > q.From && (!ok || t < best) {
			best, ok = t, true
		}
	}
	return best, ok
}
