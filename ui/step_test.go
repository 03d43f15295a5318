package ui_test

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"mockbench/engine"
	"mockbench/ui/uitest"
)

var (
	usedShown = regexp.MustCompile(`> w0 +\S+ +(\d+)% +(\d+) +(\d+)`)
	mapShown  = regexp.MustCompile(`# acti\w* (\d+) +@ shar\w* (\d+)`)
)

// A paused overview and the map beside it show the same moment, whether time was stopped or a pass was stepped.
func TestPausedFiguresAreThoseOfTheMap(t *testing.T) {
	d, _ := crowded(t, engine.VLLM)
	d.WaitFor("> w0")
	same := func(s string) bool {
		u, m := usedShown.FindStringSubmatch(s), mapShown.FindStringSubmatch(s)
		if u == nil || m == nil {
			return false
		}
		used, _ := strconv.Atoi(u[1])
		active, _ := strconv.Atoi(m[1])
		shared, _ := strconv.Atoi(m[2])
		return used == int(math.Round(float64(active+shared)/96*100))
	}
	for range 2 {
		d.Press(" ")
		d.WaitFor("PAUSE")
		d.Until("the same moment", same)
		for range 2 {
			d.Press(".")
			d.WaitFor("w0 pass")
			d.Until("the same moment after a step", same)
		}
		d.Press(" ")
		d.WaitFor("RUN")
	}
}

// A step says which worker ran what.
func TestStepTells(t *testing.T) {
	d, _ := crowded(t, engine.VLLM)
	d.WaitFor("> w0")
	d.Press(" ")
	d.WaitFor("PAUSE")
	seen := map[string]bool{}
	told := regexp.MustCompile(`w0 pass ([\d,]+): (.*) ms`)
	last := ""
	for range 400 {
		d.Press(".")
		d.Until("word of the pass", func(s string) bool {
			m := told.FindStringSubmatch(s)
			if m == nil || m[1] == last {
				return false
			}
			last = m[1]
			for _, word := range []string{"admitted c", "preempted c", "decode"} {
				seen[word] = seen[word] || strings.Contains(m[2], word)
			}
			return true
		})
		if len(seen) == 3 && seen["admitted c"] && seen["preempted c"] && seen["decode"] {
			return
		}
	}
	t.Errorf("steps told only of %v", seen)
}

func TestStepOfAnIdleWorker(t *testing.T) {
	f := uitest.NewFleet(1, 512)
	s := uitest.NewScreen(f, f.Options(), plain, 80, 24)
	s.Press(" ", ".")
	if !strings.Contains(s.Text(), "w0 has nothing to run") {
		t.Errorf("no word of it:\n%s", s.Text())
	}
}
