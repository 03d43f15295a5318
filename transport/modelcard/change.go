package modelcard

import (
	"encoding/json"
	"fmt"

	"mockbench/engine"
)

// WithEngine returns a card, in JSON, that says what the engine is like now: the settings in which the workers of one
// model may differ. All else stays. A limit that is switched off is what the pool can hold.
func WithEngine(card json.RawMessage, c engine.Config) (json.RawMessage, error) {
	var all, runtime map[string]json.RawMessage
	if err := json.Unmarshal(card, &all); err != nil {
		return nil, fmt.Errorf("model card: %w", err)
	}
	if err := json.Unmarshal(all["runtime_config"], &runtime); err != nil {
		return nil, fmt.Errorf("model card: runtime_config: %w", err)
	}
	c.MaxNumSeqs = limited(c.MaxNumSeqs, c.NumGPUBlocks)
	c.MaxNumBatchedTokens = limited(c.MaxNumBatchedTokens, c.NumGPUBlocks*c.BlockSize)
	for key, v := range map[string]any{"total_kv_blocks": c.NumGPUBlocks, "max_num_seqs": c.MaxNumSeqs,
		"max_num_batched_tokens":      c.MaxNumBatchedTokens,
		"kv_event_publishing_enabled": c.EnablePrefixCaching && c.EmitKVEvents && c.Role != engine.DecodeRole} {
		text, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		runtime[key] = text
	}
	text, err := json.Marshal(runtime)
	if err != nil {
		return nil, err
	}
	all["runtime_config"] = text
	return json.Marshal(all)
}

func limited(n uint64, most int) uint64 {
	if n == engine.Unlimited {
		return uint64(most)
	}
	return n
}
