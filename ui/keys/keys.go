// Package keys is the one table of the screen's keys: the screen looks its actions up here, and the help and the
// documents are made from it.
package keys

import (
	"cmp"
	"fmt"
	"math/bits"
	"strings"
)

// Action is what a key asks for.
type Action int

const (
	None Action = iota
	Quit
	Help
	Pause
	Step
	Faster
	Slower
	RealSpeed
	NextPanel
	PrevPanel
	Panel // the digit says which
	NextWorker
	PrevWorker
	Rank
	Up
	Down
	Left
	Right
	PageUp
	PageDown
	Home
	End
	Enter
	Back
	Order
	Lens
	Filter
	Freeze
	Tree
	CancelHead
	Suspend
	Redraw
	More
	Less
	Edit
	Reset
	ResetAll
	RestartWorkers
	Save
	Baseline
	SecondPolicy
	Ended
	Export
	StepBack
	JumpBack
	JumpForward
	NextMarker
	PrevMarker
	First
	Last
)

// Where says in which panels a key acts.
type Where uint16

const (
	Overview Where = 1 << iota
	Blocks
	Host
	Batch
	Requests
	Routing
	Latency
	Events
	Knobs

	Everywhere Where = 1<<iota - 1
)

// Binding is one row of the table.
type Binding struct {
	Action  Action
	Keys    []string // as the terminal library names them; the first is shown
	Hint    string   // the key in the line at the bottom, if it is not the first one
	Short   string   // for the line at the bottom; empty: not shown there
	Long    string   // for the help
	Where   Where
	Changes bool // acts on the run: off when the screen is read-only
}

// Table lists all keys in the order of the help.
var Table = []Binding{
	{Pause, []string{" "}, "space", "pause", "pause or resume simulated time", Everywhere, true},
	{Step, []string{"."}, "", "step", "pause, then run one pass of the selected worker", Everywhere, true},
	{Faster, []string{"+", "="}, "", "", "double the speed of simulated time", Everywhere &^ Knobs, true},
	{Slower, []string{"-", "_"}, "+/-", "speed", "halve the speed of simulated time", Everywhere &^ Knobs, true},
	{RealSpeed, []string{"0"}, "", "", "speed 1", Everywhere, true},
	{Baseline, []string{"b"}, "", "baseline", "compare with the figures of this moment, or no more", Everywhere, false},
	{CancelHead, []string{"X"}, "", "cancel head", "cancel the request on which a rank stalls", Everywhere, true},

	{Panel, []string{"1", "2", "3", "4", "5", "6", "7", "8", "9"}, "", "", "go to a panel", Everywhere, false},
	{NextPanel, []string{"tab", "shift+right", "ctrl+right"}, "", "", "next panel", Everywhere, false},
	{PrevPanel, []string{"shift+tab", "shift+left", "ctrl+left"}, "", "", "previous panel", Everywhere, false},
	{PrevWorker, []string{"["}, "", "", "previous worker", Everywhere, false},
	{NextWorker, []string{"]"}, "", "", "next worker", Everywhere, false},
	{Rank, []string{"r"}, "", "", "next data-parallel rank of the worker", Overview | Blocks | Host | Batch | Requests, false},

	{Up, []string{"up", "k"}, "", "", "up: worker, cell or row", Everywhere, false},
	{Down, []string{"down", "j"}, "", "", "down", Everywhere, false},
	{Left, []string{"left", "h"}, "", "", "left: cell, or an earlier pass", Blocks | Batch, false},
	{Right, []string{"right", "l"}, "", "", "right: cell, or a later pass", Blocks | Batch, false},
	{PageUp, []string{"pgup", "ctrl+u"}, "", "", "a page up", Everywhere, false},
	{PageDown, []string{"pgdown", "ctrl+d"}, "", "", "a page down", Everywhere, false},
	{Home, []string{"home", "g"}, "", "", "to the first one", Everywhere, false},
	{End, []string{"end", "G"}, "", "", "to the last one; in Batch back to the present", Everywhere, false},

	{Order, []string{"o"}, "", "order", "order of the rows", Overview | Requests, false},
	{Enter, []string{"enter"}, "", "zoom", "one block a cell, or the whole pool", Blocks, false},
	{Lens, []string{"f"}, "", "lens", "show one state: each cell in tenths of its blocks", Blocks, false},
	{Tree, []string{"t"}, "", "tree", "prefix tree, or the map again", Blocks, false},
	{Edit, []string{"enter"}, "", "edit", "type a value; enter applies it, esc leaves it", Knobs, true},
	{More, []string{"+", "=", "right", "l"}, "", "", "next value", Knobs, true},
	{Less, []string{"-", "_", "left", "h"}, "+/-", "change", "previous value", Knobs, true},
	{RestartWorkers, []string{"R"}, "", "restart", "restart workers where a setting needs it; again: cut", Knobs, true},
	{Reset, []string{"u"}, "", "undo", "the value at the start again", Knobs, true},
	{ResetAll, []string{"U"}, "", "", "all values at the start again", Knobs, true},
	{Ended, []string{"e"}, "", "ended", "requests that have ended, or those there are now", Requests, false},
	{SecondPolicy, []string{"a"}, "", "B's policy", "another placement policy for the second fleet", Routing, true},
	{Freeze, []string{"f"}, "", "freeze", "stop or follow the list", Events, false},
	{Filter, []string{"/"}, "", "filter", "only rows that contain a text; ! in front inverts", Requests | Events, false},
	{Back, []string{"esc"}, "", "", "close, unzoom, clear the filter, back to the present", Everywhere, false},

	{Save, []string{"s"}, "", "save", "save the settings as a profile", Everywhere, false},
	{Export, []string{"x"}, "", "export", "write this panel and the report to files", Everywhere, false},
	{Help, []string{"?"}, "", "help", "this help", Everywhere, false},
	{Redraw, []string{"ctrl+l"}, "", "", "draw the screen anew", Everywhere, false},
	{Suspend, []string{"ctrl+z"}, "", "", "put the program to sleep; simulated time stops", Everywhere, false},
	{Quit, []string{"q", "ctrl+c"}, "", "quit", "drain and quit; again: quit at once", Everywhere, false},
}

