package ui_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mockbench/engine"
	"mockbench/ui"
	"mockbench/ui/recording"
	"mockbench/ui/uitest"
)

// recorded returns a recording of twelve seconds of a fleet in which a setting changes after six.
func recorded(t *testing.T) *recording.Recording {
	t.Helper()
	f := uitest.NewFleet(3, 2048)
	o := f.Options()
	var fleet []recording.Source
	h := recording.Header{Mode: "live", Model: o.Model, Backend: o.Backend, Routing: true, Window: true}
	for _, w := range f.Workers() {
		fleet = append(fleet, recording.Source{Worker: w, Feed: w.Source().Feed})
		h.Workers = append(h.Workers, w.Name())
	}
	path := filepath.Join(t.TempDir(), "a.mbrec")
	w, err := recording.Create(path, h)
	if err != nil {
		t.Fatal(err)
	}
	r := recording.NewRecorder(w, recording.Run{Clock: o.Clock, Status: o.Status, Window: o.Window, Routing: o.Routing, Log: o.Log,
		Setup: recording.Setup(o.Load, o.Router, o.Limits)}, fleet)
	for i := range 120 {
		f.Run(1)
		if i == 60 {
			change := f.Load.Options()
			change.Rate = 77
			if err := f.Load.Set(change); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Sample(); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Close(recording.End{Report: []byte(`{"kept":1}`)}); err != nil {
		t.Fatal(err)
	}
	tape, err := recording.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tape.Close() })
	return tape
}

// Every panel of a recording at a moment, at 120x36.
func TestViewScreens(t *testing.T) {
	tape := recorded(t)
	for _, panel := range ui.Panels() {
		t.Run(panel, func(t *testing.T) {
			g, err := ui.Show(ui.Options{Model: "llama-3.1-8b", Backend: "vllm", Tape: tape}, plain, panel, 9000, 120, 36)
			if err != nil {
				t.Fatal(err)
			}
			uitest.Golden(t, "view-120x36-"+panel, g.String())
		})
	}
}

// A recording shows the same as the run did at that moment.
func TestViewShowsWhatTheRunShowed(t *testing.T) {
	g, err := ui.Show(ui.Options{Model: "llama-3.1-8b", Backend: "vllm", Tape: recorded(t)}, plain, "batch", 12000, 120, 36)
	if err != nil {
		t.Fatal(err)
	}
	f := uitest.NewFleet(3, 2048)
	s := uitest.NewScreen(f, f.Options(), plain, 120, 35) // the slider takes a line
	s.Run(120)
	s.Press("4", " ")
	s.Run(5)
	body := func(text string) string { return strings.Join(strings.Split(text, "\n")[2:34], "\n") }
	if body(s.Text()) != body(g.String()) {
		t.Errorf("the run showed\n%s\nthe recording shows\n%s", s.Text(), g)
	}
}

func view(t *testing.T, change func(*ui.Options)) *uitest.Driver {
	o := ui.Options{Model: "llama-3.1-8b", Backend: "vllm", Tape: recorded(t)}
	if change != nil {
		change(&o)
	}
	return uitest.Start(t, o, plain, 120, 36)
}

func TestViewKeys(t *testing.T) {
	d := view(t, nil)
	d.WaitFor("VIEW")
	d.WaitFor("> 00:00:0") // it plays
	d.Press(" ")
	d.WaitFor("= 00:00:0")
	d.Press("^")
	d.WaitFor("= 00:00:00.100")
	d.Press(">")
	d.WaitFor("= 00:00:05.100")
	d.Press("<")
	d.WaitFor("= 00:00:00.100")
	d.Press("$")
	d.WaitFor("= 00:00:12.000")
	d.Press("n")
	d.WaitFor("there is no later preemption or changed setting")
	d.Press("^", "4", ".", ".", ".", ".") // keys that come faster than the file is read wait
	d.WaitFor("pass 12 of w0")
	d.Press(",")
	d.WaitFor("pass 11 of w0")
	d.Press("+", "+")
	d.WaitFor("x4.0")
	d.Press("0")
	d.WaitFor("x1.0")
}

func TestViewFindsMarkers(t *testing.T) {
	d := view(t, nil)
	d.Press(" ", "^", ">")
	d.WaitFor("= 00:00:05.100")
	for range 200 { // preemptions come on the way
		if strings.Contains(d.Screen(), "= 00:00:06.1") {
			break
		}
		before := d.Screen()
		d.Press("n")
		d.Until("another moment", func(s string) bool { return s != before && strings.Contains(s, "= 00:") })
	}
	if !strings.Contains(d.Screen(), "= 00:00:06.1") {
		t.Fatalf("the changed setting was passed over:\n%s", d.Screen())
	}
	d.Press("9", "end")
	d.WaitFor("77")
}

func TestViewEndsPausedAndBeginsAgain(t *testing.T) {
	d := view(t, nil)
	d.WaitFor("> 00:00:0")
	d.Press("+", "+", "+", "+", "+")
	d.WaitFor("= 00:00:12.000")
	d.Press("0", " ")
	d.WaitFor("> 00:00:0")
}

func TestViewIsReadOnly(t *testing.T) {
	d := view(t, nil)
	d.WaitFor("VIEW")
	d.Press("9", "enter")
	d.WaitFor("read-only")
	d.Press("2", "down")
	d.WaitFor("KV blocks of w0")
	d.Press("t")
	d.Press("q")
	<-d.Done()
}

func TestViewSlider(t *testing.T) {
	d := view(t, nil)
	d.Press(" ", "^")
	d.WaitFor("= 00:00:00.100")
	d.Click(119-10, 34)
	d.WaitFor("= 00:00:12.000")
	d.Click(16, 34)
	d.WaitFor("= 00:00:00.100")
}

func TestExport(t *testing.T) {
	dir := t.TempDir()
	d := view(t, func(o *ui.Options) {
		o.ExportDir = dir
		o.Report = func(w io.Writer) error { _, err := w.Write([]byte("{}\n")); return err }
	})
	d.WaitFor("VIEW")
	d.Press(" ", "$", "4")
	d.WaitFor("= 00:00:12.000")
	d.WaitFor("[4 Batch]")
	d.Press("x")
	d.WaitFor("wrote " + dir[:20])
	for suffix, want := range map[string]string{"batch.txt": "[4 Batch]", "batch.svg": "<svg xmlns=", "batch-report.json": "{}"} {
		found, err := filepath.Glob(filepath.Join(dir, "mockbench-*-"+suffix))
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: %v %v", suffix, found, err)
		}
		data, err := os.ReadFile(found[0])
		if err != nil || !strings.Contains(string(data), want) {
			t.Errorf("%s: %v, no %q", suffix, err, want)
		}
	}
}

func TestExportThatFails(t *testing.T) {
	d := view(t, func(o *ui.Options) { o.ExportDir = "/dev/null" })
	d.WaitFor("VIEW")
	d.Press("x")
	d.WaitFor("not exported: ")
}

// failing is a recording whose file goes away.
type failing struct{ ui.Tape }

func (failing) Reel(engine.Time, engine.Time) (ui.Reel, error) { return ui.Reel{}, os.ErrClosed }

func TestViewOfAFileThatGoesAway(t *testing.T) {
	d := view(t, func(o *ui.Options) { o.Tape = failing{o.Tape} })
	d.WaitFor("file already closed")
}
