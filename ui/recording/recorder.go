package recording

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"mockbench/engine"
	"mockbench/engine/live"
	"mockbench/engine/spawn"
	"mockbench/ui"
	"mockbench/ui/feed"
	"mockbench/ui/knobs"
)

// How often what is recorded, in moments.
const (
	Every      = 100 * time.Millisecond // a moment
	shotsEvery = 2                      // the state of blocks and queues
	restEvery  = 10                     // figures, connections; written to the file
	aloneEvery = 50                     // everything, so that reading can begin here
	treeRows   = 128                    // of a prefix tree
	decisions  = 64                     // placements looked at between two moments
	logLines   = 64
)

// Run is what a recorder asks of a run. Functions that are nil have nothing to tell.
type Run struct {
	Clock   ui.Clock
	Status  func() ui.Status
	Window  func() ui.Window
	Routing ui.Routing
	Sides   func() [2]ui.Side
	Setup   func() knobs.Setup // without its engine
	Log     *ui.Log
}

// Recorder samples a run and writes a recording. It reads the records of passes from feeds of its own, so that it can
// make no worker wait: what it does not fetch in time is dropped and counted.
type Recorder struct {
	run   Run
	w     *Writer
	fleet []*recorded
	count int // moments so far
	last  engine.Time
	now   ui.Moment

	setup    string
	texts    []string // of the knobs, as last seen
	placed   uint64   // number of the newest decision
	logCount uint64
	logBuf   []string

	mu      sync.Mutex // sampling and the end
	stop    chan struct{}
	stopped chan struct{}
	failed  error
}

// Worker is what a recorder asks of a worker.
type Worker interface {
	Name() string
	Ranks() int
	Config() engine.Config
	Inspect(rank int, s *engine.Snapshot) error
	Tree(rank, limit int) (t engine.PrefixTree, ok bool, err error)
	Stalled() []live.Stall
	Slip() time.Duration
}

// Source is one worker and its records, which nobody else reads.
type Source struct {
	Worker Worker
	Feed   *ui.Feed
}

// recorded is one worker of the fleet.
type recorded struct {
	Source
	batch  feed.Batch
	config string
	passes uint64 // when it was last looked at
	shots  []engine.Snapshot
}

// NewRecorder returns a recorder of workers that writes to w.
func NewRecorder(w *Writer, run Run, fleet []Source) *Recorder {
	r := &Recorder{run: run, w: w, last: -1}
	for _, s := range fleet {
		s.Feed.Detail.Store(true)
		r.fleet = append(r.fleet, &recorded{Source: s, shots: make([]engine.Snapshot, s.Worker.Ranks())})
	}
	return r
}

// Start samples ten times a second until Close. failed is called once if writing fails; the run need not end for it.
func (r *Recorder) Start(failed func(error)) {
	r.stop, r.stopped = make(chan struct{}), make(chan struct{})
	spawn.Go("recorder", func() {
		defer close(r.stopped)
		tick := time.NewTicker(Every)
		defer tick.Stop()
		for {
			select {
			case <-r.stop:
				return
			case <-tick.C:
				if err := r.Sample(); err != nil {
					failed(err)
					return
				}
			}
		}
	})
}

// Sample records what has happened since the last call. The first error stays.
func (r *Recorder) Sample() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil {
		r.failed = r.sample(false)
	}
	return r.failed
}

