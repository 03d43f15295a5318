package modelcard

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mockbench/engine"
)

// Only what workers of one model may differ in changes.
func TestWithEngine(t *testing.T) {
	const card = `{"display_name":"m","kv_cache_block_size":64,"context_length":4096,` +
		`"runtime_config":{"total_kv_blocks":10,"max_num_seqs":256,"max_num_batched_tokens":8192,"kv_event_publishing_enabled":true,"data_parallel_size":2}}`
	c := engine.DefaultConfig(engine.VLLM)
	c.NumGPUBlocks, c.MaxNumSeqs, c.MaxNumBatchedTokens, c.BlockSize, c.EmitKVEvents = 20, 7, 512, 128, true
	c.EnablePrefixCaching = false
	got, err := WithEngine(json.RawMessage(card), c)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"display_name":"m","kv_cache_block_size":64,"context_length":4096,` +
		`"runtime_config":{"total_kv_blocks":20,"max_num_seqs":7,"max_num_batched_tokens":512,"kv_event_publishing_enabled":false,"data_parallel_size":2}}`
	var a, b any
	if json.Unmarshal(got, &a) != nil || json.Unmarshal([]byte(want), &b) != nil || !cmp.Equal(a, b) {
		t.Errorf("got %s", got)
	}
	if _, err := WithEngine(json.RawMessage(`{"runtime_config":7}`), c); err == nil {
		t.Error("a card without settings was taken")
	}
	c.MaxNumSeqs, c.MaxNumBatchedTokens, c.BlockSize = engine.Unlimited, engine.Unlimited, 16
	got, err = WithEngine(json.RawMessage(card), c)
	var r struct {
		Runtime Runtime `json:"runtime_config"`
	}
	if err != nil || json.Unmarshal(got, &r) != nil || r.Runtime.MaxNumSeqs != 20 || r.Runtime.MaxBatchedTokens != 320 {
		t.Errorf("without limits: %s, %v", got, err)
	}
}
