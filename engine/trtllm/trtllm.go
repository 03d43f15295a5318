// Package trtllm schedules one rank in the manner of TensorRT-LLM: the passes are vLLM's, but a request is admitted only
// if the pool can hold it to its last token beside everything that runs, so nothing is ever preempted.
package trtllm

import (
	"mockbench/engine"
	"mockbench/engine/vllm"
)

// New returns an idle rank. The configuration has been validated.
func New(cfg engine.Config, o vllm.Options) *vllm.Scheduler {
	o.Policy = guaranteed{maxModelLen: cfg.MaxModelLen, tokens: cfg.NumGPUBlocks * cfg.BlockSize}
	return vllm.New(cfg, o)
}

// guaranteed is the capacity policy guaranteed_no_evict.
type guaranteed struct {
	maxModelLen int // 0: no limit
	tokens      int // capacity of the pool
}

// OutputLimit implements vllm.Policy: the output is cut to what fits the model length and the pool. A prompt that fills
// the pool is left alone, it is rejected later.
func (g guaranteed) OutputLimit(prompt, asked int) int {
	if g.maxModelLen > 0 {
		asked = max(0, min(asked, g.maxModelLen-prompt))
	}
	if prompt < g.tokens {
		asked = min(asked, g.tokens-prompt)
	}
	return asked
}

// Size implements vllm.Policy.
func (guaranteed) Size(h vllm.Head) int { return h.Final }

// ToCompletion implements vllm.Policy.
func (guaranteed) ToCompletion() bool { return true }