// Close takes the last sample and ends the recording with e, in which it counts what was dropped.
func (r *Recorder) Close(e End) error {
	if r.stop != nil {
		close(r.stop)
		<-r.stopped
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil {
		r.failed = r.sample(true)
	}
	for _, x := range r.fleet {
		e.Dropped += x.batch.Dropped
	}
	if err := r.w.Close(e); r.failed == nil {
		r.failed = err
	}
	return r.failed
}

// Dropped returns how many passes, KV events and moments of requests were missed so far.
func (r *Recorder) Dropped() (n uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range r.fleet {
		n += x.batch.Dropped
	}
	return n
}

// sample records what has happened, at the end with the state of everything.
func (r *Recorder) sample(end bool) error {
	now := r.run.Clock.Now()
	m := &r.now
	*m = ui.Moment{Parts: m.Parts[:0], At: max(now, r.last), Alone: r.count%aloneEvery == 0,
		Speed: r.run.Clock.Speed(), Paused: r.run.Clock.Paused()}
	shots, rest := end || r.count%shotsEvery == 0, end || r.count%restEvery == 0
	still := now == r.last && !m.Alone
	for i, x := range r.fleet {
		r.part(i, x, shots || still, m.Alone)
	}
	m.At = max(r.run.Clock.Now(), m.At) // passes may have ended meanwhile
	if rest {
		r.rest(m)
	}
	r.settings(m)
	r.logged(m)
	if !still {
		r.count++
	}
	if empty := len(m.Parts)+len(m.Notes)+len(m.Log)+len(m.Setup) == 0; empty && (still || !rest) {
		return r.flush(rest)
	}
	r.last = m.At
	if err := r.w.Add(m); err != nil {
		return err
	}
	return r.flush(rest)
}

func (r *Recorder) flush(due bool) error {
	if !due {
		return nil
	}
	return r.w.Flush()
}

// part adds what a worker did to the moment.
func (r *Recorder) part(i int, x *recorded, shots, alone bool) {
	p := ui.Part{Worker: i, Stalls: x.Worker.Stalled(), SlipMS: x.Worker.Slip().Seconds() * 1000}
	before := x.batch.Totals
	x.Feed.Drain(&x.batch)
	b := &x.batch
	changed := alone || b.Totals != before || len(b.Frames)+len(b.Marks)+len(b.Events)+len(p.Stalls) > 0
	p.Batch = *b
	if alone {
		p.Intro = &ui.Intro{Name: x.Worker.Name(), Ranks: x.Worker.Ranks()}
	}
	if config, err := json.Marshal(x.Worker.Config()); err == nil && (alone || string(config) != x.config) {
		p.Config, x.config, changed = config, string(config), true
	}
	if shots && (alone || x.passes != b.Totals.Passes) {
		x.passes = b.Totals.Passes
		x.look(&p, alone)
	}
	if changed || len(p.Shots) > 0 {
		r.now.Parts = append(r.now.Parts, p)
	}
}

// look adds the state of all ranks, and their prefix trees to a moment that stands alone.
func (x *recorded) look(p *ui.Part, alone bool) {
	for rank := range x.shots {
		s := &x.shots[rank]
		if x.Worker.Inspect(rank, s) != nil {
			continue // it has ended
		}
		s.Rank = rank
		p.Shots = append(p.Shots, *s)
		if !alone {
			continue
		}
		if tree, ok, err := x.Worker.Tree(rank, treeRows); err == nil && ok {
			p.HasTree = true
			p.Trees = append(p.Trees, ui.RankTree{Rank: rank, Tree: tree})
		}
	}
}

// rest adds the figures that change slowly.
func (r *Recorder) rest(m *ui.Moment) {
	if r.run.Status != nil {
		s := r.run.Status()
		m.Status = &s
	}
	if r.run.Window != nil {
		w := r.run.Window()
		m.Window = &w
	}
	if r.run.Sides != nil {
		s := r.run.Sides()
		m.Sides = &s
	}
	if r.run.Routing == nil {
		return
	}
	m.Counters = r.run.Routing.Counters(nil)
	list := r.run.Routing.Recent(nil, decisions)
	for i := len(list) - 1; i >= 0; i-- {
		if d := list[i]; m.Alone || d.Number > r.placed {
			m.Decisions = append(m.Decisions, d)
		}
	}
	if len(list) > 0 {
		r.placed = list[0].Number
	}
}

// settings adds the settings of load, placement and limits if they have changed, and says which of all have.
func (r *Recorder) settings(m *ui.Moment) {
	var s knobs.Setup
	if r.run.Setup != nil {
		s = r.run.Setup()
	}
	text, err := json.Marshal(s)
	if err != nil {
		return
	}
	if m.Alone || string(text) != r.setup {
		m.Setup, r.setup = text, string(text)
	}
	if len(r.fleet) == 0 {
		return
	}
	s.Engine = r.fleet[0].Worker.Config()
	list := knobs.List(s)
	texts := make([]string, len(list))
	for i, k := range list {
		texts[i] = k.Name + " " + k.Text(s)
		if len(r.texts) == len(list) && r.texts[i] != texts[i] {
			m.Notes = append(m.Notes, texts[i])
		}
	}
	r.texts = texts
}

// logged adds the lines of the log that are new, and those before them to a moment that stands alone.
func (r *Recorder) logged(m *ui.Moment) {
	if r.run.Log == nil {
		return
	}
	var count uint64
	r.logBuf, count = r.run.Log.Last(r.logBuf[:0], logLines)
	fresh := len(r.logBuf)
	if !m.Alone {
		fresh = int(min(uint64(fresh), count-r.logCount))
	}
	m.Log, r.logCount = r.logBuf[len(r.logBuf)-fresh:], count
}

// Setup returns a setup without its engine, of what there is.
func Setup(load ui.Load, place ui.Router, limits ui.Limits) func() knobs.Setup {
	return func() (s knobs.Setup) {
		if load != nil {
			s.Load, s.HasLoad = load.Options(), true
		}
		if place != nil {
			o := place.Options()
			s.Policy, s.Model, s.HasRouter = o.Policy, o.Model, true
		}
		if limits != nil {
			s.SLO, s.HasSLO = limits.SLO(), true
		}
		return s
	}
}

// Told says in words what a recording cost and missed.
func (r *Recorder) Told() string {
	text := fmt.Sprintf("%d bytes", r.w.Size())
	if n := r.Dropped(); n > 0 {
		text += fmt.Sprintf(", %d passes, KV events and moments of requests missed: they came too fast", n)
	}
	return text
}
