package ui_test

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"mockbench/engine"
	"mockbench/ui"
	"mockbench/ui/uitest"
)

// start runs a screen on a fleet whose load goes on until the test ends.
func start(t *testing.T, workers, w, h int, change func(*ui.Options)) (*uitest.Driver, *uitest.Fleet) {
	f := uitest.NewFleet(workers, 2048)
	o := f.Options()
	if change != nil {
		change(&o)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				f.Run(1)
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-stopped })
	return uitest.Start(t, o, looks["ascii"], w, h), f
}

func TestKeysChangeThePanel(t *testing.T) {
	d, _ := start(t, 4, 120, 36, nil)
	d.WaitFor("[1 Overview]")
	for key, text := range map[string]string{"2": "[2 KV blocks]", "3": "[3 Host tier]", "4": "[4 Batch]", "8": "[8 Events]", "5": "running"} {
		d.Press(key)
		d.WaitFor(text)
	}
	d.Press("1", "tab")
	d.WaitFor("[2 KV blocks]")
	d.WaitFor("1 cell = ")
}

func TestPauseStepSpeed(t *testing.T) {
	d, f := start(t, 2, 80, 24, nil)
	d.WaitFor("RUN")
	d.Press(" ")
	d.WaitFor("PAUSE")
	if !f.Clock.Paused() {
		t.Error("the clock runs on")
	}
	d.Press(".", ".", ".")
	for end := time.Now().Add(10 * time.Second); f.Workers()[0].Steps() < 3 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if a, b := f.Workers()[0].Steps(), f.Workers()[1].Steps(); a != 3 || b != 0 {
		t.Errorf("%d and %d steps, want 3 and 0", a, b)
	}
	d.Press(" ", "+", "+")
	d.WaitFor("x4.0")
	d.WaitFor("RUN")
	d.Press("-", "-", "-")
	d.WaitFor("x0.5")
	d.Press("0")
	d.WaitFor("x1.0")
}

// Keys typed fast arrive in one read; pastes are not keys.
func TestManyKeysAtOnceAndPastes(t *testing.T) {
	d, _ := start(t, 8, 80, 24, nil)
	d.WaitFor("> w0")
	d.Press("jjj")
	d.WaitFor("> w3")
	d.Press("\x1b[200~q\x1b[201~", "k")
	d.WaitFor("> w2")
	d.Press("\x1b[<35;44;10M", "<35;44;10M") // a motion report, whole and cut
	d.Press("]")
	d.WaitFor("> w3")
}

func TestMouse(t *testing.T) {
	d, _ := start(t, 4, 80, 24, nil)
	d.WaitFor("w3")
	d.Click(10, 6) // third worker
	d.WaitFor("> w2")
	d.Click(12, 1)
	d.WaitFor("[2 KV]")
	d.WaitFor("refs")
	d.Click(3, 4)
	d.Until("the cursor on another cell", func(s string) bool { return !strings.Contains(s, "\n 0-") })
}

func TestFilter(t *testing.T) {
	d, _ := start(t, 2, 80, 24, nil)
	d.Press("8")
	d.WaitFor("stored")
	d.Press("/", "r", "e", "m", "o", "v", "e", "d", "enter")
	d.Until("only removed blocks", func(s string) bool {
		return strings.Contains(s, " removed ") && strings.Count(s, " stored") == 1 // the title
	})
	d.Press("esc")
	d.WaitFor(" stored  ")
}

func TestStalledRank(t *testing.T) {
	d, f := start(t, 1, 80, 24, nil)
	d.WaitFor("RUN")
	f.Workers()[0].Stall(&engine.Hint{Kind: engine.HintExhausted, Head: &engine.Request{Label: "r17"}, Test: engine.TestPool,
		Need: 41, Have: 32, Setting: "num_gpu_blocks", Raise: 41})
	d.WaitFor("! rank 0 stalled: r17 needs 41 blocks, pool 32: raise num_gpu_blocks to 41")
	f.Workers()[0].Stall(nil)
	d.Until("no banner", func(s string) bool { return !strings.Contains(s, "stalled") })
}

