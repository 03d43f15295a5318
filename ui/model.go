package ui

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/bubbles/textinput"
	tea "github.com/charmbracelet/bubbletea"

	"mockbench/engine"
	"mockbench/engine/router"
	"mockbench/engine/spawn"
	"mockbench/ui/grid"
	"mockbench/ui/theme"
)

// How often the classes of what is shown are brought up to date, per second. Faster than this nobody can read, and the
// bytes sent to the terminal grow with it.
const (
	columnsPerSecond = 5 // new columns of charts
	chartsPerSecond  = 2.5
	tablesPerSecond  = 2
)

// Publisher takes finished frames; *term.Writer is one.
type Publisher interface {
	Publish(g *grid.Grid, full bool)
}

// Model is the state of the screen.
type Model struct {
	o     Options
	theme theme.Theme
	out   Publisher // nil: View returns the text of the frame
	tabs  []tab

	layout layout
	grid   *grid.Grid
	dirty  bool // something shown has changed
	full   bool // the terminal must be cleared
	text   string

	frame      uint64 // ticks so far
	closedCols int    // columns closed
	shownCols  int    // columns the charts show
	clock      engine.Time
	paused     bool
	speed      float64

	workers []*worker // as the fleet lists them
	rows    []*worker // in the order chosen
	sel     *worker   // nil if there is none
	rank    int
	pool    pool
	past    past
	spare   engine.Snapshot
	looking bool // a snapshot is being taken
	polling bool
	stale   bool // something has happened since figures were fetched

	tab      tab
	overview overviewPanel
	blocks   blocksPanel
	host     hostPanel
	batch    batchPanel
	requests requestsPanel
	events   eventsPanel
	knobs    knobsPanel
	marks    []marker
	lives    lives
	stepping *worker // that was asked for a pass
	arrested bool    // simulated time has just come to a stop
	baseline baseline

	status    Status
	window    Window
	decisions []router.Decision
	counters  []router.Counters
	sides     [2]Side // of a comparison
	log       []string
	logCount  uint64

	player *player // nil: a run is shown, not a recording
	help   helpPanel
	filter filter
	notice notice
	drain  drainState
}

// filter is the text that rows must contain.
type filter struct {
	editing bool
	input   textinput.Model
}

// matches reports whether a row is to be shown. A filter that begins with '!' shows the rows without the text.
func (f *filter) matches(text string) bool {
	want, inverse := strings.CutPrefix(f.input.Value(), "!")
	return want == "" || strings.Contains(strings.ToLower(text), strings.ToLower(want)) != inverse
}

// notice is a short message at the bottom that goes away.
type notice struct {
	text  string
	until uint64 // frame
	stays bool   // until another key is pressed
}

// drainState is how the screen ends.
type drainState struct {
	active   bool
	ctx      context.Context
	cancel   context.CancelFunc
	progress chan Draining
	left     *Draining // nil until the drain says something
	reason   error
}

// Messages of the screen.
type (
	// TickMsg starts a new frame.
	TickMsg struct{}
	// SignalMsg asks for a drain because of a signal; a second one ends at once.
	SignalMsg struct{ Signal os.Signal }
	// RedrawMsg asks for the whole screen to be sent again.
	RedrawMsg struct{}

	failedMsg   struct{ err error }
	drainingMsg struct{ left Draining }
	drainedMsg  struct{}
)

// New returns a screen that draws with the theme. Frames go to Attach's publisher, or into the text of View.
func New(o Options, th theme.Theme) *Model {
	o.defaults()
	var p *player
	if o.Tape != nil {
		p = newPlayer(o.Tape)
		o = p.options(o)
	}
	m := &Model{player: p, o: o, theme: th, grid: grid.New(0, 0), tabs: available(&o), speed: o.Clock.Speed()}
	m.o.Model, m.o.Backend = grid.Clean(o.Model), grid.Clean(o.Backend)
	m.filter.input = textinput.New()
	m.events.follow, m.stale = true, true
	m.knobs = newKnobsPanel()
	m.paused = o.Clock.Paused()
	m.setFleet(o.Fleet())
	m.knobs.refresh(m)
	return m
}

