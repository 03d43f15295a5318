package report

import (
	"sync"

	"mockbench/engine"
)

// meter reads the records of one worker. Its lock is held for the length of one record or one look.
type meter struct {
	mu       sync.Mutex
	limits   Limits
	requests map[*engine.Request]*progress // submitted and not ended
	told     bool                          // the driver says what is submitted, so records name nothing new
	unused   []*progress
	resuming int // requests that recompute what they lost

	total   ledger
	gap     float64     // latest gap between two tokens of a request
	gaps    uint64      // how often it came in a row; not in the distributions yet
	at      engine.Time // up to where occupancy is summed
	loads   []engine.Load
	columns series
	recent  struct{ ttft, itl, e2e, queue recent }
	ended   endedRing
}

// progress is how far a request is.
type progress struct {
	arrival, admitted, first, last engine.Time
	tokens                         int
	firstReused, maxReused         int
	queued                         bool // until its first admission
	resuming                       bool // between a re-admission and the next output
}

// Submitted notes a request that entered the queue of a rank.
func (m *meter) Submitted(_ int, r *engine.Request, _ engine.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told = true
	m.begin(r)
}

// Cancelled notes a request that left its rank before its end.
func (m *meter) Cancelled(_ int, r *engine.Request, _ engine.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if q := m.requests[r]; q != nil {
		m.total.cancelled++
		m.forget(r, q)
	}
}

// find returns the progress of a request that a record names. One that was cancelled in the course of the pass is in the
// record all the same: it has none any more, and nil is returned.
func (m *meter) find(r *engine.Request) *progress {
	if q := m.requests[r]; q != nil || m.told {
		return q
	}
	return m.begin(r)
}

// begin notes a request.
func (m *meter) begin(r *engine.Request) *progress {
	var q *progress
	if n := len(m.unused); n > 0 {
		q, m.unused = m.unused[n-1], m.unused[:n-1]
	} else {
		q = new(progress)
	}
	*q = progress{arrival: r.Arrival, queued: true}
	m.requests[r] = q
	m.total.submitted++
	return q
}

func (m *meter) forget(r *engine.Request, q *progress) {
	m.resumed(q)
	delete(m.requests, r)
	m.unused = append(m.unused, q)
}

// resumed notes that a request has caught up with where it was before its preemption, or will not.
func (m *meter) resumed(q *progress) {
	if q.resuming {
		q.resuming = false
		m.resuming--
	}
}

// Pass takes in a record.
func (m *meter) Pass(p *engine.Pass) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advance(p.End)
	c := m.columns.last()
	for i := range p.Admissions {
		m.admit(c, p, &p.Admissions[i])
	}
	if m.resuming > 0 {
		m.recompute(p)
	}
	for i := range p.Preemptions {
		m.total.preemptions++
		if p.Preemptions[i].Retraction {
			m.total.retractions++
		}
		if q := m.find(p.Preemptions[i].Request); q != nil {
			m.resumed(q)
		}
	}
	for i := range p.Outputs {
		m.output(c, p.End, &p.Outputs[i])
	}
	m.flush()
	if len(p.Work) > 0 || len(p.Outputs) > 0 {
		m.total.passes++
	}
	m.total.committed += uint64(p.FPM.PrefillTokens)
	m.total.drafts.Accepted += p.Drafts.Accepted
	m.total.drafts.Forwards += p.Drafts.Forwards
	m.transfers(p.Transfers)
	c.Prefill += p.FPM.PrefillTokens
	c.Preemptions += len(p.Preemptions)
	m.load(c, p)
}

// transfers counts the blocks copied between device and host.
func (m *meter) transfers(all []engine.Transfer) {
	for i := range all {
		switch n := uint64(len(all[i].Blocks)); all[i].Kind {
		case engine.StoreDone:
			m.total.hostStored += n
		case engine.LoadDone:
			m.total.hostLoaded += n
		}
	}
}

// load takes over the load of a rank.
func (m *meter) load(c *Column, p *engine.Pass) {
	for len(m.loads) <= p.Rank {
		m.loads = append(m.loads, engine.Load{})
	}
	m.loads[p.Rank] = p.Load
	c.Active, c.Blocks, c.Running, c.Waiting = 0, 0, 0, 0
	for i := range m.loads {
		l := &m.loads[i]
		c.Active += l.ActiveBlocks
		c.Blocks += l.TotalBlocks
		c.Running += l.Running
		c.Waiting += l.Waiting
	}
	m.total.blocks = c.Blocks
	m.total.peak = max(m.total.peak, c.Active)
}

