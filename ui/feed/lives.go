package feed

import "mockbench/engine"

// MarkKind says what happened to a request.
type MarkKind uint8

const (
	Queued     MarkKind = iota // entered the queue of a rank
	Admitted                   // left it; Tokens were found cached
	Chunk                      // Tokens of its prompt were computed, from At to Until
	FirstToken                 // its first token came out
	Preempted                  // lost its blocks; Tokens had been generated
	Held                       // its prompt's KV is complete and waits to be transferred
	Reserved                   // there is room for its KV at the decode worker; Tokens must be transferred
	Done                       // all its tokens came; Tokens is how many
	Rejected                   // was refused for its size
	Cancelled                  // was taken out
)

// Mark is one moment in the life of a request.
type Mark struct {
	Label     string
	Kind      MarkKind
	Rank      int32
	At, Until engine.Time
	Tokens    int
}

// maxMarks bounds the moments of one batch; the oldest give way.
const maxMarks = 4096

func (b *Batch) mark(m Mark) {
	put(b, &b.Marks, &b.oldest, maxMarks, m)
}

// addMarks notes what a pass did to the lives of requests.
func (b *Batch) addMarks(p *engine.Pass) {
	rank := int32(p.Rank)
	for i := range p.Preemptions {
		v := &p.Preemptions[i]
		b.mark(Mark{v.Request.Label, Preempted, rank, p.Start, p.Start, v.GeneratedSoFar})
	}
	for i := range p.Admissions {
		a := &p.Admissions[i]
		b.mark(Mark{a.Request.Label, Admitted, rank, p.Start, p.Start, a.Reused})
	}
	for i := range p.Work {
		if w := &p.Work[i]; w.Prompt > 0 {
			b.mark(Mark{w.Request.Label, Chunk, rank, p.Start, p.RankEnd, w.Prompt})
		}
	}
	for i := range p.Handoffs {
		h := &p.Handoffs[i]
		kind := Held
		if h.Kind == engine.DestinationReserved {
			kind = Reserved
		}
		b.mark(Mark{h.Request.Label, kind, rank, p.End, p.End, h.Tokens})
	}
	for i := range p.Outputs {
		o := &p.Outputs[i]
		if o.Position == 0 {
			b.mark(Mark{o.Request.Label, FirstToken, rank, p.End, p.End, 1})
		}
		if o.Rejected {
			b.mark(Mark{o.Request.Label, Rejected, rank, p.End, p.End, 0})
		} else if o.Completed {
			b.mark(Mark{o.Request.Label, Done, rank, p.End, p.End, int(o.Position) + 1})
		}
	}
}

// Submitted notes a request that enters the queue of a rank.
func (f *Feed) Submitted(rank int, r *engine.Request, now engine.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fill.mark(Mark{r.Label, Queued, int32(rank), r.Arrival, r.Arrival, r.PromptLen()})
}

// Cancelled notes a request that was taken out.
func (f *Feed) Cancelled(rank int, r *engine.Request, now engine.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fill.mark(Mark{r.Label, Cancelled, int32(rank), now, now, 0})
}
