package live

import (
	"testing"

	"mockbench/engine"
)

// stuckWith makes the first rank of the bench stuck and notes what is reported.
func stuckWith(told *journal, stuck func(b *bench, pass int) engine.Hint) func(*bench, *Options) {
	return func(b *bench, o *Options) {
		b.ranks[0].stuck = func(pass int) engine.Hint { return stuck(b, pass) }
		o.Stalled = func(s Stall) { told.note("%s rank %d needs %d", s.Worker, s.Rank, s.Hint.Need) }
	}
}

const stallReport = "w rank 0 needs 41"

func exhausted(b *bench, pass int) engine.Hint {
	if len(b.ranks[0].requests) == 0 || b.ranks[0].requests[0].Label != "big" {
		return engine.Hint{}
	}
	return engine.Hint{Kind: engine.HintExhausted, Head: b.ranks[0].requests[0], Need: 41, Have: 32}
}

func TestStallParks(t *testing.T) {
	var told journal
	inBubble(t, 10, 1, stuckWith(&told, exhausted), func(b *bench) {
		big := b.submit("big", 5)
		b.at(1000)
		equal(t, "passes", b.w.Passes(), 1)
		told.expect(t, "reports", stallReport)

		small := b.submit("small", 1) // arms it again, in vain
		b.at(2000)
		equal(t, "passes", b.w.Passes(), 2)
		told.expect(t, "reports of the same head")
		equal(t, "stalls", len(b.w.Stalled()), 1)

		big.Cancel()
		_, end, ms := b.next(small)
		equal(t, "end", end, Finished)
		equal(t, "time", ms, 2010)
		equal(t, "stalls", len(b.w.Stalled()), 0)
		equal(t, "slip", b.w.Slip(), 0)

		b.submit("big", 5)
		b.at(3000)
		told.expect(t, "reports of the next head", stallReport)
	})
}

func TestStallIsForgottenWithItsRequest(t *testing.T) {
	var told journal
	inBubble(t, 10, 1, stuckWith(&told, exhausted), func(b *bench) {
		s := b.submit("big", 5)
		b.at(10)
		equal(t, "stalls", len(b.w.Stalled()), 1)
		s.Cancel()
		b.at(20)
		equal(t, "stalls", len(b.w.Stalled()), 0)
		equal(t, "passes", b.w.Passes(), 1)
	})
}

func TestStepTriesAParkedRank(t *testing.T) {
	var told journal
	inBubble(t, 10, 1, stuckWith(&told, exhausted), func(b *bench) {
		b.submit("big", 5)
		b.at(10)
		b.clock.Pause()
		for range 2 {
			b.w.Step()
			b.w.Step()
		}
		b.at(20)
		equal(t, "passes", b.w.Passes(), 3) // one Step wakes it, the next is its pass
	})
}

func TestInternalEventWakesAParkedRank(t *testing.T) {
	var told journal
	change := func(b *bench, o *Options) {
		stuckWith(&told, exhausted)(b, o)
		b.ranks[0].deadline = 50
	}
	inBubble(t, 10, 1, change, func(b *bench) {
		b.submit("big", 5)
		b.at(49)
		equal(t, "passes", b.w.Passes(), 1)
		b.at(51)
		equal(t, "passes", b.w.Passes(), 2)
	})
}

func TestRetriesAreBounded(t *testing.T) {
	var told journal
	retry := func(b *bench, pass int) engine.Hint { return engine.Hint{Kind: engine.HintRetry} }
	inBubble(t, 10, 1, stuckWith(&told, retry), func(b *bench) {
		b.submit("a", 5)
		b.at(1)
		equal(t, "passes", b.w.Passes(), 1024)
		told.expect(t, "reports", "w rank 0 needs 0")
		b.submit("b", 5)
		b.at(2)
		equal(t, "passes", b.w.Passes(), 2048)
	})
}

func TestRetriesThatHelp(t *testing.T) {
	var told journal
	retry := func(b *bench, pass int) engine.Hint {
		if pass <= 600 {
			return engine.Hint{Kind: engine.HintRetry}
		}
		return engine.Hint{}
	}
	inBubble(t, 10, 1, stuckWith(&told, retry), func(b *bench) {
		s := b.submit("a", 2)
		_, _, ms := b.next(s)
		equal(t, "time", ms, 10)
		told.expect(t, "reports")
	})
}

func TestCountdowns(t *testing.T) {
	for name, c := range map[string]struct {
		rounds func(pass int) int
		passes uint64
	}{
		"shrinks": {func(pass int) int { return 50 - pass }, 51}, // then it works
		"stands":  {func(pass int) int { return 7 }, 2},
		"grows":   {func(pass int) int { return pass }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			var told journal
			countdown := func(b *bench, pass int) engine.Hint {
				if rounds := c.rounds(pass); rounds >= 0 {
					return engine.Hint{Kind: engine.HintCountdown, Rounds: rounds}
				}
				return engine.Hint{}
			}
			inBubble(t, 10, 1, stuckWith(&told, countdown), func(b *bench) {
				b.submit("a", 1)
				b.at(100)
				equal(t, "passes", b.w.Passes(), c.passes)
			})
		})
	}
}

func TestStallBesideAWorkingRank(t *testing.T) {
	var told journal
	inBubble(t, 10, 2, stuckWith(&told, exhausted), func(b *bench) {
		b.submit("big", 5)        // rank 0
		s := b.submit("other", 3) // rank 1
		tokens, _ := all(t, s)
		equal(t, "tokens", len(tokens), 3)
		told.expect(t, "reports", stallReport)
		b.at(1000)
		stalls := b.w.Stalled()
		if len(stalls) != 1 || stalls[0].Rank != 0 {
			t.Errorf("stalls: %v", stalls)
		}
		passes := b.w.Passes()
		b.at(2000)
		equal(t, "passes while parked", b.w.Passes(), passes)
	})
}

func TestWaitingForHandoffsIsParkedAndNotReported(t *testing.T) {
	var told journal
	waits := func(b *bench, pass int) engine.Hint {
		h := exhausted(b, pass)
		if h.Kind == engine.HintExhausted {
			h.Kind, h.Handoffs = engine.HintHandoff, 2
		}
		return h
	}
	inBubble(t, 10, 1, stuckWith(&told, waits), func(b *bench) {
		b.submit("big", 5)
		b.at(1000)
		equal(t, "passes", b.w.Passes(), 1)
		told.expect(t, "reports")
		list := b.w.Stalled()
		equal(t, "waiting ranks", len(list), 1)
		equal(t, "waits", list[0].Waits(), true)
		if label, ok := b.w.CancelHead(0); ok {
			t.Errorf("%s is cancelled", label)
		}
	})
}