// Attach makes frames go to p.
func (m *Model) Attach(p Publisher) { m.out = p }

// Reason returns why the screen ended.
func (m *Model) Reason() error { return m.drain.reason }

// Init starts the clock of the frames.
func (m *Model) Init() tea.Cmd {
	return tea.Batch(m.nextTick(), m.poll())
}

func (m *Model) nextTick() tea.Cmd {
	return tea.Tick(time.Second/time.Duration(m.o.FPS), func(time.Time) tea.Msg { return TickMsg{} })
}

// beside runs f in a goroutine of the terminal library. A panic in it ends the program in order.
func beside(name string, f func() tea.Msg) tea.Cmd {
	return func() tea.Msg {
		defer spawn.Recover(name)
		return f()
	}
}

// every reports whether this frame is one of so many a second.
func (m *Model) every(perSecond float64) bool {
	step := uint64(float64(m.o.FPS)/perSecond + 0.5)
	return step <= 1 || m.frame%step == 0
}

// setFleet brings the list of workers up to date. The selected worker stays selected if it is still there, else the
// one in its place.
func (m *Model) setFleet(fleet []Source) {
	same := len(fleet) == len(m.workers)
	for i := 0; same && i < len(fleet); i++ {
		same = m.workers[i].Worker == fleet[i].Worker
	}
	if same && len(fleet) > 0 {
		return
	}
	next := make([]*worker, 0, len(fleet))
	for _, s := range fleet {
		i := slices.IndexFunc(m.workers, func(w *worker) bool { return w.Worker == s.Worker })
		if i >= 0 {
			next = append(next, m.workers[i])
		} else {
			next = append(next, newWorker(s))
		}
	}
	place := slices.Index(m.rows, m.sel)
	m.workers = next
	m.sortRows()
	if !slices.Contains(m.rows, m.sel) {
		m.sel = nil
		if n := len(m.rows); n > 0 {
			m.sel = m.rows[min(max(place, 0), n-1)]
		}
		m.selectionChanged()
	}
	m.relayout()
}

// selectionChanged forgets what was shown of another worker or rank.
func (m *Model) selectionChanged() {
	m.aimFeeds()
	if m.sel == nil || m.rank >= m.sel.Worker.Ranks() {
		m.rank = 0
	}
	m.pool, m.past = pool{worker: m.sel, rank: m.rank}, past{}
	m.batch.back, m.batch.row, m.requests.cursor, m.host.row, m.blocks.info = 0, 0, 0, 0, blockInfo{}
	m.blocks.prefixes.known, m.blocks.prefixes.row = false, 0
	if m.tab == tabHost {
		m.relayout()
	}
	m.dirty = true
}

// aimFeeds asks the feeds for what is shown: details of the selected worker, and events of all in their panel.
func (m *Model) aimFeeds() {
	for _, w := range m.workers {
		w.Feed.Detail.Store(w == m.sel)
		w.Feed.Events.Store(m.tab == tabEvents)
	}
}

func (m *Model) relayout() {
	host := m.hasHost()
	if m.tab == tabHost {
		host = m.sel != nil && m.sel.config.HostOffload != nil
	}
	m.layout = arrange(m.layout.w, m.layout.h, shape{tab: m.tab, banner: len(m.alarms()), rows: len(m.rows), host: host,
		tree: m.blocks.prefixes.open, sides: m.o.Sides != nil,
		slider: m.player != nil})
	m.blocks.clamp(m)
	m.dirty = true
}

// alarms returns the lines of the banner: one for the ranks that cannot make progress.
func (m *Model) alarms() []string {
	var first string
	n := 0
	for _, w := range m.workers {
		for _, s := range w.stuck() {
			if n == 0 {
				first = stallText(w, s, len(m.workers) > 1)
			}
			n++
		}
	}
	switch {
	case n == 0:
		return nil
	case n > 1:
		first += " (and " + plural(n-1, "more rank") + ")"
	}
	return []string{first}
}

func (m *Model) say(text string) {
	m.notice = notice{text: text, until: m.frame + 3*uint64(m.o.FPS)}
	m.dirty = true
}
