package replay

import (
	"mockbench/engine/trace"
	"mockbench/kv"
)

// texts makes the prompts of one trace for engines with one block size. What it holds does not change, so that workers on
// several cores may share it.
type texts struct {
	trace     *trace.Trace
	blockSize int      // of the engine
	equal     []uint64 // hash of an engine block full of one id, by id
}

func newTexts(t *trace.Trace, blockSize int) *texts {
	x := &texts{trace: t, blockSize: blockSize, equal: make([]uint64, t.IDs)}
	tokens := make([]uint32, blockSize)
	for id := range x.equal {
		for i := range tokens {
			tokens[i] = uint32(id)
		}
		x.equal[id] = kv.BlockHash(tokens)
	}
	return x
}

// prompt is a prompt of repeated ids. It implements engine.Text.
type prompt struct {
	texts  *texts
	ids    []uint32
	length int
}

func (p *prompt) Len() int { return p.length }

func (p *prompt) At(i int) uint32 { return p.ids[i/p.texts.trace.BlockSize] }

// BlockHash hashes a block only if it is not full of one id.
func (p *prompt) BlockHash(block, size int) uint64 {
	from, last := block*size, (block+1)*size-1
	first := from / p.texts.trace.BlockSize
	if size == p.texts.blockSize && first == last/p.texts.trace.BlockSize {
		return p.texts.equal[p.ids[first]]
	}
	tokens := make([]uint32, 0, 256)
	for i := from; i <= last; i++ {
		tokens = append(tokens, p.At(i))
	}
	return kv.BlockHash(tokens)
}