// Tape lists the keys that move through a recording, in all panels. They go before those of Table.
var Tape = []Binding{
	{Pause, []string{" "}, "space", "play", "play or pause", Everywhere, false},
	{Step, []string{"."}, ",/.", "pass", "to the end of the next pass of the selected worker", Everywhere, false},
	{StepBack, []string{","}, "", "", "to the end of the pass before", Everywhere, false},
	{JumpForward, []string{">"}, "</>", "5 s", "5 seconds on", Everywhere, false},
	{JumpBack, []string{"<"}, "", "", "5 seconds back", Everywhere, false},
	{NextMarker, []string{"n"}, "n/N", "marker", "to the next preemption or changed setting", Everywhere, false},
	{PrevMarker, []string{"N"}, "", "", "to the one before", Everywhere, false},
	{First, []string{"^"}, "^/$", "ends", "to the beginning of the recording", Everywhere, false},
	{Last, []string{"$"}, "", "", "to its end", Everywhere, false},
	{Faster, []string{"+", "="}, "", "", "double the speed", Everywhere, false},
	{Slower, []string{"-", "_"}, "+/-", "speed", "halve the speed", Everywhere, false},
	{RealSpeed, []string{"0"}, "", "", "speed 1", Everywhere, false},
}

// FindTape returns the binding of a key in a recording.
func FindTape(key string) (Binding, bool) { return find(Tape, key, Everywhere) }

// common reports whether a key acts in most panels, so that it need not be told which.
func (b Binding) common() bool {
	return bits.OnesCount16(uint16(b.Where)) >= bits.OnesCount16(uint16(Everywhere))-1
}

// In returns the keys that act in a panel and not in most others; those of most panels for 0.
func In(panel Where) (list []Binding) {
	for _, b := range Table {
		if panel == 0 && b.common() || b.Where&panel != 0 && !b.common() {
			list = append(list, b)
		}
	}
	return list
}

// Find returns the binding of a key in a panel.
func Find(key string, panel Where) (Binding, bool) { return find(Table, key, panel) }

func find(table []Binding, key string, panel Where) (Binding, bool) {
	for _, b := range table {
		if b.Where&panel == 0 {
			continue
		}
		for _, k := range b.Keys {
			if k == key {
				return b, true
			}
		}
	}
	return Binding{}, false
}

// Name returns the key as the line at the bottom shows it.
func (b Binding) Name() string {
	if b.Hint != "" {
		return b.Hint
	}
	return b.Keys[0]
}

// Names returns the keys, at most the first two, as they are shown to people.
func (b Binding) Names() string {
	if n := len(b.Keys); n > 4 {
		return b.Keys[0] + " to " + b.Keys[n-1]
	}
	if b.Keys[0] == " " {
		return "space"
	}
	return strings.Join(b.Keys[:min(len(b.Keys), 2)], ", ")
}

// names of the panels, in the order of their bits.
var panelNames = [...]string{"Overview", "KV blocks", "Host tier", "Batch", "Requests", "Routing", "Latency", "Events", "Knobs"}

// Panels names the panels in which a key acts; empty if it acts in all.
func (b Binding) Panels() string {
	if b.Where == Everywhere {
		return ""
	}
	var in, out []string
	for i, name := range panelNames {
		if b.Where&(1<<i) != 0 {
			in = append(in, name)
		} else {
			out = append(out, name)
		}
	}
	if len(out) == 1 {
		return "all but " + out[0]
	}
	return strings.Join(in, ", ")
}

// Markdown returns the table of all keys, or of those of a recording, for the documents.
func Markdown(table []Binding) string {
	var s strings.Builder
	s.WriteString("| key | action | panels |\n|---|---|---|\n")
	for _, b := range table {
		fmt.Fprintf(&s, "| `%s` | %s | %s |\n", b.Names(), b.Long, cmp.Or(b.Panels(), "all"))
	}
	return s.String()
}
