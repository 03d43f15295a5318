package eventplane

import (
	"strconv"
	"sync"
	"time"

	"mockbench/engine"
	"mockbench/engine/spawn"
	"mockbench/transport/wire"
)

// heartbeat is how long a rank may be silent before an empty message is sent for it.
const heartbeat = time.Second

// beatStep is the raster of heartbeats: they come at the nearest of its points, early or late by half of it at most.
const beatStep = 200 * time.Millisecond

// forwardQueue is how many passes may wait for the sink's goroutine; more are lost and counted.
const forwardQueue = 16 << 10

// forwardKeep is the longest list of passes whose memory is kept for reuse.
const forwardKeep = 256

// forwardSink publishes the metrics of every forward pass, and an empty message for each second in which a rank had
// none.
type forwardSink struct {
	worker    string // decimal
	firstRank int
	publisher *Publisher
	failed    func(error)

	mu      sync.Mutex
	pending []forwardPass
	lost    uint64
	closed  bool
	wake    chan struct{}
	done    chan struct{}

	// Owned by the goroutine.
	ranks   []rankForward
	taken   []forwardPass
	payload []byte
}

// forwardPass is what is kept of a pass record.
type forwardPass struct {
	rank    int
	metrics engine.ForwardPassMetrics
}

// rankForward is the state of one rank's messages.
type rankForward struct {
	counter uint64    // of the latest message; the first one has 1
	last    time.Time // when it was sent
}

func newForwardSink(worker uint64, firstRank, ranks int, p *Publisher, failed func(error)) *forwardSink {
	f := &forwardSink{worker: strconv.FormatUint(worker, 10), firstRank: firstRank, publisher: p, failed: failed,
		ranks: make([]rankForward, ranks), wake: make(chan struct{}, 1), done: make(chan struct{})}
	for r := range f.ranks {
		f.ranks[r].last = time.Now()
	}
	spawn.Go("forward pass metrics", f.run)
	return f
}

// Pass implements engine.Reader. Records of events between passes, and of passes without length or effect, say nothing
// about a forward pass.
func (f *forwardSink) Pass(p *engine.Pass) {
	if p.End == p.Start && len(p.Work) == 0 && len(p.Outputs) == 0 {
		return
	}
	f.mu.Lock()
	if len(f.pending) < forwardQueue {
		f.pending = append(f.pending, forwardPass{rank: p.Rank, metrics: p.FPM})
	} else {
		f.lost++
	}
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *forwardSink) run() {
	defer close(f.done)
	timer := time.NewTimer(time.Until(time.Now().Add(heartbeat).Round(beatStep)))
	defer timer.Stop()
	for {
		select {
		case <-f.wake:
		case now := <-timer.C:
			timer.Reset(f.beat(now))
		}
		if !f.publishPending() {
			return
		}
	}
}

// publishPending sends the metrics of all passes that wait and reports false once the sink is closed.
func (f *forwardSink) publishPending() bool {
	f.mu.Lock()
	f.pending, f.taken = f.taken[:0], f.pending
	closed := f.closed
	f.mu.Unlock()
	if len(f.taken) > 0 {
		now := time.Now()
		for i := range f.taken {
			f.publish(f.taken[i].rank, &f.taken[i].metrics, now)
		}
		if cap(f.taken) > forwardKeep {
			f.taken = nil
		}
	}
	return !closed
}

// beat sends an empty message for every rank that was silent and returns how long until the next one may be due. The
// sinks of all workers beat at the same moments, so that an idle process wakes up rarely.
func (f *forwardSink) beat(now time.Time) time.Duration {
	wait := heartbeat
	for rank := range f.ranks {
		left := heartbeat - now.Sub(f.ranks[rank].last)
		if left <= beatStep/2 {
			f.publish(rank, &engine.ForwardPassMetrics{}, now)
			left = heartbeat
		}
		wait = min(wait, left)
	}
	return time.Until(now.Add(wait).Round(beatStep))
}

func (f *forwardSink) publish(rank int, m *engine.ForwardPassMetrics, now time.Time) {
	r := &f.ranks[rank]
	r.counter++
	r.last = now
	f.payload = appendForward(f.payload[:0], f.worker, f.firstRank+rank, r.counter, m)
	if err := f.publisher.Publish(f.payload); err != nil {
		f.failed(err)
	}
}

func (f *forwardSink) close() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
	<-f.done
}

// dropped returns the number of passes that were lost because the goroutine did not get to them.
func (f *forwardSink) dropped() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lost
}

// appendForward adds a forward-pass-metrics payload.
func appendForward(b []byte, worker string, rank int, counter uint64, m *engine.ForwardPassMetrics) []byte {
	count := func(key string, n int) { b = wire.AppendUint(append(b, key...), uint64(n)) }
	number := func(key string, v float64) { b = wire.AppendFloat(append(b, key...), v) }
	b = append(b, "\x87\xa7version\x01\xa9worker_id"...)
	b = wire.AppendString(b, worker)
	count("\xa7dp_rank", rank)
	b = wire.AppendUint(append(b, "\xaacounter_id"...), counter)
	number("\xa9wall_time", m.Milliseconds/1000)

	b = append(b, "\xb2scheduled_requests\x87"...)
	count("\xb4num_prefill_requests", m.PrefillRequests)
	count("\xb2sum_prefill_tokens", m.PrefillTokens)
	number("\xb2var_prefill_length", m.PrefillLengthVar)
	count("\xb5sum_prefill_kv_tokens", m.PrefillKVTokens)
	count("\xb3num_decode_requests", m.DecodeRequests)
	count("\xb4sum_decode_kv_tokens", m.DecodeKVTokens)
	number("\xb4var_decode_kv_tokens", m.DecodeKVVar)

	b = append(b, "\xafqueued_requests\x86"...)
	count("\xb4num_prefill_requests", m.QueuedPrefills)
	count("\xb2sum_prefill_tokens", m.QueuedPrefillTokens)
	number("\xb2var_prefill_length", m.QueuedPrefillVar)
	count("\xb3num_decode_requests", m.QueuedDecodes)
	count("\xb4sum_decode_kv_tokens", m.QueuedDecodeKVTokens)
	number("\xb4var_decode_kv_tokens", m.QueuedDecodeKVVar)
	return b
}
