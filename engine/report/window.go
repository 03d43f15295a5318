package report

import "mockbench/engine"

// Column is what happened in one fifth of a simulated second.
type Column struct {
	Prefill     int // tokens computed by prefills
	Output      int // tokens
	Finished    int // requests
	Preemptions int
	Prompt      int     // prompt tokens of first admissions
	Reused      int     // of those, tokens found in the cache
	MaxTTFT     float32 // milliseconds; 0 if there was no first token
	MaxITL      float32 // milliseconds; 0 if there was no gap

	// State at the end of the column.
	Active, Blocks   int // KV blocks
	Running, Waiting int // requests
}

// merge adds a column of another worker.
func (c *Column) merge(o *Column) {
	c.Prefill += o.Prefill
	c.Output += o.Output
	c.Finished += o.Finished
	c.Preemptions += o.Preemptions
	c.Prompt += o.Prompt
	c.Reused += o.Reused
	c.MaxTTFT, c.MaxITL = max(c.MaxTTFT, o.MaxTTFT), max(c.MaxITL, o.MaxITL)
	c.Active += o.Active
	c.Blocks += o.Blocks
	c.Running += o.Running
	c.Waiting += o.Waiting
}

// work returns the part of a column that is not about requests.
func (c *Column) work() Column {
	return Column{Prefill: c.Prefill, Preemptions: c.Preemptions, Active: c.Active, Blocks: c.Blocks, Running: c.Running, Waiting: c.Waiting}
}

// series is a ring of columns that ends at the newest time it was advanced to.
type series struct {
	ring   []Column // by column number modulo columnCount; nil until something happens
	newest int64
}

// advance opens the columns up to a time; they begin with the state of the one before.
func (s *series) advance(now engine.Time) {
	number := int64(now / columnSpan)
	if s.ring == nil {
		s.newest = number
		return
	}
	for i := int64(0); s.newest < number && i < columnCount; i++ {
		last := s.ring[s.newest%columnCount]
		s.newest++
		s.ring[s.newest%columnCount] = Column{Active: last.Active, Blocks: last.Blocks, Running: last.Running, Waiting: last.Waiting}
	}
	s.newest = max(s.newest, number)
}

// last returns the newest column.
func (s *series) last() *Column {
	if s.ring == nil {
		s.ring = make([]Column, columnCount)
	}
	return &s.ring[s.newest%columnCount]
}

// Window is the recent past of a worker or of all. It is filled by Collector.Window and can be filled again.
type Window struct {
	Seconds float64 // simulated, that the histograms cover: between 27 and 30 once the run is as old

	TTFT, ITL, E2E, Queue Histogram // milliseconds, as they happened

	Columns []Column // oldest first; the newest is not over yet
}

// Rates are the figures of some seconds of a Window.
type Rates struct {
	Seconds                                float64 // that they cover; 0 if there are none, then all is 0
	Prefill, Output, Requests, Preemptions float64 // a simulated second
	HitRate                                float64 // of first admissions
	Admitted                               bool    // there were admissions, HitRate means something
}

// Rates returns figures of the newest complete columns, at most so many seconds.
func (w *Window) Rates(seconds float64) Rates {
	n := min(int(seconds*1000/columnSpan), len(w.Columns)-1)
	if n <= 0 {
		return Rates{}
	}
	var sum Column
	for i := range n {
		sum.merge(&w.Columns[len(w.Columns)-2-i])
	}
	r := Rates{Seconds: float64(n) * columnSpan / 1000, Admitted: sum.Prompt > 0}
	r.Prefill, r.Output = float64(sum.Prefill)/r.Seconds, float64(sum.Output)/r.Seconds
	r.Requests, r.Preemptions = float64(sum.Finished)/r.Seconds, float64(sum.Preemptions)/r.Seconds
	if r.Admitted {
		r.HitRate = float64(sum.Reused) / float64(sum.Prompt)
	}
	return r
}

// All stands for all workers where one can be chosen.
const All = -1

// Window fills w with the recent past of one worker, or of All, at a simulated time: the histograms of the last 30
// seconds and the latest columns, at most as many as asked for and as there were since the start.
func (c *Collector) Window(w *Window, worker int, now engine.Time, columns int) {
	elapsed := max(0, int64(now/columnSpan)-int64(c.o.Start/columnSpan)+1)
	n := int(min(int64(columns), columnCount, elapsed))
	*w = Window{Columns: append(w.Columns[:0], make([]Column, n)...),
		Seconds: min(float64(now-c.o.Start), windowSpan-slotSpan+float64(now-slotSpan*engine.Time(int64(now/slotSpan)))) / 1000}
	whole := worker != All || c.split == nil
	for i, m := range c.workers {
		if worker == All || worker == i {
			m.window(w, now, whole)
		}
	}
	if !whole {
		c.split.whole.window(w, now, true)
	}
}

// window adds a worker's share; without requests only that of its work.
func (m *meter) window(w *Window, now engine.Time, requests bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.flush()
	m.advance(now)
	if requests {
		m.recent.ttft.addTo(&w.TTFT)
		m.recent.itl.addTo(&w.ITL)
		m.recent.e2e.addTo(&w.E2E)
		m.recent.queue.addTo(&w.Queue)
	}
	if m.columns.ring == nil {
		return
	}
	// A worker may be ahead of the time asked for: it is stepped, or just ended a pass.
	end := min(int64(now/columnSpan), m.columns.newest)
	for i := range w.Columns {
		number := end - int64(len(w.Columns)-1-i)
		if number >= 0 && number > m.columns.newest-columnCount {
			c := m.columns.ring[number%columnCount]
			if !requests {
				c = c.work()
			}
			w.Columns[i].merge(&c)
		}
	}
}
