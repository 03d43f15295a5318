package live

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"mockbench/engine"
	"mockbench/engine/backend"
)

// op is one thing that somebody does to a worker, after a wait.
type op struct {
	kind   string
	wait   time.Duration
	tokens int
	pick   int
}

func drawOps(t *rapid.T) []op {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) op {
		return op{
			kind:   rapid.SampledFrom([]string{"submit", "submit", "submit", "cancel", "pause", "resume", "step", "speed", "inspect", "lag"}).Draw(t, "kind"),
			wait:   time.Duration(rapid.IntRange(0, 30).Draw(t, "wait")) * time.Millisecond,
			tokens: rapid.IntRange(1, 8).Draw(t, "tokens"),
			pick:   rapid.IntRange(0, 20).Draw(t, "pick"),
		}
	}), 1, 60).Draw(t, "ops")
}

// sequence checks that records follow one another and that no output comes before its request.
type sequence struct {
	last engine.Time
	lag  atomic.Int64 // how long to block the worker at the next record, in ns
	err  error        // read when the worker has ended
}

func (s *sequence) Pass(p *engine.Pass) {
	time.Sleep(time.Duration(s.lag.Swap(0)))
	if p.Start < s.last {
		s.err = fmt.Errorf("pass starts at %g, before %g", p.Start, s.last)
	}
	for _, o := range p.Outputs {
		if o.Request.Arrival > p.Start {
			s.err = fmt.Errorf("%s arrived at %g, after the start %g of its pass", o.Request.Label, o.Request.Arrival, p.Start)
		}
	}
	s.last = p.End
}

// Whatever happens in whatever order: every stream ends, in the right way and with the right number of tokens.
func TestRandomCommands(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ops := drawOps(rt)
		length := rapid.SampledFrom([]float64{0, 0.3, 7, 40}).Draw(rt, "length")
		noDelay := rapid.Bool().Draw(rt, "no delay")
		var err error
		synctest.Test(t, func(t *testing.T) {
			err = play(ops, noDelay, engine.NewGroup([]engine.Scheduler{&fakeRank{length: engine.Time(length)}}))
		})
		if err != nil {
			rt.Fatal(err)
		}
	})
}

// The same with two real ranks whose pools are so small that requests preempt one another.
func TestRandomCommandsToAnEngine(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ops := drawOps(rt)
		c := fixedTiming(6, rapid.SampledFrom([]float64{0, 12}).Draw(rt, "prefill"), rapid.SampledFrom([]float64{0, 5}).Draw(rt, "decode"))
		c.BlockSize, c.MaxNumBatchedTokens = 4, 8
		noDelay := rapid.Bool().Draw(rt, "no delay")
		var err error
		synctest.Test(t, func(t *testing.T) {
			group, problem := backend.NewGroup(c, 0, 2)
			if problem != nil {
				err = problem
				return
			}
			err = play(ops, noDelay, group)
		})
		if err != nil {
			rt.Fatal(err)
		}
	})
}

type sent struct {
	stream    *Stream
	tokens    int
	cancelled bool
}

func play(ops []op, noDelay bool, group *engine.Group) error {
	clock := NewClock(1)
	var checks []*sequence
	for range group.Ranks() {
		checks = append(checks, &sequence{})
	}
	reader := readerFunc(func(p *engine.Pass) { checks[p.Rank].Pass(p) })
	w := start(Options{Name: "w", Clock: clock, NoDelay: noDelay, Readers: []engine.Reader{reader}}, group, newRuntimeAlarm())
	defer w.Close()
	var streams []*sent
	for _, o := range ops {
		time.Sleep(o.wait)
		switch o.kind {
		case "submit":
			s, err := w.Submit(Request{Label: fmt.Sprint("r", len(streams)), Prompt: prompt(o.pick, 5+o.pick%11), MaxOutput: o.tokens, Rank: -1})
			if err != nil {
				return err
			}
			streams = append(streams, &sent{stream: s, tokens: o.tokens})
		case "cancel":
			if len(streams) > 0 {
				s := streams[o.pick%len(streams)]
				s.cancelled = true
				s.stream.Cancel()
			}
		case "pause":
			clock.Pause()
		case "resume":
			clock.Resume()
		case "step":
			w.Step()
		case "speed":
			clock.SetSpeed(float64(o.pick+1) / 4)
		case "inspect":
			if err := w.Inspect(0, &engine.Snapshot{}); err != nil {
				return err
			}
		case "lag":
			checks[0].lag.Store(int64(o.wait))
		}
	}
	clock.Resume()
	if err := w.Drain(context.Background()); err != nil {
		return err
	}
	for k, s := range streams {
		tokens, end, err := s.stream.Take(context.Background(), nil)
		switch {
		case err != nil:
			return err
		case end == Finished && len(tokens) == s.tokens:
		case end == Cancelled && s.cancelled && len(tokens) < s.tokens:
		default:
			return fmt.Errorf("request %d of %d tokens: %d tokens, end %d, cancelled %v", k, s.tokens, len(tokens), end, s.cancelled)
		}
	}
	if n := w.InFlight(); n != 0 {
		return fmt.Errorf("%d in flight", n)
	}
	w.Close()
	for _, c := range checks {
		if c.err != nil {
			return c.err
		}
	}
	return nil
}
