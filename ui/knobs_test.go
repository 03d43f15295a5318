package ui_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"mockbench/engine"
	"mockbench/engine/report"
	"mockbench/engine/workload"
	"mockbench/ui"
	"mockbench/ui/knobs"
	"mockbench/ui/uitest"
)

// crowded is a real worker whose requests outgrow its pool again and again.
func crowded(t *testing.T, kind engine.Backend) (*uitest.Driver, *uitest.Real) {
	c := engine.DefaultConfig(kind)
	c.BlockSize, c.NumGPUBlocks, c.EmitKVEvents = 16, 96, true
	c.Timing = engine.TimingConfig{Type: "fixed", PrefillMS: 10, DecodeMS: 5}
	c.SGLang.ScheduleConservativeness = 0.05
	r := uitest.StartReal(t, c, 1, 4, workload.Options{Concurrency: 16, PromptMean: 120, PromptSpread: 30, OutputMean: 120, OutputSpread: 40})
	return uitest.Start(t, r.Options, looks["ascii"], 120, 36), r
}

// eventually polls until something holds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// More blocks need a restart; after it nothing is preempted any more, and no request is lost.
func TestMoreBlocksEndPreemptions(t *testing.T) {
	for _, kind := range []engine.Backend{engine.VLLM, engine.SGLang} {
		t.Run(string(kind), func(t *testing.T) {
			d, r := crowded(t, kind)
			preemptions := func() int { return r.Figures.Counts(report.All).Preemptions }
			eventually(t, "preemptions", func() bool { return preemptions() > 1 })
			d.Press("\x1b[Z") // the last panel
			d.WaitFor("num_gpu_blocks")
			for !strings.Contains(d.Screen(), ">~num_gpu_blocks") && !strings.Contains(d.Screen(), "> num_gpu_blocks") {
				before := d.Screen()
				d.Press("down")
				d.Until("the next row", func(s string) bool { return s != before })
			}
			d.Press("enter", "\x15", "2000", "enter") // ctrl+u empties the line
			d.WaitFor("num_gpu_blocks 2000 waits for a restart")
			d.WaitFor("96 in force, 2000 after a restart (R)")
			if got := r.Workers[0].Config().NumGPUBlocks; got != 96 {
				t.Fatalf("%d blocks before the restart", got)
			}
			d.Press("R")
			d.WaitFor("workers restarted")
			if got := r.Workers[0].Config().NumGPUBlocks; got != 2000 {
				t.Fatalf("%d blocks after the restart", got)
			}
			before, done := preemptions(), r.Load.Counts().Finished
			eventually(t, "more answers", func() bool { return r.Load.Counts().Finished > done+40 })
			if n := preemptions() - before; n > 0 {
				t.Errorf("%d preemptions with room for all", n)
			}
			if c := r.Load.Counts(); c.Failed+c.Cancelled+c.Rejected > 0 {
				t.Errorf("requests were lost: %+v", c)
			}
			d.Press("4")
			d.WaitFor("restart: num_gpu_blocks 2000")
		})
	}
}

// Fewer sequences show in the next passes.
func TestFewerSequences(t *testing.T) {
	d, r := crowded(t, engine.TRTLLM)
	running := func() int { return r.Workers[0].Load()[0].Running }
	eventually(t, "several requests", func() bool { return running() > 4 })
	d.Press("\x1b[Z") // the last panel
	d.WaitFor("> max_num_seqs")
	d.Press("enter", "\x15", "2", "enter")
	d.WaitFor(">*max_num_seqs")
	eventually(t, "two requests at a time", func() bool { return running() <= 2 })
	d.Press("4")
	d.WaitFor(", 2 running")
	d.WaitFor("k 00:")
	d.Press("1", "\x1b[Z")
	d.WaitFor(">*max_num_seqs")
	d.Press("u")
	d.WaitFor("> max_num_seqs                         256")
	eventually(t, "more requests", func() bool { return running() > 4 })
}

func TestRefusedValues(t *testing.T) {
	d, f := start(t, 2, 80, 24, nil)
	d.Press("9")
	d.WaitFor("> max_num_seqs")
	for text, want := range map[string]string{
		"0":    "error: engine.max_num_seqs: got 0, must be positive",
		"many": `error: engine.max_num_seqs: got "many", must be a whole number or unlimited`,
	} {
		d.Press("enter", "\x15", text, "enter")
		d.WaitFor(want)
		d.WaitFor("> max_num_seqs                         256")
	}
	d.Press("enter", "\x15", "7", "esc")
	d.WaitFor("> max_num_seqs                         256")
	if got := f.Workers()[0].Config().MaxNumSeqs; got != 256 {
		t.Errorf("max_num_seqs is %d", got)
	}
	d.Press("down", "down", "down", "down", "down", "down", "+")
	d.WaitFor(">~num_gpu_blocks")
	d.Press("U")
	d.WaitFor("everything as at the start")
	d.Press("R")
	d.WaitFor("no change waits for a restart")
}

// A setting changes at all workers, each of which keeps its own other settings.
func TestStepsReachAllWorkers(t *testing.T) {
	d, f := start(t, 3, 80, 24, nil)
	d.Press("9")
	d.WaitFor("> max_num_seqs")
	d.Press("+", "+", "-")
	d.WaitFor("288 requests")
	for _, w := range f.Workers() {
		if got := w.Config().MaxNumSeqs; got != 288 {
			t.Errorf("%s has %d", w.Name(), got)
		}
	}
	if f.Clock.Speed() != 1 {
		t.Error("the speed of time has changed")
	}
}

