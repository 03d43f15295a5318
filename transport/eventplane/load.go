package eventplane

import (
	"sync"
	"time"

	"mockbench/engine"
	"mockbench/engine/spawn"
	"mockbench/transport/wire"
)

// settle is how long a load must stay the same before it is published.
const settle = time.Millisecond

// loadSink publishes the number of device blocks that requests hold, whenever it changed and stayed so for a moment.
// An idle rank publishes nothing.
type loadSink struct {
	worker    uint64
	firstRank int
	publisher *Publisher
	failed    func(error)

	mu     sync.Mutex
	ranks  []rankLoad
	closed bool
	wake   chan struct{}
	done   chan struct{}
}

// rankLoad is what is known of one rank.
type rankLoad struct {
	seen    bool
	blocks  int
	due     time.Time // when blocks is to be published
	pending bool
}

func newLoadSink(worker uint64, firstRank, ranks int, p *Publisher, failed func(error)) *loadSink {
	l := &loadSink{worker: worker, firstRank: firstRank, publisher: p, failed: failed, ranks: make([]rankLoad, ranks),
		wake: make(chan struct{}, 1), done: make(chan struct{})}
	spawn.Go("kv metrics", l.run)
	return l
}

// Pass implements engine.Reader. Load is told of every change, those of passes included.
func (l *loadSink) Pass(*engine.Pass) {}

// Load takes in the load of a rank.
func (l *loadSink) Load(rank int, _ engine.Time, load engine.Load) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := &l.ranks[rank]
	if r.seen && r.blocks == load.ActiveBlocks {
		return
	}
	*r = rankLoad{seen: true, blocks: load.ActiveBlocks, pending: true, due: time.Now().Add(settle)}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *loadSink) run() {
	defer close(l.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		wait, ok := l.publishDue()
		if !ok {
			return
		}
		var rings <-chan time.Time
		if wait > 0 {
			timer.Reset(wait)
			rings = timer.C
		}
		select {
		case <-rings:
		case <-l.wake:
		}
	}
}

// publishDue publishes the loads that are due and returns how long until the next one is, 0 if there is none; not ok
// once the sink is closed. Closing publishes what is pending.
func (l *loadSink) publishDue() (wait time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for rank := range l.ranks {
		r := &l.ranks[rank]
		if !r.pending {
			continue
		}
		if left := r.due.Sub(now); left > 0 && !l.closed {
			if wait == 0 || left < wait {
				wait = left
			}
			continue
		}
		r.pending = false
		if err := l.publisher.Publish(appendLoad(nil, l.worker, l.firstRank+rank, r.blocks)); err != nil {
			l.failed(err)
		}
	}
	return wait, !l.closed
}

func (l *loadSink) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
	<-l.done
}

// appendLoad adds a kv_metrics payload.
func appendLoad(b []byte, worker uint64, rank, blocks int) []byte {
	b = append(b, "\x85\xa9worker_id"...)
	b = wire.AppendUint(b, worker)
	b = append(b, "\xa7dp_rank"...)
	b = wire.AppendUint(b, uint64(rank))
	b = append(b, "\xb4active_decode_blocks\xc0\xb5active_prefill_tokens\xc0\xaekv_used_blocks"...)
	return wire.AppendUint(b, uint64(blocks))
}