// Requests that can never fit leave no trace in queues and blocks, so that the header says that there were some.
func TestRejectedRequestsAreCounted(t *testing.T) {
	d, f := start(t, 2, 80, 24, nil)
	d.WaitFor("RUN")
	if strings.Contains(d.Screen(), "rejected") {
		t.Error("requests are said to be rejected before any was")
	}
	for _, w := range f.Workers() {
		w.Reject("r17")
	}
	d.WaitFor("2 rejected")
}

// A rank that waits for handoffs is not stalled: no banner, and nothing to cancel.
func TestWaitingForHandoffsIsNoStall(t *testing.T) {
	d, f := start(t, 1, 80, 24, nil)
	d.WaitFor("RUN")
	f.Workers()[0].Stall(&engine.Hint{Kind: engine.HintHandoff, Handoffs: 2, Head: &engine.Request{Label: "r17"}, Test: engine.TestPool,
		Need: 51, Have: 26, Setting: "num_gpu_blocks", Raise: 926})
	d.Press("X")
	d.WaitFor("no rank is stalled")
	if strings.Contains(d.Screen(), "r17 needs") {
		t.Error("there is a banner")
	}
}

func TestCancelTheHeadOfAStalledRank(t *testing.T) {
	d, f := start(t, 2, 80, 24, nil)
	d.WaitFor("RUN")
	d.Press("X")
	d.WaitFor("no rank is stalled")
	f.Workers()[1].Stall(&engine.Hint{Kind: engine.HintExhausted, Head: &engine.Request{Label: "r17"}, Test: engine.TestPool,
		Need: 41, Have: 32})
	d.WaitFor("w1 stalled: r17 needs 41 blocks, pool 32")
	d.WaitFor("X cancel head")
	d.Press("X")
	d.WaitFor("cancelled r17 of w1")
	d.Until("no banner", func(s string) bool { return !strings.Contains(s, "stalled") })
	if got := f.Workers()[1].Cancelled(); len(got) != 1 || got[0] != "r17" {
		t.Errorf("cancelled %v", got)
	}
}

func TestReadOnlyCancelsNothing(t *testing.T) {
	d, f := start(t, 1, 80, 24, func(o *ui.Options) { o.ReadOnly = true })
	d.WaitFor("RUN")
	f.Workers()[0].Stall(&engine.Hint{Kind: engine.HintExhausted, Head: &engine.Request{Label: "r17"}, Test: engine.TestPool, Need: 41, Have: 32})
	d.WaitFor("r17 needs 41 blocks, pool 32")
	if strings.Contains(d.Screen(), "X cancel") {
		t.Error("the line at the bottom offers what is refused")
	}
	d.Press("X")
	d.WaitFor("read-only")
	if got := f.Workers()[0].Cancelled(); len(got) > 0 {
		t.Errorf("cancelled %v all the same", got)
	}
}

func TestPrefixTree(t *testing.T) {
	d, f := start(t, 2, 80, 24, nil)
	d.WaitFor("RUN")
	f.Clock.Pause()
	d.Press("2", "t")
	d.WaitFor("prefix tree of w0")
	d.WaitFor("in 60 nodes, 1-18")
	d.Press("pgdown", "down")
	d.Until("later rows", func(s string) bool { return !strings.Contains(s, "nodes, 1-18") })
	d.Press("]")
	d.WaitFor("prefix tree of w1")
	d.Press("t")
	d.WaitFor("KV blocks of w1")
	d.Press("t", "esc")
	d.WaitFor("refs")
}

