package sglang

import "mockbench/kv"

// ledger knows which pages have been announced as stored, and under which sequence hash. A hash is on the wire while
// at least one page carries it.
type ledger struct {
	hash      []uint64 // by page
	announced []bool   // by page
	holders   map[uint64]int32
}

func newLedger(pages int) ledger {
	return ledger{hash: make([]uint64, pages), announced: make([]bool, pages), holders: map[uint64]int32{}}
}

// announce tells that pages from..to-1 of q hold complete content. The first page whose hash nobody carried yet opens
// a stored event; it and all later pages of the range are its blocks.
func (s *Scheduler) announce(q *sequence, from, to int) {
	if !s.reuse {
		return
	}
	open := false
	for i := from; i < to; i++ {
		page := q.pages[i]
		if s.pages.announced[page] {
			continue
		}
		local := s.hashesOf(q, i+1)[i]
		hash, parent, hasParent := local, uint64(0), i > 0
		if hasParent {
			parent = s.pages.hash[q.pages[i-1]]
			hash = kv.SequenceHash(parent, local)
		}
		s.pages.announced[page], s.pages.hash[page] = true, hash
		s.pages.holders[hash]++
		if !open && s.pages.holders[hash] == 1 {
			open = true
			s.pass.events.Open(kv.Event{Kind: kv.Stored, HasParent: hasParent, Parent: parent, Position: -1})
		}
		if open {
			s.pass.events.Block(hash, local)
			if s.cfg.EmitKVTokenIDs && s.pass.events.On {
				to := s.pass.events.To
				to.Tokens = append(to.Tokens, s.pageTokens(q, i)...)
			}
		}
	}
}

// retract forgets pages that lost their content. One removed event names the hashes that nobody carries any more.
func (s *Scheduler) retract(pages []int32) {
	open := false
	for _, page := range pages {
		if !s.pages.announced[page] {
			continue
		}
		hash := s.pages.hash[page]
		s.pages.announced[page] = false
		s.pages.holders[hash]--
		if s.pages.holders[hash] > 0 {
			continue
		}
		delete(s.pages.holders, hash)
		if !open {
			open = true
			s.pass.events.Open(kv.Event{Kind: kv.Removed, Position: -1})
		}
		s.pass.events.Block(hash, 0)
	}
}
