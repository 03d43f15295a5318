package kv

// Log numbers the KV events of one rank and appends them to a list. It does nothing unless On.
type Log struct {
	On   bool
	To   *Events
	next uint64
}

// Next returns the number of the next event.
func (l *Log) Next() uint64 { return l.next }

// Continue makes id the number of the next event.
func (l *Log) Continue(id uint64) { l.next = id }

// Open appends an event without blocks. ID and Offset are the log's business.
func (l *Log) Open(e Event) {
	if !l.On {
		return
	}
	e.ID, e.Offset, e.Count = l.next, int32(len(l.To.Sequence)), 0
	l.next++
	l.To.List = append(l.To.List, e)
}

// Block adds a block to the event opened last.
func (l *Log) Block(sequence, local uint64) {
	if !l.On {
		return
	}
	l.To.List[len(l.To.List)-1].Count++
	l.To.Sequence = append(l.To.Sequence, sequence)
	l.To.Local = append(l.To.Local, local)
}

// Removed appends one event for all hashes, none if there are none.
func (l *Log) Removed(tier Tier, hashes []uint64) {
	if !l.On || len(hashes) == 0 {
		return
	}
	l.Open(Event{Kind: Removed, Tier: tier, Position: -1})
	for _, h := range hashes {
		l.Block(h, 0)
	}
}
