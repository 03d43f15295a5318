package recording

import (
	"encoding/json"

	"mockbench/engine"
	"mockbench/engine/live"
	"mockbench/engine/router"
	"mockbench/kv"
	"mockbench/ui"
	"mockbench/ui/feed"
)

func (c *coder) json(v *json.RawMessage) { c.raw((*[]byte)(v)) }

// moment is the unit of the format: all that follows are its parts.
func (c *coder) moment(m *ui.Moment) {
	c.bool(&m.Alone)
	if m.Alone {
		c.forget()
	}
	c.time(&m.At)
	c.float(&m.Speed)
	c.bool(&m.Paused)
	list(c, &m.Parts, (*coder).part)
	optional(c, &m.Status, (*coder).status)
	optional(c, &m.Window, (*coder).window)
	list(c, &m.Counters, (*coder).counters)
	list(c, &m.Decisions, (*coder).decision)
	optional(c, &m.Sides, func(c *coder, s *[2]ui.Side) { c.side(&s[0]); c.side(&s[1]) })
	c.json(&m.Setup)
	list(c, &m.Notes, str)
	list(c, &m.Log, str)
}

func (c *coder) part(p *ui.Part) {
	count(c, &p.Worker)
	optional(c, &p.Intro, func(c *coder, i *ui.Intro) {
		c.string(&i.Name)
		count(c, &i.Ranks)
	})
	c.json(&p.Config)
	c.batch(p.Worker, &p.Batch)
	list(c, &p.Stalls, (*coder).stall)
	c.float(&p.SlipMS)
	list(c, &p.Shots, func(c *coder, s *engine.Snapshot) { c.snapshot(p.Worker, s) })
	c.bool(&p.HasTree)
	list(c, &p.Trees, func(c *coder, t *ui.RankTree) {
		count(c, &t.Rank)
		count(c, &t.Tree.All)
		count(c, &t.Tree.Blocks)
		list(c, &t.Tree.Nodes, (*coder).node)
	})
}

func (c *coder) node(n *engine.TreeNode) {
	for _, v := range []*int{&n.Depth, &n.Start, &n.Blocks, &n.Below, &n.Requests, &n.Children} {
		count(c, v)
	}
	c.hash(&n.Hash)
}

func (c *coder) batch(worker int, b *feed.Batch) {
	list(c, &b.Frames, (*coder).frame)
	c.requests(worker, b)
	list(c, &b.Events, (*coder).event)
	list(c, &b.Marks, (*coder).mark)
	c.uvarint(&b.Dropped)
	c.totals(&b.Totals)
	list(c, &b.Loads, (*coder).load)
}

func (c *coder) frame(f *feed.Frame) {
	count(c, &f.Rank)
	c.uvarint(&f.Number)
	c.time(&f.Start)
	c.time(&f.RankEnd)
	c.time(&f.End)
	c.uvarint(&f.Budget)
	for _, v := range []*int32{&f.New, &f.Cached, &f.Decode, &f.Prefills, &f.Chunked, &f.Decodes, &f.Preempted, &f.Items} {
		count(c, v)
	}
}

func (c *coder) event(e *feed.Event) {
	count(c, &e.Rank)
	c.time(&e.At)
	c.uvarint(&e.ID)
	small(c, &e.Kind, int(kv.Removed)+1)
	small(c, &e.Tier, int(kv.HostPinned)+1)
	c.bool(&e.HasParent)
	if e.HasParent {
		c.hash(&e.Parent)
	}
	num(c, &e.Position)
	count(c, &e.Count)
	c.hash(&e.First)
}

func (c *coder) mark(m *feed.Mark) {
	c.label(&m.Label)
	small(c, &m.Kind, int(feed.Cancelled)+1)
	count(c, &m.Rank)
	c.time(&m.At)
	c.time(&m.Until)
	count(c, &m.Tokens)
}

