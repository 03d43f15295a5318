package ui

import (
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"mockbench/engine"
	"mockbench/engine/live"
	"mockbench/engine/router"
	"mockbench/engine/workload"
	"mockbench/ui/keys"
	"mockbench/ui/knobs"
)

// errRecorded is the error of everything that a recording cannot do.
var errRecorded = errors.New("a recording cannot be changed, nor asked for what was not recorded")

// player is a recording at one moment. It stands for clock, workers and figures of a run. Update moves it on; commands
// beside the screen read it.
type player struct {
	tape        Tape
	about       About
	first, last engine.Time

	mu      sync.Mutex // guards what follows
	at      engine.Time
	paused  bool
	speed   float64
	workers []*playedWorker
	state   playedState

	reel    []Moment // from the moment that comes next
	part    []taken  // what of its parts has been played
	end     engine.Time
	loading bool
	busy    bool          // another time is being looked for or read
	queue   []keys.Action // keys that wait for that
	turn    int           // counts reels that were asked for anew; answers to earlier ones are out of date
}

// playedState is what a moment says of the whole run.
type playedState struct {
	status    Status
	window    Window
	counters  []router.Counters
	decisions []router.Decision // newest first
	sides     [2]Side
	setup     knobs.Setup
}

// taken counts what of a part has been played.
type taken struct{ frames, events, marks int }

func newPlayer(t Tape) *player {
	p := &player{tape: t, about: t.About(), speed: 1}
	p.first, p.last = t.Span()
	p.at = p.first
	return p
}

// options replaces everything that belongs to a run.
func (p *player) options(o Options) Options {
	o.Fleet, o.Clock, o.ReadOnly = p.sources, p, true
	o.Status = func() Status { return read(p, func() Status { return p.state.status }) }
	o.Load, o.Router, o.Limits, o.Save, o.Drain = nil, nil, nil, nil, nil
	if p.about.Window {
		o.Window = func() Window { return read(p, func() Window { return p.state.window }) }
	}
	if p.about.Routing {
		o.Routing = p
	}
	if p.about.Sides {
		o.Sides = func() [2]Side { return read(p, func() [2]Side { return p.state.sides }) }
	}
	return o
}

// read returns what f reads while nobody changes it.
func read[T any](p *player, f func() T) T {
	p.mu.Lock()
	defer p.mu.Unlock()
	return f()
}

// Now, Pause, Resume, Paused, Speed and SetSpeed make it a Clock.

func (p *player) Now() engine.Time   { return read(p, func() engine.Time { return p.at }) }
func (p *player) Pause()             { p.set(func() { p.paused = true }) }
func (p *player) Resume()            { p.set(func() { p.paused = false }) }
func (p *player) Paused() bool       { return read(p, func() bool { return p.paused }) }
func (p *player) Speed() float64     { return read(p, func() float64 { return p.speed }) }
func (p *player) SetSpeed(x float64) { p.set(func() { p.speed = x }) }

func (p *player) set(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

// Recent returns the newest placements, newest first.
func (p *player) Recent(dst []router.Decision, n int) []router.Decision {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append(dst, p.state.decisions[:min(n, len(p.state.decisions))]...)
}

// Counters returns the figures of each worker.
func (p *player) Counters(dst []router.Counters) []router.Counters {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append(dst, p.state.counters...)
}

func (p *player) sources() []Source {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]Source, len(p.workers))
	for i, w := range p.workers {
		out[i] = Source{w, w.feed}
	}
	return out
}

// rewind begins anew with a reel.
func (p *player) rewind(r Reel) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = playedState{}
	p.workers = make([]*playedWorker, len(p.about.Workers))
	for i, name := range p.about.Workers {
		p.workers[i] = newPlayedWorker(p, name, ranksOf(r.Moments, i))
	}
	p.reel, p.part, p.end = r.Moments, nil, r.End
	if len(p.reel) > 0 {
		p.at = p.reel[0].At
		p.play(p.at)
	}
}

// maxRanks bounds the ranks of a worker that a damaged recording can ask for.
const maxRanks = 1024

func ranksOf(list []Moment, worker int) int {
	if len(list) > 0 {
		for i := range list[0].Parts {
			if x := &list[0].Parts[i]; x.Worker == worker && x.Intro != nil {
				return min(max(x.Intro.Ranks, 1), maxRanks)
			}
		}
	}
	return 1
}

// advance plays on to a time and returns the settings that changed.
func (p *player) advance(to engine.Time) (notes []string, log []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.play(to)
}

func (p *player) play(to engine.Time) (notes, log []string) {
	for len(p.reel) > 0 {
		m := &p.reel[0]
		if p.part == nil {
			p.part = make([]taken, len(m.Parts))
		}
		whole := m.At <= to
		for i := range m.Parts {
			x := &m.Parts[i]
			if x.Worker < len(p.workers) {
				p.workers[x.Worker].play(x, &p.part[i], to, whole)
			}
		}
		if !whole {
			break
		}
		p.state.take(m)
		notes, log = append(notes, m.Notes...), append(log, m.Log...)
		p.reel, p.part = p.reel[1:], nil
	}
	p.at = to
	return notes, log
}

func (s *playedState) take(m *Moment) {
	if m.Status != nil {
		s.status = *m.Status
	}
	if m.Window != nil {
		s.window = *m.Window
	}
	if m.Counters != nil {
		s.counters = m.Counters
	}
	if m.Sides != nil {
		s.sides = *m.Sides
	}
	if m.Setup != nil {
		var setup knobs.Setup
		if json.Unmarshal(m.Setup, &setup) == nil {
			s.setup = setup
		}
	}
	for _, d := range m.Decisions {
		if n := len(s.decisions); n == 0 || d.Number > s.decisions[0].Number {
			s.decisions = slices.Insert(s.decisions[:min(n, recentDecisions-1)], 0, d)
		}
	}
}

