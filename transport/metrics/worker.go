package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"mockbench/engine"
)

// Worker follows the records of one worker: it is an engine.Reader that also takes loads and cancellations. Its methods
// are called by the worker's goroutine.
type Worker struct {
	f           *Families
	o           WorkerOptions
	ranks       []rank
	requests    map[*engine.Request]*progress
	touched     []*engine.Request // with new tokens in the record at hand
	retractions prometheus.Counter
	stalls      prometheus.Counter

	reused, prefilled int // prompt tokens, for the hit rate
}

// rank is the series of one rank. The ranks of an SGLang worker share theirs.
type rank struct {
	running, waiting, hitRate   prometheus.Gauge
	usage                       []prometheus.Gauge
	preemptions, completed      prometheus.Counter
	firstToken, interToken, e2e prometheus.Observer
	load                        engine.Load
}

// progress is what is known of a request that is on its way.
type progress struct {
	last  engine.Time // of the last output
	begun bool        // it has had an output
	fresh int         // tokens in the record at hand
}

// WorkerOptions describe one worker.
type WorkerOptions struct {
	ID        string // instance id in hexadecimal digits
	Ranks     int
	Role      engine.Role // latencies of prefill workers are not shown: their answers go to other workers
	Component string
}

// Worker adds the series of a worker, at zero.
func (f *Families) Worker(o WorkerOptions) *Worker {
	worker := prometheus.Labels{workerLabel: o.ID}
	w := &Worker{f: f, o: o, requests: map[*engine.Request]*progress{},
		retractions: f.retractions.With(worker), stalls: f.stalls.With(worker)}
	for i := range o.Ranks {
		w.ranks = append(w.ranks, f.rank(i, o.ID))
	}
	f.uptime.add(func() float64 { return time.Since(f.start).Seconds() }, o.ID)
	if o.Role != engine.DecodeRole { // records reach the publisher by calls, none is lost on the way
		f.dropped.add(func() float64 { return 0 }, o.ID, o.Component)
	}
	return w
}

func (f *Families) rank(i int, id string) (r rank) {
	e := &f.engine
	gauges, histograms := e.gaugeLabels(i), e.histogramLabels(i)
	if f.o.Workers > 1 {
		gauges[workerLabel], histograms[workerLabel] = id, id
	}
	r.running, r.waiting = e.running.With(gauges), e.waiting.With(gauges)
	for _, u := range e.usage {
		r.usage = append(r.usage, u.With(gauges))
	}
	if e.hitRate != nil {
		r.hitRate = e.hitRate.With(gauges)
	}
	if e.preemptions != nil {
		r.preemptions = e.preemptions.With(histograms)
	}
	if e.completed != nil {
		r.completed = e.completed.With(histograms)
	}
	r.firstToken, r.interToken = e.firstToken.With(histograms), e.interToken.With(histograms)
	r.e2e = e.e2e.With(histograms)
	return r
}

// Slip shows the clock slip of the worker: what value returns at each scrape.
func (w *Worker) Slip(value func() time.Duration) {
	w.f.slip.add(func() float64 { return value().Seconds() }, w.o.ID)
}

// Stalled counts a stall of one of the ranks. It may be called by any goroutine.
func (w *Worker) Stalled() { w.stalls.Inc() }

// Pass implements engine.Reader.
func (w *Worker) Pass(p *engine.Pass) {
	r := &w.ranks[p.Rank]
	for i := range p.Preemptions {
		switch {
		case p.Preemptions[i].Retraction:
			w.retractions.Inc()
		case r.preemptions != nil:
			r.preemptions.Inc()
		}
	}
	if r.hitRate != nil && p.Prefix.Total > 0 {
		w.reused += p.Prefix.Reused
		w.prefilled += p.Prefix.Total
		r.hitRate.Set(float64(w.reused) / float64(w.prefilled))
	}
	if len(p.Outputs) > 0 {
		w.outputs(r, p)
	}
}

func (w *Worker) outputs(r *rank, p *engine.Pass) {
	w.touched = w.touched[:0]
	for i := range p.Outputs {
		if o := &p.Outputs[i]; o.HasToken {
			w.token(o.Request)
		}
	}
	latencies := w.o.Role != engine.PrefillRole
	for _, q := range w.touched {
		s := w.requests[q]
		if latencies {
			s.observe(r, q, p.End)
		}
		s.last, s.begun, s.fresh = p.End, true, 0
	}
	for i := range p.Outputs {
		o := &p.Outputs[i]
		if !o.Completed {
			continue
		}
		delete(w.requests, o.Request)
		if o.Rejected {
			continue
		}
		if latencies {
			r.e2e.Observe(seconds(p.End - o.Request.Arrival))
		}
		if r.completed != nil {
			r.completed.Inc()
		}
	}
}

// token counts a token of the record at hand.
func (w *Worker) token(q *engine.Request) {
	s := w.requests[q]
	if s == nil {
		s = &progress{}
		w.requests[q] = s
	}
	if s.fresh == 0 {
		w.touched = append(w.touched, q)
	}
	s.fresh++
}

// observe takes the latencies of tokens that come out together: the first ones of a request as one first token, later
// ones as if they had come one after the other.
func (s *progress) observe(r *rank, q *engine.Request, now engine.Time) {
	if !s.begun {
		r.firstToken.Observe(seconds(now - q.Arrival))
		return
	}
	gap := seconds(now-s.last) / float64(s.fresh)
	for range s.fresh {
		r.interToken.Observe(gap)
	}
}

// seconds converts a span of simulated time.
func seconds(t engine.Time) float64 { return float64(t) / 1000 }

// Load implements live.LoadReader.
func (w *Worker) Load(rank int, _ engine.Time, l engine.Load) {
	r := &w.ranks[rank]
	if r.load == l {
		return
	}
	r.load = l
	running, waiting := l.Running, l.Waiting
	if w.f.o.Backend == engine.SGLang {
		running, waiting = 0, 0
		for i := range w.ranks {
			running += w.ranks[i].load.Running
			waiting += w.ranks[i].load.Waiting
		}
	}
	r.running.Set(float64(running))
	r.waiting.Set(float64(waiting))
	for _, u := range r.usage {
		u.Set(float64(l.ActiveBlocks) / float64(max(1, l.TotalBlocks)))
	}
}

// Submitted implements live.RequestReader.
func (w *Worker) Submitted(int, *engine.Request, engine.Time) {}

// Cancelled implements live.RequestReader.
func (w *Worker) Cancelled(_ int, r *engine.Request, _ engine.Time) { delete(w.requests, r) }
