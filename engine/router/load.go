package router

// active is one placed request that has not ended.
type active struct {
	index     int      // of its rank
	sequence  []uint64 // sequence hashes of its complete prompt blocks
	prefill   int      // prompt tokens it still has to compute, in the router's view
	prompt    int      // tokens
	predicted int      // prompt tokens the router expects the rank to reuse
	admitted  bool
}

// book is the requests one rank is busy with.
type book struct {
	requests int
	prefill  int
	blocks   map[uint64]int32 // how many requests hold a prompt block
}

func (b *book) add(a *active) {
	b.requests++
	b.prefill += a.prefill
	for _, h := range a.sequence {
		b.blocks[h]++
	}
}

// prefilled notes that the prompt of a request was computed.
func (b *book) prefilled(a *active) {
	b.prefill -= a.prefill
	a.prefill = 0
}

func (b *book) remove(a *active) {
	b.prefilled(a)
	b.requests--
	for _, h := range a.sequence {
		if b.blocks[h]--; b.blocks[h] == 0 {
			delete(b.blocks, h)
		}
	}
}

// load returns what the rank is busy with, and what a prompt would add.
func (b *book) load(sequence []uint64) Load {
	shared := 0
	for shared < len(sequence) && b.blocks[sequence[shared]] > 0 {
		shared++
	}
	return Load{PrefillTokens: b.prefill, DecodeBlocks: len(b.blocks), Requests: b.requests,
		AdditionalBlocks: len(sequence) - shared}
}