func TestLoadRouterAndLimits(t *testing.T) {
	d, f := start(t, 2, 120, 60, nil)
	d.Press("9")
	d.WaitFor("> max_num_seqs")
	to := func(name string) {
		d.Press("home")
		d.WaitFor("> max_num_seqs")
		for !strings.Contains(d.Screen(), "> "+name+" ") {
			before := d.Screen()
			d.Press("down")
			d.Until("the next row", func(s string) bool { return s != before })
		}
	}
	to("rate")
	d.Press("+")
	d.WaitFor(">*rate")
	to("ttft_ms")
	d.Press("enter", "\x15", "250", "enter")
	d.WaitFor(">*ttft_ms")
	to("policy")
	d.Press("+")
	d.WaitFor(">*policy")
	if rate, p, slo := f.Load.Options().Rate, f.Router.Options().Policy, f.Limits.SLO().TTFT; rate != 13 || p != "round-robin" || slo != 250 {
		t.Errorf("rate %v, policy %v, limit %v", rate, p, slo)
	}
	if strings.Contains(d.Screen(), "overlap_score_credit") {
		t.Error("weights are listed for a policy without costs")
	}
}

// What holds a restart up is cancelled by a second key.
func TestHurriedRestart(t *testing.T) {
	d, f := start(t, 2, 80, 24, nil)
	for _, w := range f.Workers() {
		w.Hold()
	}
	d.Press("9")
	d.WaitFor("> max_num_seqs")
	d.Press("down", "down", "down", "down", "down", "down", "+", "R")
	d.WaitFor("workers restart when what runs has ended (R cancels it)")
	if got := f.Workers()[0].Config().NumGPUBlocks; got != 2048 {
		t.Errorf("%d blocks before the restart", got)
	}
	d.Press("R")
	d.WaitFor("workers restarted")
	for _, w := range f.Workers() {
		if got := w.Config().NumGPUBlocks; got != 2304 {
			t.Errorf("%d blocks after the restart", got)
		}
	}
}

func TestReadOnlyKnobs(t *testing.T) {
	d, f := start(t, 1, 80, 24, func(o *ui.Options) { o.ReadOnly = true })
	d.Press("9")
	d.WaitFor("> max_num_seqs")
	for _, key := range []string{"+", "enter", "R", "u"} {
		d.Press(key)
		d.WaitFor("read-only")
	}
	if got := f.Workers()[0].Config().MaxNumSeqs; got != 256 {
		t.Errorf("max_num_seqs is %d", got)
	}
}

func TestSave(t *testing.T) {
	var saved []knobs.Setup
	fail := false
	d, _ := start(t, 1, 80, 24, func(o *ui.Options) {
		o.Save = func(s knobs.Setup) (string, error) {
			if fail {
				return "", errors.New("the disk is full")
			}
			saved = append(saved, s)
			return fmt.Sprintf("tuned-%d.toml", len(saved)), nil
		}
	})
	d.Press("9")
	d.WaitFor("> max_num_seqs")
	d.Press("+", "down", "down", "down", "down", "down", "down", "+")
	d.WaitFor(">~num_gpu_blocks")
	d.Press("s")
	d.WaitFor("saved tuned-1.toml")
	if e := saved[0].Engine; e.MaxNumSeqs != 288 || e.NumGPUBlocks != 2304 {
		t.Errorf("saved %d sequences, %d blocks", e.MaxNumSeqs, e.NumGPUBlocks)
	}
	fail = true
	d.Press("s")
	d.WaitFor("error: the disk is full")
}

func TestBaseline(t *testing.T) {
	d, _ := start(t, 2, 120, 36, nil)
	d.WaitFor("TTFT")
	d.Press("b")
	d.WaitFor("vs baseline")
	d.WaitFor("against 00:")
	d.Press("7")
	d.WaitFor("base p50")
	d.Press("4")
	d.WaitFor("b 00:")
	d.Press("b")
	d.WaitFor("no baseline")
	d.Press("7")
	d.Until("no baseline", func(s string) bool { return !strings.Contains(s, "base p50") })
}

// Differences are told by arrow and percentage.
func TestDifferences(t *testing.T) {
	now := ui.Figures{Count: 10, P50: 100, P90: 200, P99: 400, SLO: 300, Within: 0.9}
	f := uitest.NewFleet(1, 512)
	o := f.Options()
	o.Window = func() ui.Window { return ui.Window{Seconds: 30, TTFT: now, ITL: now} }
	s := uitest.NewScreen(f, o, plain, 120, 36)
	s.Run(10)
	s.Press("b", "7")
	now = ui.Figures{Count: 10, P50: 88, P90: 200, P99: 500, SLO: 300, Within: 0.97}
	s.Run(20)
	text := s.Text()
	for _, want := range []string{"p50  88ms v12%", "p99 500ms ^25%", "p90 200ms =", "97.0% ^7", "base p50 100ms"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestComparison(t *testing.T) {
	f := uitest.NewFleet(8, 1024)
	d := uitest.Start(t, f.Compared(f.Options()), looks["ascii"], 120, 36)
	d.Press("6")
	d.WaitFor("B: round-robin, share and hit")
	d.WaitFor("B against A")
	d.Press("a")
	d.WaitFor("B: random, share and hit")
	d.WaitFor("placed by random from now on")
}

func TestOneFleetHasNothingToCompare(t *testing.T) {
	d, _ := start(t, 2, 80, 24, nil)
	d.Press("6")
	d.WaitFor("share of requests")
	d.Press("a")
	d.WaitFor("--ab POLICY")
}