func (m *meter) occupied() (active, blocks int) {
	for i := range m.loads {
		active += m.loads[i].ActiveBlocks
		blocks += m.loads[i].TotalBlocks
	}
	return active, blocks
}

// advance lets time pass. Until the next record the blocks stay as they are.
func (m *meter) advance(now engine.Time) {
	if now > m.at {
		active, blocks := m.occupied()
		m.total.activeTime += float64(active) * float64(now-m.at)
		m.total.blockTime += float64(blocks) * float64(now-m.at)
		m.at = now
	}
	m.columns.advance(now)
	m.recent.ttft.advance(now)
	m.recent.itl.advance(now)
	m.recent.e2e.advance(now)
	m.recent.queue.advance(now)
}

func (m *meter) admit(c *Column, p *engine.Pass, a *engine.Admission) {
	q := m.find(a.Request)
	if q == nil {
		return
	}
	q.maxReused = max(q.maxReused, a.Reused)
	if q.queued {
		q.queued = false
		q.admitted, q.firstReused = p.Start, a.Reused
		m.recent.queue.add(since(q.admitted, q.arrival), 1)
		c.Prompt += a.Request.PromptLen()
		c.Reused += a.Reused
	}
	if !a.First && !q.resuming {
		q.resuming = true
		m.resuming++
	}
}

// recompute counts what requests compute again after a preemption.
func (m *meter) recompute(p *engine.Pass) {
	for i := range p.Work {
		if q := m.requests[p.Work[i].Request]; q != nil && q.resuming {
			m.total.recomputed += uint64(p.Work[i].Tokens)
		}
	}
}

func (m *meter) output(c *Column, now engine.Time, o *engine.Output) {
	q := m.find(o.Request)
	if q == nil {
		return
	}
	if q.resuming {
		m.resumed(q)
	}
	if o.HasToken {
		if q.tokens == 0 {
			q.first = now
			ttft := since(now, q.arrival)
			m.recent.ttft.add(ttft, 1)
			c.MaxTTFT = max(c.MaxTTFT, float32(ttft))
		} else {
			m.measure(c, float64(now-q.last))
		}
		q.last = now
		q.tokens++
		m.total.emitted++
		c.Output++
	}
	switch {
	case o.Rejected:
		m.total.rejected++
		m.forget(o.Request, q)
	case o.Completed:
		m.finish(q, o.Request.PromptLen())
		c.Finished++
		m.forget(o.Request, q)
	}
}

// measure takes in a gap between two tokens. Most gaps of a pass are equal, so they are counted first.
func (m *meter) measure(c *Column, gap float64) {
	if gap != m.gap || m.gaps == 0 {
		m.flush()
		m.gap = gap
		c.MaxITL = max(c.MaxITL, float32(gap))
	}
	m.gaps++
}

// flush takes the counted gaps into the distributions.
func (m *meter) flush() {
	if m.gaps == 0 {
		return
	}
	m.total.itl.add(m.gap, m.gaps)
	m.recent.itl.add(m.gap, uint32(m.gaps))
	if m.limits.ITL > 0 && m.gap <= m.limits.ITL {
		m.total.keptITL += m.gaps
	}
	m.gaps = 0
}

// finish takes in a completed request.
func (m *meter) finish(q *progress, prompt int) {
	t := &m.total
	t.completed++
	t.input += uint64(prompt)
	t.output += uint64(q.tokens)
	t.reusedFirst += uint64(q.firstReused)
	t.reusedMax += uint64(q.maxReused)
	if !q.queued {
		t.queue.add(since(q.admitted, q.arrival))
	}
	if q.tokens == 0 {
		return
	}
	ttft, e2e, tpot := since(q.first, q.arrival), since(q.last, q.arrival), 0.0
	t.ttft.add(ttft)
	t.e2e.add(e2e)
	m.recent.e2e.add(e2e, 1)
	if q.tokens > 1 {
		tpot = float64(q.last-q.first) / float64(q.tokens-1)
		t.tpot.add(tpot)
	}
	done := ended{q.last, ttft, tpot, e2e}
	m.ended.add(done)
	if m.limits.TTFT == 0 || ttft <= m.limits.TTFT {
		t.keptTTFT++
	}
	if done.keeps(m.limits) {
		t.good++
		t.goodOutput += uint64(q.tokens)
	}
}

// since returns milliseconds, never less than 0.
func since(t, start engine.Time) float64 { return max(0, float64(t-start)) }
