package ui

import (
	"fmt"
	"math"

	tea "github.com/charmbracelet/bubbletea"

	"mockbench/engine"
	"mockbench/ui/grid"
	"mockbench/ui/keys"
	"mockbench/ui/theme"
)

const (
	columnMS    = 1000 / columnsPerSecond // recorded milliseconds a column of the charts, when a recording is played
	historyMS   = historyColumns * columnMS
	jumpMS      = 5000
	lookAheadMS = 5000 // the next part is read when so much of this one is left
	refreshMS   = 1000 / tablesPerSecond
)

// reelMsg is a part of a recording that was read.
type reelMsg struct {
	turn int
	to   engine.Time // to be shown; NaN if the part follows on the one before
	reel Reel
	err  error
}

// foundMsg is the time of what was searched for in a recording.
type foundMsg struct {
	to   engine.Time
	ok   bool
	what string
	err  error
}

// seek shows the recording at another time.
func (m *Model) seek(to engine.Time) tea.Cmd {
	p := m.player
	to = min(max(to, p.first), p.last)
	p.turn++
	p.loading, p.busy = true, true
	turn, tape := p.turn, p.tape
	from := max(to-historyMS, p.first)
	return beside("recording", func() tea.Msg {
		r, err := tape.Reel(from, to)
		return reelMsg{turn, to, r, err}
	})
}

// goTo shows another time: one that lies ahead in what has been read is played to, others are read.
func (m *Model) goTo(to engine.Time) tea.Cmd {
	p := m.player
	if now := p.Now(); p.loading || to < now || to > p.end || to > now+historyMS {
		return m.seek(to)
	}
	m.playTo(to)
	return tea.Batch(m.arrived(), m.nextKey())
}

// arrived fetches what is shown of another time.
func (m *Model) arrived() tea.Cmd {
	m.readClock()
	m.refreshTables()
	m.shownCols, m.stale, m.dirty = m.closedCols, true, true
	m.blocks.prefixes.stale = true
	return tea.Batch(m.look(), m.poll(), m.askTree())
}

func (m *Model) reelRead(msg reelMsg) tea.Cmd {
	p := m.player
	if msg.turn != p.turn {
		return nil // another time was asked for meanwhile
	}
	p.loading, m.dirty = false, true
	if msg.err != nil {
		p.Pause()
		m.say(grid.Clean(msg.err.Error()))
		p.end, p.last = p.Now(), p.Now() // not again and again
		p.busy, p.queue = false, nil
		return nil
	}
	if math.IsNaN(float64(msg.to)) {
		p.append(msg.reel)
		return nil
	}
	m.rewind(msg.reel)
	m.playTo(msg.to)
	return tea.Batch(m.arrived(), m.nextKey())
}

// nextKey does what a key asked for that had to wait.
func (m *Model) nextKey() tea.Cmd {
	p := m.player
	p.busy = false
	if len(p.queue) == 0 {
		return nil
	}
	a := p.queue[0]
	p.queue = p.queue[1:]
	return m.viewKey(a)
}

// append adds a part that follows on what has been read.
func (p *player) append(r Reel) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reel = append(p.reel[:len(p.reel):len(p.reel)], r.Moments...)
	p.end = r.End
}

// rewind forgets all that was shown and begins with the first moment of a reel.
func (m *Model) rewind(r Reel) {
	p := m.player
	p.rewind(r)
	m.lives, m.marks, m.decisions, m.counters, m.window = lives{}, nil, nil, nil, Window{}
	m.takeSettings()
	row, block := m.requests.cursor, m.blocks.cursor
	m.setFleet(p.sources())
	m.requests.cursor, m.blocks.cursor = row, block
	now := p.Now()
	m.closedCols = int(max(now, 0) / columnMS)
	for _, w := range m.workers {
		w.drain()
		m.lives.add(w, w.batch.Marks)
		w.closed = sample{w.totals, now}
		w.samples = ring[sample]{size: rateSamples}
		w.refresh(now)
	}
}

// takeSettings makes the Knobs panel show what there was to set.
func (m *Model) takeSettings() {
	s, run := playedRun{m.player}.setup(), playedRun{m.player}
	m.o.Load, m.o.Router, m.o.Limits = nil, nil, nil
	if s.HasLoad {
		m.o.Load = playedLoad{run}
	}
	if s.HasRouter {
		m.o.Router = playedRouter{run}
	}
	if s.HasSLO {
		m.o.Limits = playedLimits{run}
	}
}

// playTo plays on to a time, column by column.
func (m *Model) playTo(to engine.Time) (changed bool) {
	p := m.player
	if skip := to - 2*historyMS; skip > engine.Time(m.closedCols)*columnMS {
		p.advance(skip)
		m.closedCols = int(skip / columnMS)
	}
	for {
		end := engine.Time(m.closedCols+1) * columnMS
		next := min(to, end)
		notes, log := p.advance(next)
		m.clock = next
		for _, w := range m.workers {
			w.configure()
			changed = w.drain() || changed
			m.lives.add(w, w.batch.Marks)
		}
		for _, text := range notes {
			m.mark(grid.Clean(text))
		}
		m.tell(log)
		if next < end {
			return changed
		}
		for _, w := range m.workers {
			w.closeColumn(m.closedCols, next)
			if int64(next)%refreshMS < columnMS {
				w.refresh(next)
			}
		}
		m.closedCols++
	}
}

// tell adds recorded lines to the log that is shown.
func (m *Model) tell(lines []string) {
	if m.o.Log == nil {
		m.o.Log = &Log{}
	}
	for _, text := range lines {
		fmt.Fprintln(m.o.Log, text)
	}
}

