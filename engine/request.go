package engine

import "mockbench/kv"

// ID is the 128-bit identity of a request, in the byte order of a UUID's text. Synthetic output tokens derive from it.
type ID [16]byte

// Request is one request as its submitter made it. A scheduler reads it and never writes to it; the submitter leaves
// it alone until the request is finished or cancelled.
type Request struct {
	ID        ID
	Key       int    // the submitter's own number for the request, repeated in records; schedulers never look at it
	Label     string // name shown to people
	Prompt    []uint32
	Text      Text     // stands for Prompt if not nil: a prompt that is not spelled out
	MaxOutput int      // output tokens asked for
	Output    []uint32 // exact output, nil if not planned; its length, 0 included, then replaces MaxOutput
	Arrival   Time     // when the request arrived; queue time and TTFT count from here
}

// OutputLimit returns the number of output tokens asked for: planned ones, else MaxOutput.
func (r *Request) OutputLimit() int {
	if r.Output != nil {
		return len(r.Output)
	}
	return r.MaxOutput
}

// Text is a prompt that can be asked for its tokens and block hashes, so that nobody needs to spell out a long prompt
// that repeats itself. It must not change while a scheduler holds the request.
type Text interface {
	Len() int                              // tokens
	At(i int) uint32                       // token at a position
	BlockHash(block, blockSize int) uint64 // local hash of a complete block
}

// PromptLen returns the number of prompt tokens.
func (r *Request) PromptLen() int {
	if r.Text != nil {
		return r.Text.Len()
	}
	return len(r.Prompt)
}

// PromptToken returns the prompt token at a position.
func (r *Request) PromptToken(i int) uint32 {
	if r.Text != nil {
		return r.Text.At(i)
	}
	return r.Prompt[i]
}

// PromptBlockHash returns the local hash of a complete block of the prompt.
func (r *Request) PromptBlockHash(block, blockSize int) uint64 {
	if r.Text != nil {
		return r.Text.BlockHash(block, blockSize)
	}
	return kv.BlockHash(r.Prompt[block*blockSize : (block+1)*blockSize])
}

// AppendPromptHashes appends the local and sequence hashes of the complete blocks of the prompt.
func (r *Request) AppendPromptHashes(local, sequence []uint64, blockSize int) (locals, sequences []uint64) {
	if r.Text == nil {
		return kv.AppendHashes(local, sequence, r.Prompt, blockSize)
	}
	var parent uint64
	for block := range r.Text.Len() / blockSize {
		hash := r.Text.BlockHash(block, blockSize)
		local = append(local, hash)
		if block > 0 {
			hash = kv.SequenceHash(parent, hash)
		}
		sequence = append(sequence, hash)
		parent = hash
	}
	return local, sequence
}
