package report

import (
	"time"

	"mockbench/engine"
)

// ledger is the sums of a run, of one worker or of several.
type ledger struct {
	submitted, completed, rejected, cancelled, unfinished int
	input, output, emitted                                uint64
	reusedFirst, reusedMax                                uint64
	committed, recomputed                                 uint64
	preemptions, retractions, stalls                      int
	passes, hostStored, hostLoaded                        uint64
	drafts                                                engine.Drafts

	blocks, peak          int     // peak of active blocks
	activeTime, blockTime float64 // blocks * milliseconds
	peakShare             float64 // greatest share of active blocks of any one worker
	slip                  time.Duration

	good, keptTTFT      int
	goodOutput, keptITL uint64

	ttft, tpot, e2e, queue distribution
	itl                    sketch
}

// ledger returns a copy of the sums at a time.
func (m *meter) ledger(now engine.Time) ledger {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.flush()
	m.advance(now)
	var l ledger
	l.merge(&m.total)
	l.unfinished = len(m.requests)
	if l.blocks > 0 {
		l.peakShare = float64(l.peak) / float64(l.blocks)
	}
	return l
}

// merge adds the sums of another worker. Its buffers stay its own.
func (l *ledger) merge(o *ledger) {
	l.mergeRequests(o)
	l.mergeWork(o)
}

// mergeRequests adds what became of requests.
func (l *ledger) mergeRequests(o *ledger) {
	l.submitted += o.submitted
	l.completed += o.completed
	l.rejected += o.rejected
	l.cancelled += o.cancelled
	l.unfinished += o.unfinished
	l.input += o.input
	l.output += o.output
	l.emitted += o.emitted
	l.reusedFirst += o.reusedFirst
	l.reusedMax += o.reusedMax
	l.good += o.good
	l.keptTTFT += o.keptTTFT
	l.goodOutput += o.goodOutput
	l.keptITL += o.keptITL
	l.ttft.merge(&o.ttft)
	l.tpot.merge(&o.tpot)
	l.e2e.merge(&o.e2e)
	l.queue.merge(&o.queue)
	l.itl.merge(&o.itl)
}

// mergeWork adds what a worker did for them.
func (l *ledger) mergeWork(o *ledger) {
	l.committed += o.committed
	l.recomputed += o.recomputed
	l.preemptions += o.preemptions
	l.retractions += o.retractions
	l.stalls += o.stalls
	l.passes += o.passes
	l.hostStored += o.hostStored
	l.hostLoaded += o.hostLoaded
	l.drafts.Accepted += o.drafts.Accepted
	l.drafts.Forwards += o.drafts.Forwards
	l.blocks += o.blocks
	l.peak += o.peak
	l.activeTime += o.activeTime
	l.blockTime += o.blockTime
	l.peakShare = max(l.peakShare, o.peakShare)
	l.slip += o.slip
}

// figures returns what a report says of the sums.
func (l *ledger) figures(o Options, f Final) Figures {
	duration := float64(f.Now - o.Start)
	seconds := max(duration/1000, 1e-9)
	out := Figures{
		Requests: l.submitted, Completed: l.completed, Rejected: l.rejected, Cancelled: l.cancelled, Unfinished: l.unfinished,
		InputTokens: l.input, OutputTokens: l.output, Emitted: l.emitted,
		DurationMS: duration, WallMS: f.Wall.Seconds() * 1000,
		RequestsPerSecond: float64(l.completed) / seconds, InputPerSecond: float64(l.input) / seconds,
		OutputPerSecond: float64(l.output) / seconds, TotalPerSecond: float64(l.input+l.output) / seconds,
		HitRate: ratio(l.reusedFirst, l.input), ReusedRatio: ratio(l.reusedMax, l.input),
		CommittedPrefill: l.committed, Recomputed: l.recomputed,
		Preemptions: l.preemptions, Retractions: l.retractions, Passes: l.passes,
		HostStored: l.hostStored, HostLoaded: l.hostLoaded, AcceptanceLength: ratio(l.drafts.Accepted, l.drafts.Forwards),
		Blocks: l.blocks, Stalls: l.stalls, ClockSlipMS: l.slip.Seconds() * 1000,
		TTFT: l.ttft.stats(), TPOT: l.tpot.stats(), ITL: l.itl.stats(), E2E: l.e2e.stats(), Queue: l.queue.stats(),
	}
	if l.blocks > 0 {
		peak := l.peakShare
		out.PeakOccupancy = &peak
		out.MeanOccupancy = ratio(l.activeTime, l.blockTime)
	}
	if o.Limits != (Limits{}) {
		out.Goodput = l.goodput(o.Limits, seconds)
	}
	return out
}

func (l *ledger) goodput(limits Limits, seconds float64) *Goodput {
	g := &Goodput{LimitTTFT: limits.TTFT, LimitITL: limits.ITL, LimitE2E: limits.E2E, Completed: l.good,
		RequestsPerSecond: float64(l.good) / seconds, OutputPerSecond: float64(l.goodOutput) / seconds,
		Attainment: ratio(l.good, l.completed)}
	if limits.TTFT > 0 {
		g.AttainmentTTFT = ratio(uint64(l.keptTTFT), l.ttft.n)
	}
	if limits.ITL > 0 {
		g.AttainmentITL = ratio(l.keptITL, l.itl.n)
	}
	return g
}

// ratio returns nil if there is nothing to divide by.
func ratio[T int | uint64 | float64](part, whole T) *float64 {
	if whole == 0 {
		return nil
	}
	r := float64(part) / float64(whole)
	return &r
}
