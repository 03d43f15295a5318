package report

import (
	"time"

	"mockbench/engine"
)

// Options configure a Collector.
type Options struct {
	Workers []string // names, in the order of their numbers
	Limits  Limits
	Start   engine.Time   // simulated time at which the run begins
	Roles   []engine.Role // of the workers, if each request visits a prefill and a decode worker; else nil
}

// Collector makes figures of the pass records of some workers. It is safe for concurrent use.
type Collector struct {
	o       Options
	workers []*meter
	split   *split // nil unless requests visit two workers
}

// NewCollector returns a collector that has seen nothing yet.
func NewCollector(o Options) *Collector {
	c := &Collector{o: o}
	for range o.Workers {
		c.workers = append(c.workers, newMeter(o))
	}
	if o.Roles != nil {
		c.split = newSplit(o)
	}
	return c
}

func newMeter(o Options) *meter {
	return &meter{limits: o.Limits, requests: map[*engine.Request]*progress{}, at: o.Start}
}

// Reader returns the reader of one worker's records. It also takes word of submitted and cancelled requests (methods
// Submitted and Cancelled, called by the worker's driver): without it a request counts as submitted when a record first
// names it, and a cancelled one as unfinished. If requests visit two workers, both must tell, and Activated too.
func (c *Collector) Reader(worker int) engine.Reader {
	if c.split != nil {
		return &leg{c.workers[worker], c.split, c.o.Roles[worker]}
	}
	return c.workers[worker]
}

// Stalled counts a stall of a worker.
func (c *Collector) Stalled(worker int) {
	m := c.workers[worker]
	m.mu.Lock()
	defer m.mu.Unlock()
	m.total.stalls++
}

// Final is what a report needs that is not in the records.
type Final struct {
	Now         engine.Time     // simulated end of the run
	Wall        time.Duration   // length of the run
	Slip        []time.Duration // clock slip of each worker; nil if there was no wall clock
	Generator   string
	Mode        string
	Interrupted bool
	Notes       []string
}

// Report returns the figures of the run so far.
func (c *Collector) Report(f Final) Report {
	r := Report{SchemaVersion: SchemaVersion, Generator: f.Generator, Mode: f.Mode, Interrupted: f.Interrupted,
		Notes: append([]string{}, f.Notes...), Workers: []Worker{}}
	all := c.total(f, func(i int, one *ledger) {
		r.Workers = append(r.Workers, Worker{c.o.Workers[i], one.figures(c.o, f)})
	})
	r.Summary = all.figures(c.o, f)
	if c.split != nil {
		r.Summary.Parts = c.split.stats()
	}
	return r
}

// total returns the sums of all workers, and shows those of each on the way.
func (c *Collector) total(f Final, each func(worker int, one *ledger)) (all ledger) {
	for i, m := range c.workers {
		one := m.ledger(f.Now)
		if i < len(f.Slip) {
			one.slip = f.Slip[i]
		}
		each(i, &one)
		all.mergeWork(&one)
		if c.split == nil {
			all.mergeRequests(&one)
		}
	}
	if c.split != nil {
		whole := c.split.whole.ledger(f.Now)
		all.mergeRequests(&whole)
	}
	return all
}

// Counts are the requests of a worker at a moment.
type Counts struct {
	Submitted, Completed, Rejected, Cancelled, Unfinished int
	Preemptions, Stalls                                   int
	Active, Blocks                                        int // KV blocks, now
}

// Counts returns the counts of one worker or of All.
func (c *Collector) Counts(worker int) (sum Counts) {
	for i, m := range c.workers {
		if worker != All && worker != i {
			continue
		}
		m.mu.Lock()
		t := &m.total
		if worker != All || c.split == nil {
			sum.requests(m)
		}
		sum.Preemptions += t.preemptions
		sum.Stalls += t.stalls
		active, blocks := m.occupied()
		sum.Active += active
		sum.Blocks += blocks
		m.mu.Unlock()
	}
	if worker == All && c.split != nil {
		m := c.split.whole
		m.mu.Lock()
		sum.requests(m)
		m.mu.Unlock()
	}
	return sum
}

// requests adds what became of the requests of a meter, which is locked.
func (c *Counts) requests(m *meter) {
	c.Submitted += m.total.submitted
	c.Completed += m.total.completed
	c.Rejected += m.total.rejected
	c.Cancelled += m.total.cancelled
	c.Unfinished += len(m.requests)
}