func (c *coder) totals(t *feed.Totals) {
	for _, v := range []*uint64{&t.Passes, &t.Preemptions, &t.Finished, &t.Rejected, &t.New, &t.Cached, &t.Decode,
		&t.OutputTokens, &t.PromptTokens, &t.ReusedTokens, &t.HostTokens, &t.Host.Evicted, &t.Host.Refused,
		&t.Host.Unfitting, &t.Events, &t.Stored, &t.Removed} {
		c.uvarint(v)
	}
	c.float(&t.Budget)
	c.time(&t.Time)
	for _, l := range []*feed.Lane{&t.Host.Stores, &t.Host.Loads} {
		for _, v := range []*uint64{&l.Started, &l.Done, &l.Cancelled, &l.StartedBlocks, &l.DoneBlocks, &l.CancelledBlocks} {
			c.uvarint(v)
		}
		c.float(&l.Wait)
	}
}

func (c *coder) load(l *engine.Load) {
	for _, v := range []*int{&l.ActiveBlocks, &l.InactiveBlocks, &l.TotalBlocks, &l.Running, &l.Waiting} {
		count(c, v)
	}
	c.uvarint(&l.Preemptions)
}

func (c *coder) stall(s *live.Stall) {
	c.string(&s.Worker)
	count(c, &s.Rank)
	c.hint(&s.Hint)
}

func (c *coder) hint(h *engine.Hint) {
	small(c, &h.Kind, int(engine.HintHandoff)+1)
	if h.Kind == engine.HintHandoff {
		count(c, &h.Handoffs)
	}
	count(c, &h.Rounds)
	small(c, &h.Test, int(engine.TestChunk)+1)
	count(c, &h.Need)
	count(c, &h.Have)
	c.string(&h.Setting)
	count(c, &h.Raise)
	optional(c, &h.Head, (*coder).request)
}

func (c *coder) status(s *ui.Status) {
	c.string(&s.Planes)
	count(c, &s.Subscribers)
	c.uvarint(&s.Published)
	c.uvarint(&s.Dropped)
	c.string(&s.LastError)
}

func (c *coder) window(w *ui.Window) {
	c.float(&w.Seconds)
	for _, f := range []*ui.Figures{&w.TTFT, &w.ITL, &w.E2E, &w.Queue} {
		count(c, &f.Count)
		for _, v := range []*float64{&f.P50, &f.P90, &f.P99, &f.SLO, &f.Within, &f.BinWidth} {
			c.float(v)
		}
		list(c, &f.Bins, func(c *coder, v *float64) { c.float(v) })
	}
	count(c, &w.Requests)
	c.float(&w.Goodput)
}

func (c *coder) counters(k *router.Counters) {
	for _, v := range []*uint64{&k.Placed, &k.Admitted, &k.Prompt, &k.Predicted, &k.Reused, &k.Errors} {
		c.uvarint(v)
	}
	for _, v := range []*int{&k.Active, &k.ActiveBlocks, &k.Prefill, &k.Cached, &k.Host} {
		count(c, v)
	}
}

func (c *coder) decision(d *router.Decision) {
	c.uvarint(&d.Number)
	c.label(&d.Label)
	c.string((*string)(&d.Policy))
	for _, v := range []*int{&d.Worker, &d.Rank, &d.PromptTokens, &d.PromptBlocks, &d.Overlap, &d.BestOverlap, &d.Choice} {
		count(c, v)
	}
	list(c, &d.Candidates, (*coder).candidate)
	if d.Choice < 0 || d.Choice >= max(len(d.Candidates), 1) {
		c.fail()
		set(c, &d.Choice, 0)
	}
	c.string(&d.Why)
}

func (c *coder) candidate(k *router.Candidate) {
	for _, v := range []*int{&k.Worker, &k.Rank, &k.OverlapBlocks, &k.CachedTokens, &k.RawTokens, &k.DecodeBlocks} {
		count(c, v)
	}
	for _, v := range []*float64{&k.PrefillBlocks, &k.RequestTerm, &k.Cost} {
		c.float(v)
	}
}

func (c *coder) side(s *ui.Side) {
	c.string((*string)(&s.Policy))
	c.window(&s.Window)
	list(c, &s.Counters, (*coder).counters)
	count(c, &s.Completed)
	count(c, &s.Preemptions)
}
