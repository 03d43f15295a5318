package eventplane

import (
	"sync"

	"mockbench/engine"
	"mockbench/engine/spawn"
	"mockbench/kv"
)

// intakeBlocks is how many blocks may wait for the sink's goroutine. Beyond that the driver does the work itself, so
// that memory stays bounded and the rank's history stays complete.
const intakeBlocks = 256 << 10

// GroupSink takes the KV events of one rank that became visible at the same moment. It is called from one goroutine
// at a time, must not wait, and keeps nothing of the list.
type GroupSink interface{ Group(events *kv.Events) }

// kvSink is the reader of one rank's KV events. It feeds the event plane, and before that any other wire.
type kvSink struct {
	rank       int
	deviceOnly bool // keep host events off the event plane
	wires      []GroupSink

	mu     sync.Mutex // guards what the driver and the goroutine exchange
	intake intake
	wake   chan struct{}
	closed bool
	done   chan struct{}

	work     sync.Mutex // guards all below; taken before mu
	taken    intake
	group    kv.Events
	pipeline pipeline
	failed   func(error)
}

// intake is a list of groups, their events in one flat list.
type intake struct {
	events kv.Events
	ends   []groupEnd
}

// groupEnd is where a group ends in the flat list.
type groupEnd struct{ events, tokens int }

// newKVSink returns a sink that publishes through p, which may be nil, and starts its goroutine. failed is told of messages that are
// lost because the publisher refused them.
func newKVSink(rank int, s source, p *Publisher, wires []GroupSink, deviceOnly bool, failed func(error)) *kvSink {
	k := &kvSink{rank: rank, deviceOnly: deviceOnly, wires: wires, wake: make(chan struct{}, 1),
		done: make(chan struct{}), pipeline: pipeline{source: s}, failed: failed}
	k.pipeline.message.publish = func([]byte) {}
	if p != nil {
		k.pipeline.message = message{limit: p.PayloadLimit(), publish: func(payload []byte) {
			if err := p.Publish(payload); err != nil {
				k.failed(err)
			}
		}}
	}
	spawn.Go("kv events", k.run)
	return k
}

// Pass implements engine.Reader.
func (k *kvSink) Pass(p *engine.Pass) {
	if p.Rank != k.rank || len(p.Events.List) == 0 {
		return
	}
	k.mu.Lock()
	k.intake.add(&p.Events)
	full := len(k.intake.events.Sequence) > intakeBlocks
	k.mu.Unlock()
	if full {
		k.flush()
		return
	}
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

func (k *kvSink) run() {
	defer close(k.done)
	for range k.wake {
		k.mu.Lock()
		closed := k.closed // read before the flush, which may miss what came while it ran
		k.mu.Unlock()
		k.flush()
		if closed {
			return
		}
	}
}

// close publishes what is left. The driver must have stopped.
func (k *kvSink) close() {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	select {
	case k.wake <- struct{}{}:
	default:
	}
	<-k.done
}

// flush publishes all groups that wait, in order.
func (k *kvSink) flush() {
	k.work.Lock()
	defer k.work.Unlock()
	k.mu.Lock()
	k.intake, k.taken = k.taken, k.intake
	k.mu.Unlock()
	var from groupEnd
	for _, end := range k.taken.ends {
		k.taken.group(&k.group, from, end)
		for _, w := range k.wires {
			w.Group(&k.group)
		}
		if k.deviceOnly {
			keepDevice(&k.group)
		}
		k.pipeline.group(&k.group)
		from = end
	}
	k.taken.reset()
}

// keepDevice takes host events out of a list.
func keepDevice(events *kv.Events) {
	kept := events.List[:0]
	for _, e := range events.List {
		if e.Tier == kv.Device {
			kept = append(kept, e)
		}
	}
	events.List = kept
}

// add copies a group to the end of the list.
func (n *intake) add(group *kv.Events) {
	e := &n.events
	for _, event := range group.List {
		sequence, local := group.Blocks(event)
		event.Offset = int32(len(e.Sequence))
		e.List = append(e.List, event)
		e.Sequence = append(e.Sequence, sequence...)
		e.Local = append(e.Local, local...)
	}
	e.Tokens = append(e.Tokens, group.Tokens...)
	n.ends = append(n.ends, groupEnd{events: len(e.List), tokens: len(e.Tokens)})
}

// group sets dst to one group of the list. It shares the memory of the blocks.
func (n *intake) group(dst *kv.Events, from, end groupEnd) {
	dst.List = append(dst.List[:0], n.events.List[from.events:end.events]...)
	dst.Sequence, dst.Local = n.events.Sequence, n.events.Local
	dst.Tokens = n.events.Tokens[from.tokens:end.tokens]
}

// reset empties the list. Memory that a burst took is given back.
func (n *intake) reset() {
	if cap(n.events.Sequence) > intakeBlocks/4 {
		*n = intake{}
		return
	}
	n.events.Reset()
	n.ends = n.ends[:0]
}
