// Package theme holds how the screen looks: the styles panels draw with, their colours for each kind of terminal, and
// the glyphs of bars, charts and frames.
//
// Block states carry one letter each in every mode, so that nothing is told by colour alone.
package theme

import (
	"mockbench/engine"
	"mockbench/ui/grid"
	"mockbench/ui/widget"
)

// Styles of the screen. The Cell styles are letters on a coloured background, the Ink styles glyphs on the default
// background in the hue of the same state.
const (
	Plain grid.Style = iota
	Dim
	Bold
	Frame
	Heading
	Selected
	Alarm  // something needs a person
	Paused // state of the run when it is not running
	Cursor

	CellFree
	CellActive
	CellShared
	CellCached
	CellHost
	CellEvicted

	InkFree
	InkActive
	InkShared
	InkCached
	InkHost
	InkEvicted

	styles // number of styles
)

// Evicted is the state of a block that lost its contents in the last second. The engine has no such state: the screen
// derives it from the evictions of a snapshot.
const Evicted = widget.Evicted

// States is the number of block states with Evicted.
const States = int(Evicted) + 1

// Letters are the signs of the block states.
var Letters = [States]rune{
	engine.BlockFree: '.', engine.BlockActive: '#', engine.BlockShared: '@', engine.BlockCached: '-', engine.BlockHost: 'h',
	Evicted: '!',
}

// Names are the words of the block states, and short ones.
var (
	Names = [States]string{
		engine.BlockFree: "free", engine.BlockActive: "active", engine.BlockShared: "shared", engine.BlockCached: "cached",
		engine.BlockHost: "host", Evicted: "evicted",
	}
	ShortNames = [States]string{
		engine.BlockFree: "free", engine.BlockActive: "acti", engine.BlockShared: "shar", engine.BlockCached: "cach",
		engine.BlockHost: "host", Evicted: "evic",
	}
)

// Cell returns the style of a block state on the map.
func Cell(s engine.BlockState) grid.Style { return CellFree + grid.Style(s) }

// Ink returns the style of a chart part that stands for a block state.
func Ink(s engine.BlockState) grid.Style { return InkFree + grid.Style(s) }

// LegendOrder is the order in which states are listed.
var LegendOrder = [States]engine.BlockState{
	engine.BlockActive, engine.BlockShared, engine.BlockCached, engine.BlockHost, engine.BlockFree, Evicted,
}

// Colors says how many colours a terminal shows.
type Colors int

const (
	NoColor   Colors = 0
	Colors16  Colors = 16
	Colors256 Colors = 256
)

// Theme is one way to look: a look for each style and the glyphs.
type Theme struct {
	Looks  []grid.Look
	Glyphs Glyphs
	Light  bool // the background
}

// New returns the theme for a terminal with that many colours, on a light or dark background, with or without glyphs
// outside ASCII.
func New(colors Colors, light, unicode bool) Theme {
	t := Theme{Looks: mono(), Glyphs: ascii, Light: light}
	if unicode {
		t.Glyphs = blocks
	}
	if p := palette(colors, light); p != nil {
		p.apply(t.Looks)
	}
	return t
}

// mono is the looks without any colour.
func mono() []grid.Look {
	looks := make([]grid.Look, styles)
	for i := range looks {
		looks[i] = grid.Plain
	}
	for _, s := range []grid.Style{Bold, Heading, Selected, CellShared, InkShared} {
		looks[s].Bold = true
	}
	for _, s := range []grid.Style{Alarm, Paused, Cursor, CellEvicted} {
		looks[s].Reverse = true
	}
	looks[Alarm].Bold = true
	return looks
}
