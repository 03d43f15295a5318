package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"mockbench/cmd/mockbench/flags"
	"mockbench/engine/live"
	"mockbench/engine/report"
	"mockbench/ui"
	"mockbench/ui/recording"
)

// checkRecord says before the run that its recording, or what is exported from the screen, could not be written.
func (p *program) checkRecord() error {
	if path := p.s.Record; path == "-" {
		return &flags.UsageError{Text: "--record: must be a file, got -"}
	} else if path != "" {
		if err := report.CheckFile(path); err != nil {
			return fmt.Errorf("--record: %w", err)
		}
	}
	if dir := p.s.Screen.ExportDir; dir != "." && dir != "" {
		if err := report.CheckFile(filepath.Join(dir, "mockbench")); err != nil {
			return fmt.Errorf("--export-dir: %w", err)
		}
	}
	return nil
}

// taps are where a recorder reads the workers of a fleet.
type taps []tap

type tap struct {
	feed         *ui.Feed
	screen, tape ui.Worker
}

func (t taps) start(i int, w *live.Worker) {
	if t != nil {
		t[i].screen, t[i].tape = recording.Share(w)
	}
}

// tape is the recording of a run.
type tape struct {
	*recording.Recorder
	p *program
}

// record starts the recording, if there is to be one.
func (p *program) record(j *job) (*tape, error) {
	if p.s.Record == "" {
		return nil, nil
	}
	h := recording.Header{Program: "mockbench " + flags.ReferenceVersion, Started: time.Now(), Mode: "live",
		Model: j.model, Backend: p.engineText(),
		NoDelay: noDelay(p.s), Routing: j.routing != nil, Window: true, Sides: j.rival != nil, Settings: os.Args[1:]}
	var fleet []recording.Source
	for i := range j.fleet.taps {
		fleet = append(fleet, recording.Source{Worker: j.fleet.taps[i].tape, Feed: j.fleet.taps[i].feed})
		h.Workers = append(h.Workers, p.workerName(i))
	}
	w, err := recording.Create(p.s.Record, h)
	if err != nil {
		return nil, fmt.Errorf("--record: %w", err)
	}
	o := p.withControls(j, ui.Options{})
	run := recording.Run{Clock: j.fleet.clock, Status: j.planes, Window: j.figures.window, Routing: j.routing, Sides: o.Sides,
		Setup: recording.Setup(o.Load, o.Router, o.Limits)}
	if p.screen {
		run.Log = &p.ring
	}
	t := &tape{recording.NewRecorder(w, run, fleet), p}
	t.Start(func(err error) { p.logger("record").Error("the recording ends here", "file", p.s.Record, "error", err) })
	return t, nil
}

// end closes the recording.
func (t *tape) end(f *figures) error {
	if t == nil {
		return nil
	}
	var e recording.End
	var err error
	r, summary := f.report(), &strings.Builder{}
	if err = report.WriteText(summary, r, summaryWidth); err == nil {
		e.Summary = summary.String()
		e.Report, err = json.Marshal(r)
	}
	if failure := t.Close(e); failure != nil || err != nil {
		return fmt.Errorf("--record: %w", errors.Join(failure, err))
	}
	t.p.logger("record").Info("recorded", "file", t.p.s.Record, "size", t.Told())
	return nil
}