// playTick plays on by one frame.
func (m *Model) playTick() (changed bool, cmd tea.Cmd) {
	p := m.player
	switch {
	case p.busy:
		return false, nil
	case len(m.workers) == 0 && p.end < p.last:
		return false, m.seek(p.first)
	}
	now := p.Now()
	if !p.Paused() {
		to := min(now+engine.Time(1000/float64(m.o.FPS)*p.Speed()), p.end, p.last)
		changed = m.playTo(to)
		if to >= p.last {
			p.Pause()
			m.say("the end of the recording")
		}
		now = to
	}
	if !p.loading && p.end < p.last && p.end-now < engine.Time(lookAheadMS*max(p.Speed(), 1)) {
		p.loading = true
		turn, tape, from, to := p.turn, p.tape, p.end, min(p.end+engine.Time(lookAheadMS*(p.Speed()-1)), p.last)
		cmd = beside("recording", func() tea.Msg {
			r, err := tape.Reel(from, max(from, to))
			return reelMsg{turn, engine.Time(math.NaN()), r, err}
		})
	}
	return changed, cmd
}

// keptKeys is how many keys wait while a recording is read.
const keptKeys = 16

// viewKey does what a key does to a recording. Keys that move wait for those before them.
func (m *Model) viewKey(a keys.Action) tea.Cmd {
	p := m.player
	if p.busy {
		if len(p.queue) < keptKeys {
			p.queue = append(p.queue, a)
		}
		return nil
	}
	switch a {
	case keys.Pause:
		if p.Paused() && p.Now() >= p.last {
			return tea.Batch(m.seek(p.first), func() tea.Msg { p.Resume(); return nil })
		}
		m.pause(!p.Paused())
	case keys.Faster:
		m.setSpeed(p.Speed() * 2)
	case keys.Slower:
		m.setSpeed(p.Speed() / 2)
	case keys.RealSpeed:
		m.setSpeed(1)
	case keys.Step, keys.StepBack:
		p.Pause()
		if m.sel == nil {
			return nil
		}
		q := Query{From: p.Now(), Back: a == keys.StepBack, Worker: m.fleetIndex(m.sel), Rank: m.rank}
		return m.find(q, "pass of "+m.selName())
	case keys.NextMarker, keys.PrevMarker:
		p.Pause()
		return m.find(Query{From: p.Now(), Back: a == keys.PrevMarker, Markers: true}, m.lost().noun+" or changed setting")
	case keys.JumpBack:
		return m.goTo(p.Now() - jumpMS)
	case keys.JumpForward:
		return m.goTo(min(p.Now()+jumpMS, p.last))
	case keys.First:
		return m.goTo(p.first)
	case keys.Last:
		return m.goTo(p.last)
	}
	return nil
}

// fleetIndex returns the place of a worker in the fleet.
func (m *Model) fleetIndex(w *worker) int {
	for i := range m.workers {
		if m.workers[i] == w {
			return i
		}
	}
	return -1
}

// find searches the recording beside the screen.
func (m *Model) find(q Query, what string) tea.Cmd {
	tape := m.player.tape
	m.player.busy = true
	return beside("recording", func() tea.Msg {
		t, ok, err := tape.Find(q)
		if q.Back {
			what = "earlier " + what
		} else {
			what = "later " + what
		}
		return foundMsg{t, ok, what, err}
	})
}

func (m *Model) found(msg foundMsg) tea.Cmd {
	m.dirty = true
	switch {
	case msg.err != nil:
		m.say(grid.Clean(msg.err.Error()))
	case !msg.ok:
		m.say("there is no " + msg.what)
	default:
		return m.goTo(msg.to)
	}
	return m.nextKey()
}

// drawSlider draws where in the recording the screen is.
func (m *Model) drawSlider(a grid.Area) {
	p := m.player
	now := p.Now()
	word := ">"
	if p.Paused() {
		word = "="
	}
	if p.busy {
		word = "~"
	}
	left := fmt.Sprintf(" %s %s.%03d ", word, clockText(now), int64(max(now, 0))%1000)
	right := " " + clockText(p.last) + " "
	x := a.Text(0, 0, left, theme.Bold)
	room := a.W() - x - len(right)
	at := m.sliderAt(now, room)
	for i := range room {
		switch {
		case i == at:
			a.Set(x+i, 0, '|', theme.Cursor)
		case i < at:
			a.Set(x+i, 0, m.theme.Glyphs.Full, theme.InkActive)
		default:
			a.Set(x+i, 0, m.theme.Glyphs.Rest, theme.InkFree)
		}
	}
	a.Text(x+room, 0, right, theme.Dim)
}

// sliderStart is the column at which the slider begins.
const sliderStart = 16

// sliderAt returns the column of a time on a slider of so many.
func (m *Model) sliderAt(t engine.Time, width int) int {
	p := m.player
	if p.last <= p.first || width < 2 {
		return 0
	}
	return int(math.Round(float64((t-p.first)/(p.last-p.first)) * float64(width-1)))
}

// slide shows the time at a column of the slider.
func (m *Model) slide(x int) tea.Cmd {
	p := m.player
	width := m.layout.rect[boxSlider].W - sliderStart - 10
	if x -= sliderStart; width < 2 {
		return nil
	}
	share := float64(min(max(x, 0), width-1)) / float64(width-1)
	return m.goTo(p.first + engine.Time(share)*(p.last-p.first))
}
