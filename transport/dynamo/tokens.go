package dynamo

import (
	"fmt"

	"mockbench/engine/outputs"
)

// Client tokens are drawn from this range. With the built-in tokenizer its ids are readable words.
const (
	firstToken = 1000
	tokenRange = 1000
)

// answer chooses the tokens that a client is shown.
type answer struct {
	planned   []uint32           // the whole answer, if it is known
	reasoning *outputs.Reasoning // if span is positive
	span      int                // tokens of the reasoning span
	seed      uint64
}

// token returns the k-th token, from 0. The same seed gives the same tokens.
func (a *answer) token(k int) uint32 {
	if k < len(a.planned) {
		return a.planned[k]
	}
	if id, ok := a.reasoning.Boundary(k, a.span); ok {
		return id
	}
	return firstToken + uint32(mix(a.seed+uint64(k))%tokenRange)
}

// answerSeed returns the seed of the n-th answer of a worker.
func answerSeed(seed uint64, worker int, n uint64) uint64 {
	return mix(mix(seed^uint64(worker)<<32) + n)
}

// mix is the output function of SplitMix64, a permutation of 64-bit words.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// replayAnnotation starts an annotation that names a recorded answer.
const replayAnnotation = "output_replay_id:"

func tooLong(prompt, limit int) string {
	return fmt.Sprintf("the prompt has %d tokens, the model takes at most %d and needs one for the answer", prompt, limit)
}