// playedWorker is a worker of a recording at one moment.
type playedWorker struct {
	player  *player
	feed    *Feed
	name    string
	config  engine.Config
	shots   []*engine.Snapshot // of each rank, nil before the first
	told    []*engine.Snapshot // the one whose evictions were shown
	trees   []*engine.PrefixTree
	hasTree bool
	stalls  []live.Stall
	slip    time.Duration
}

func newPlayedWorker(p *player, name string, ranks int) *playedWorker {
	return &playedWorker{player: p, feed: NewFeed(ranks), name: name, config: engine.DefaultConfig(engine.VLLM),
		shots: make([]*engine.Snapshot, ranks), told: make([]*engine.Snapshot, ranks),
		trees: make([]*engine.PrefixTree, ranks)}
}

// play hands over what happened until a time, all of it if the moment is over.
func (w *playedWorker) play(x *Part, t *taken, to engine.Time, whole bool) {
	b := &x.Batch
	from := *t
	for t.frames < len(b.Frames) && (whole || b.Frames[t.frames].End <= to) {
		t.frames++
	}
	for t.events < len(b.Events) && (whole || b.Events[t.events].At <= to) {
		t.events++
	}
	for t.marks < len(b.Marks) && (whole || b.Marks[t.marks].At <= to) {
		t.marks++
	}
	w.feed.Play(b.Frames[from.frames:t.frames], b.Items, b.Events[from.events:t.events], b.Marks[from.marks:t.marks])
	if !whole {
		return
	}
	w.feed.Set(b.Totals, b.Dropped, b.Loads)
	w.stalls, w.slip = x.Stalls, time.Duration(x.SlipMS*float64(time.Millisecond))
	if x.Config != nil {
		var c engine.Config
		if json.Unmarshal(x.Config, &c) == nil {
			w.config = c
		}
	}
	for i := range x.Shots {
		if s := &x.Shots[i]; s.Rank >= 0 && s.Rank < len(w.shots) {
			w.shots[s.Rank] = s
		}
	}
	for i := range x.Trees {
		if t := &x.Trees[i]; t.Rank >= 0 && t.Rank < len(w.trees) {
			w.trees[t.Rank], w.hasTree = &t.Tree, x.HasTree
		}
	}
}

// What follows makes it a Worker.

func (w *playedWorker) Name() string { return w.name }
func (w *playedWorker) Ranks() int   { return len(w.shots) }
func (w *playedWorker) Config() engine.Config {
	return read(w.player, func() engine.Config { return w.config })
}

// Inspect returns the latest recorded snapshot.
func (w *playedWorker) Inspect(rank int, s *engine.Snapshot) error {
	w.player.mu.Lock()
	defer w.player.mu.Unlock()
	shot := w.shots[rank]
	if shot == nil {
		return errRecorded
	}
	if *s = *shot; w.told[rank] == shot {
		s.Evictions = nil
	}
	w.told[rank] = shot
	return nil
}

// Tree returns the latest recorded prefix tree.
func (w *playedWorker) Tree(rank, limit int) (t engine.PrefixTree, ok bool, err error) {
	w.player.mu.Lock()
	defer w.player.mu.Unlock()
	if !w.hasTree || w.trees[rank] == nil {
		return t, false, nil
	}
	t = *w.trees[rank]
	t.Nodes = t.Nodes[:min(limit, len(t.Nodes))]
	return t, true, nil
}

func (w *playedWorker) Stalled() []live.Stall {
	return read(w.player, func() []live.Stall { return w.stalls })
}
func (w *playedWorker) Slip() time.Duration {
	return read(w.player, func() time.Duration { return w.slip })
}

func (w *playedWorker) Block(int, int32) (engine.BlockInfo, error) {
	return engine.BlockInfo{}, errRecorded
}
func (w *playedWorker) CancelHead(int) (string, bool)               { return "", false }
func (w *playedWorker) Step()                                       {}
func (w *playedWorker) InFlight() int                               { return 0 }
func (w *playedWorker) Tune(engine.Tuning) (func() error, error)    { return nil, errRecorded }
func (w *playedWorker) Restart(engine.Config) (func() error, error) { return nil, errRecorded }
func (w *playedWorker) Hurry()                                      {}
func (w *playedWorker) Restarting() bool                            { return false }

// playedRun is the settings of load, placement and limits at one moment.
type playedRun struct{ p *player }

func (r playedRun) setup() knobs.Setup {
	return read(r.p, func() knobs.Setup { return r.p.state.setup })
}

type (
	playedLoad   struct{ playedRun }
	playedRouter struct{ playedRun }
	playedLimits struct{ playedRun }
)

func (r playedLoad) Options() workload.Options  { return r.setup().Load }
func (r playedLoad) Set(workload.Options) error { return errRecorded }
func (r playedRouter) Options() router.Options {
	s := r.setup()
	return router.Options{Policy: s.Policy, Model: s.Model}
}
func (r playedRouter) SetPolicy(router.Policy) error { return errRecorded }
func (r playedRouter) SetModel(router.Model) error   { return errRecorded }
func (r playedLimits) SLO() knobs.SLO                { return r.setup().SLO }
func (r playedLimits) SetSLO(knobs.SLO) error        { return errRecorded }
