package recording

import (
	"encoding/binary"
	"slices"

	"mockbench/engine"
	"mockbench/ui/feed"
)

// maxBlocks bounds the blocks that the snapshots of one moment may unpack to.
const maxBlocks = 1 << 26

// position is how far a request was after the pass before.
type position struct{ done, length, total int }

// requests are the requests of each pass, in the order of the passes: those that follow on the pass before take a few
// bytes.
func (c *coder) requests(worker int, b *feed.Batch) {
	if c.reading {
		b.Items = nil
	}
	for i := range b.Frames {
		f := &b.Frames[i]
		at := place{worker, int(f.Rank)}
		before, now := c.items[at], make(map[string]position, f.Items)
		if c.reading && (f.Items < 0 || int(f.Items) > len(c.data)) {
			c.fail()
		}
		if c.reading {
			f.FirstItem = int32(len(b.Items))
		}
		for k := range f.Items {
			var it feed.Item
			if !c.reading {
				it = b.Items[f.FirstItem+k]
			}
			c.item(&it, before, now)
			if c.err != nil {
				set(c, &f.Items, k)
				break
			}
			if c.reading {
				b.Items = append(b.Items, it)
			}
		}
		c.items[at] = now
	}
}

// item is one request of a pass, its place relative to the one it had in the pass before.
func (c *coder) item(it *feed.Item, before, now map[string]position) {
	c.label(&it.Label)
	count(c, &it.Tokens)
	count(c, &it.Prompt)
	c.bool(&it.Fresh)
	p := before[it.Label]
	relative(c, &it.Done, p.done)
	relative(c, &it.Length, p.length)
	relative(c, &it.Total, p.total)
	now[it.Label] = position{it.Done, it.Length, it.Total}
}

func relative(c *coder, v *int, base int) {
	d := *v - base
	num(c, &d)
	if x := d + base; x >= 0 {
		set(c, v, x)
	} else {
		c.fail()
		set(c, v, 0)
	}
}

// shape is the state of the blocks in the snapshot before.
type shape struct{ blocks []engine.BlockState }

// snapshot is the state of one rank; its blocks are told by those that differ from the snapshot before.
func (c *coder) snapshot(worker int, s *engine.Snapshot) {
	count(c, &s.Rank)
	c.time(&s.Time)
	count(c, &s.BlockSize)
	at := place{worker, s.Rank}
	if c.shots[at] == nil {
		c.shots[at] = &shape{}
	}
	c.blocks(s, c.shots[at])
	list(c, &s.Evictions, count[int32])
	list(c, &s.Running, (*coder).state)
	list(c, &s.Waiting, (*coder).state)
	count(c, &s.Queued)
	list(c, &s.Deferred, (*coder).state)
	c.hint(&s.Wait)
	h := &s.Host
	for _, v := range []*int{&h.Capacity, &h.Resident, &h.Pending, &h.Pinned} {
		count(c, v)
	}
	c.bool(&h.Shared)
	c.time(&h.ComputeNotBefore)
	for _, v := range []*float64{&s.Ratio.Now, &s.Ratio.Min, &s.Ratio.Init} {
		c.float(v)
	}
	c.load(&s.Load)
}

// blocks is the number of blocks, then runs: how many blocks in a row changed in the same way, and how.
func (c *coder) blocks(s *engine.Snapshot, last *shape) {
	n := len(s.Blocks)
	count(c, &n)
	if n < 0 || c.reading && n > c.spare {
		c.fail()
		return
	}
	c.spare -= n
	if n != len(last.blocks) {
		last.blocks = make([]engine.BlockState, n)
	}
	if c.reading {
		s.Blocks = slices.Clone(last.blocks)
	}
	for i := 0; i < n && c.err == nil; {
		change, run := engine.BlockState(0), 0
		if !c.reading {
			change = s.Blocks[i] ^ last.blocks[i]
			for run = 1; i+run < n && s.Blocks[i+run]^last.blocks[i+run] == change; run++ {
			}
		}
		count(c, &run)
		small(c, &change, 8)
		if run < 1 || run > n-i {
			c.fail()
			return
		}
		if c.reading {
			for k := i; k < i+run; k++ {
				if s.Blocks[k] ^= change; s.Blocks[k] > engine.BlockHost {
					c.fail()
					return
				}
			}
		}
		i += run
	}
	copy(last.blocks, s.Blocks)
	if c.reading {
		s.Counts = [engine.BlockHost + 1]int{}
		for _, b := range s.Blocks {
			s.Counts[b]++
		}
	}
}

// state is one row of a queue.
func (c *coder) state(r *engine.RequestState) {
	optional(c, &r.Request, (*coder).request)
	if r.Request == nil {
		c.fail()
		set(c, &r.Request, &engine.Request{})
	}
	small(c, &r.Phase, int(engine.PhaseLoading)+1)
	for _, v := range []*int{&r.Computed, &r.Length, &r.Generated, &r.Cached, &r.Blocks} {
		count(c, v)
	}
	c.time(&r.Since)
}

// length stands for a prompt of which only the number of tokens is recorded.
type length int

func (n length) Len() int                { return int(n) }
func (length) At(int) uint32             { return 0 }
func (length) BlockHash(_, _ int) uint64 { return 0 }

// request is what the screen shows of a request: its name and what it asks for.
func (c *coder) request(r *engine.Request) {
	var prompt, output int
	if !c.reading {
		prompt, output = r.PromptLen(), r.OutputLimit()
	}
	n := c.label(&r.Label)
	count(c, &prompt)
	count(c, &output)
	c.time(&r.Arrival)
	if c.reading {
		r.Text, r.MaxOutput = length(prompt), output
		binary.LittleEndian.PutUint64(r.ID[:], uint64(n)) // tells it from others
	}
}