func TestEngineWithoutTree(t *testing.T) {
	d, f := start(t, 1, 80, 24, nil)
	f.Set(uitest.NewWorker("other", 9, 512))
	f.Workers()[0].Use(engine.TRTLLM)
	d.WaitFor("other")
	d.Press("2", "t")
	d.WaitFor("this engine has no prefix tree")
}

func TestHostTierOfTheSelectedWorker(t *testing.T) {
	f := uitest.NewFleet(2, 2048)
	f.Workers()[1].AddHost(1024)
	s := uitest.NewScreen(f, f.Options(), plain, 80, 24)
	s.Run(40)
	s.Press("3")
	if !strings.Contains(s.Text(), "--num-host-blocks") {
		t.Errorf("no word about the flag:\n%s", s.Text())
	}
	s.Press("]")
	s.Run(5)
	if text := s.Text(); !strings.Contains(text, "host tier of w1, 1,024 blocks, 1 block = 8.39 MB") || strings.Contains(text, "--num") {
		t.Errorf("the worker with a tier shows\n%s", text)
	}
	s.Press("1")
	if !strings.Contains(s.Text(), "G2 GB/s") {
		t.Errorf("no line of the traffic:\n%s", s.Text())
	}
}

func TestQuitDrains(t *testing.T) {
	release := make(chan struct{})
	d, _ := start(t, 1, 80, 24, func(o *ui.Options) {
		o.Drain = func(_ context.Context, progress func(ui.Draining)) {
			progress(ui.Draining{Streams: 1, Tokens: 412})
			<-release
		}
	})
	d.WaitFor("RUN")
	d.Press("q")
	d.WaitFor("draining 1 stream, 412 tokens left")
	d.WaitFor("DRAIN")
	close(release)
	<-d.Done()
	if !errors.Is(d.Reason(), ui.ErrQuit) || d.AltScreen() {
		t.Errorf("ended with %v, alternate screen %v", d.Reason(), d.AltScreen())
	}
}

func TestSecondSignalEndsTheDrain(t *testing.T) {
	d, _ := start(t, 1, 80, 24, func(o *ui.Options) {
		o.Drain = func(ctx context.Context, _ func(ui.Draining)) { <-ctx.Done() }
	})
	d.WaitFor("RUN")
	d.Send(ui.SignalMsg{Signal: syscall.SIGTERM})
	d.WaitFor("draining")
	d.Send(ui.SignalMsg{Signal: syscall.SIGTERM})
	<-d.Done()
	var s *ui.SignalError
	if !errors.As(d.Reason(), &s) || !errors.Is(d.Reason(), ui.ErrSignal) || s.Signal != syscall.SIGTERM || !s.Forced {
		t.Errorf("ended with %#v", d.Reason())
	}
}

func TestReadOnly(t *testing.T) {
	d, f := start(t, 1, 80, 24, func(o *ui.Options) { o.ReadOnly = true })
	d.WaitFor("RUN")
	d.Press(" ")
	d.WaitFor("read-only")
	if f.Clock.Paused() {
		t.Error("paused all the same")
	}
	if strings.Contains(d.Screen(), "space pause") {
		t.Error("the line at the bottom offers what is refused")
	}
}

func TestSmallTerminals(t *testing.T) {
	d, _ := start(t, 1, 79, 24, nil)
	d.WaitFor("need 80x24, have 79x24")
	d.Resize(1, 1)
	d.Until("nothing", func(s string) bool { return strings.TrimSpace(s) == "" })
	d.Resize(0, 0)
	d.Resize(80, 24)
	d.WaitFor("[1 Over]")
}

func TestLog(t *testing.T) {
	log := &ui.Log{}
	d, _ := start(t, 1, 80, 24, func(o *ui.Options) { o.Log = log })
	d.Press("8")
	d.WaitFor("subscribers and log")
	log.Write([]byte("first line\nsecond \x1b[31mline\nunfin"))
	d.WaitFor("second ?[31mline")
	if strings.Contains(d.Screen(), "unfin") {
		t.Error("half a line is shown")
	}
}
