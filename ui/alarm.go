package ui

import (
	"fmt"
	"strings"

	"mockbench/engine"
	"mockbench/engine/live"
	"mockbench/ui/grid"
)

// stallText says which request of a rank cannot be admitted, why, and what would help.
func stallText(w *worker, s live.Stall, naming bool) string {
	text := fmt.Sprintf("rank %d stalled", s.Rank)
	switch {
	case naming && len(w.loads) < 2:
		text = w.name + " stalled"
	case naming:
		text = w.name + " " + text
	}
	h := s.Hint
	if h.Head != nil {
		text += fmt.Sprintf(": %s needs %s, %s", grid.Clean(h.Head.Label), need(h), limit(h))
	}
	if h.Setting != "" && h.Raise > 0 {
		text += fmt.Sprintf(": raise %s to %s", strings.TrimPrefix(h.Setting, "engine."), number(h.Raise))
	}
	return text
}

func need(h engine.Hint) string {
	switch h.Test {
	case engine.TestPool:
		return plural(h.Need, "block")
	case engine.TestSlots:
		return "a sequence slot"
	}
	return plural(h.Need, "token")
}

// testNames name what the tests of admission compare with.
var testNames = map[engine.Test]string{engine.TestPool: "pool", engine.TestBudget: "budget", engine.TestSlots: "slots",
	engine.TestTotal: "available", engine.TestInput: "prefill budget", engine.TestChunk: "chunk budget"}

// limit names what the request runs into.
func limit(h engine.Hint) string {
	name := testNames[h.Test]
	if name == "" {
		name = "limit"
	}
	return name + " " + number(h.Have)
}
