package eventplane

import (
	"mockbench/kv"
	"mockbench/transport/wire"
)

// Limits of merging events and of putting events into one message.
const (
	mergeBlocks   = 128
	messageEvents = 128
	messageBlocks = 8192
)

// history is what a rank's events have told so far: the number of the latest event, the newest events and the present
// content of each tier.
type history struct {
	last  uint64 // id of the latest event; the first one has 1
	ring  ring
	tiers [len(tierNames)]index
}

// pipeline turns the events of one rank, group by group, into numbered events and messages.
type pipeline struct {
	source  source
	history history
	merged  []kv.Event
	message message
}

// message collects the events of one message.
type message struct {
	limit   int // bytes of the payload, 0 = any
	events  int
	blocks  int
	encoded []byte // events, without the head of their array
	payload []byte
	publish func(payload []byte)
}

// group takes in events that became visible at the same moment. It changes the list: removals that do not matter are
// taken out.
func (p *pipeline) group(events *kv.Events) {
	p.merged = appendMerged(p.merged[:0], events)
	for _, e := range p.merged {
		sequence, local := events.Blocks(e)
		if e.Kind == kv.Removed {
			sequence = p.lastCopies(e.Tier, sequence)
			if len(sequence) == 0 {
				continue
			}
			e.Count = int32(len(sequence))
		} else {
			p.history.tiers[e.Tier].store(e, sequence, local)
		}
		p.history.last++
		e.ID = p.history.last
		p.history.ring.add(e, sequence, local)
		p.message.add(p.source, e, sequence, local)
	}
	p.message.flush()
}

// lastCopies keeps, in place, the hashes of which the last copy is removed.
func (p *pipeline) lastCopies(tier kv.Tier, sequence []uint64) []uint64 {
	kept := sequence[:0]
	for _, hash := range sequence {
		if p.history.tiers[tier].remove(hash) {
			kept = append(kept, hash)
		}
	}
	return kept
}

// appendMerged appends the events of a group, neighbours merged where one continues the other. The blocks of
// neighbours must be neighbours too.
func appendMerged(merged []kv.Event, events *kv.Events) []kv.Event {
	open := false // the latest event may take more
	for _, e := range events.List {
		if n := len(merged); open && continues(events, merged[n-1], e) {
			merged[n-1].Count += e.Count
			open = merged[n-1].Count < mergeBlocks
			continue
		}
		merged = append(merged, e)
		open = e.Count < mergeBlocks
	}
	return merged
}

func continues(events *kv.Events, pending, next kv.Event) bool {
	if next.Count >= mergeBlocks || pending.Tier != next.Tier || pending.Kind != next.Kind ||
		pending.Offset+pending.Count != next.Offset {
		return false
	}
	if next.Kind == kv.Removed {
		return true
	}
	return next.HasParent && pending.Count > 0 && next.Parent == events.Sequence[pending.Offset+pending.Count-1]
}

// add puts an event into the message; a message that would become too large is published first.
func (m *message) add(s source, e kv.Event, sequence, local []uint64) {
	before := len(m.encoded)
	m.encoded = s.appendEvent(m.encoded, e, sequence, local, nil)
	full := m.events == messageEvents || m.blocks+len(sequence) > messageBlocks || m.limit > 0 && len(m.encoded)+5 > m.limit
	if m.events > 0 && full {
		event := m.encoded[before:]
		m.send(m.encoded[:before])
		m.encoded = append(m.encoded[:0], event...)
	}
	m.events++
	m.blocks += len(sequence)
}

// flush publishes what was collected.
func (m *message) flush() {
	if m.events > 0 {
		m.send(m.encoded)
		m.encoded = m.encoded[:0]
	}
}

func (m *message) send(events []byte) {
	m.payload = append(wire.AppendArray(m.payload[:0], m.events), events...)
	m.events, m.blocks = 0, 0
	m.publish(m.payload)
}
