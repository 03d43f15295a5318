package ui_test

import (
	"regexp"
	"strings"
	"testing"

	"mockbench/ui/uitest"
)

// The map follows the pass that Batch is scrubbed to, and the present again.
func TestMapOfAnEarlierPass(t *testing.T) {
	f := uitest.NewFleet(2, 1024)
	s := uitest.NewScreen(f, f.Options(), plain, 120, 36)
	s.Run(60)
	s.Press("2")
	legend := regexp.MustCompile(`# active.*free +\d+`)
	then := legend.FindString(s.Text())
	s.Press("4", " ")
	s.Run(5)
	s.Press(" ")
	s.Run(20)
	s.Press("4", " ")
	s.Run(5)
	s.Press("2")
	now := legend.FindString(s.Text())
	if now == then {
		t.Fatal("nothing has changed meanwhile")
	}
	s.Press("4")
	for range 200 {
		s.Press("left")
	}
	s.Press("2")
	if text := s.Text(); legend.FindString(text) != then || !strings.Contains(text, "as at 00:00:0") {
		t.Errorf("the map of then had %s, this is\n%s", then, text)
	}
	s.Press("esc")
	if text := s.Text(); legend.FindString(text) != now || strings.Contains(text, "as at") {
		t.Errorf("the map of now has %s, this is\n%s", now, text)
	}
}
