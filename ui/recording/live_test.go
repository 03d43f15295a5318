package recording_test

import (
	"path/filepath"
	"testing"
	"time"

	"mockbench/engine"
	"mockbench/engine/report"
	"mockbench/engine/workload"
	"mockbench/ui"
	"mockbench/ui/recording"
	"mockbench/ui/uitest"
)

// A recorder takes samples while workers run; the race detector watches.
func TestRecorderOfLiveWorkers(t *testing.T) {
	cfg := engine.DefaultConfig(engine.VLLM)
	cfg.NumGPUBlocks, cfg.EmitKVEvents = 300, true
	run := uitest.StartReal(t, cfg, 2, 4, workload.Demo(8))
	path := filepath.Join(t.TempDir(), "a.mbrec")
	var fleet []recording.Source
	h := recording.Header{Mode: "live", Routing: true}
	for _, s := range run.Options.Fleet() {
		fleet = append(fleet, recording.Source{Worker: s.Worker, Feed: s.Feed})
		h.Workers = append(h.Workers, s.Worker.Name())
	}
	w, err := recording.Create(path, h)
	if err != nil {
		t.Fatal(err)
	}
	r := recording.NewRecorder(w, recording.Run{Clock: run.Options.Clock, Routing: run.Options.Routing,
		Setup: recording.Setup(run.Options.Load, run.Options.Router, nil)}, fleet)
	r.Start(func(err error) { t.Error(err) })
	for end := time.Now().Add(time.Minute); run.Figures.Counts(report.All).Completed < 40 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	if err := r.Close(recording.End{}); err != nil {
		t.Fatal(err)
	}
	tape, err := recording.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer tape.Close()
	var next [2]uint64 // number of the next pass of each worker
	finished := uint64(0)
	err = tape.Each(func(m *ui.Moment) error {
		for i := range m.Parts {
			p := &m.Parts[i]
			for k := range p.Batch.Frames {
				f := &p.Batch.Frames[k]
				if f.Number < next[p.Worker] || f.End > m.At {
					t.Errorf("pass %d of worker %d, until %v, in the moment %v", f.Number, p.Worker, f.End, m.At)
				}
				next[p.Worker] = f.Number + 1
			}
			finished = max(finished, p.Batch.Totals.Finished)
		}
		return nil
	})
	if err != nil || finished == 0 || tape.Torn != "" {
		t.Errorf("%v, %d requests finished, torn %q", err, finished, tape.Torn)
	}
}
