package settings

import (
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"

	"mockbench/profiles"
)

// kvBytes returns the size of the cached values of a token: as given, else computed from the model, else nil.
func (r *resolver) kvBytes() (fmt.Stringer, error) {
	if v := r.v.Get("--kv-bytes-per-token"); v.Given() {
		return v.Int, nil
	}
	path := r.s.Model.Path
	if path == "" {
		return nil, nil
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return nil, nil // a hub id; whether it can be found is the model card's business
	}
	data, err := os.ReadFile(filepath.Join(path, "config.json"))
	if err != nil {
		return nil, nil
	}
	n, ok := KVBytesPerToken(data, r.v.Text("--kv-cache-dtype"))
	if !ok {
		r.warn("the size of cached values is unknown for this model, give --kv-bytes-per-token if transfers or host offload matter")
		return nil, nil
	}
	r.warnOfSize(data, n)
	return big.NewInt(n), nil
}

// layoutKeys are where a model's text part may be described, in the order they are searched.
var layoutKeys = []string{"text_config", "llm_config", "language_config", "decoder", "thinker_config"}

// layoutDepth is how deep descriptions may be nested.
const layoutDepth = 3

// KVBytesPerToken computes the size from a config.json: layers x keys and values x heads x head size x bytes. It is
// false if the layout is not one it knows. The head size is hidden size by heads, as the reference computes it, even
// where the model says otherwise.
func KVBytesPerToken(config []byte, dtype string) (int64, bool) {
	o, err := profiles.ParseJSON("config.json", config)
	if err != nil {
		return 0, false
	}
	return layoutBytes(o, dtype, layoutDepth)
}

func layoutBytes(o *profiles.Object, dtype string, depth int) (int64, bool) {
	layers, ok1 := wholeOf(o, "num_hidden_layers")
	heads, ok2 := wholeOf(o, "num_attention_heads")
	hidden, ok3 := wholeOf(o, "hidden_size")
	if ok1 && ok2 && ok3 {
		if heads == 0 {
			return 0, false
		}
		kvHeads := heads
		for _, key := range []string{"num_key_value_heads", "num_kv_heads"} {
			if v, _ := o.Get(key); v == nil {
				continue
			}
			n, ok := wholeOf(o, key)
			if !ok {
				return 0, false
			}
			kvHeads = n
			break
		}
		return layers * 2 * kvHeads * (hidden / heads) * valueBytes(o, dtype), true
	}
	if depth == 0 {
		return 0, false
	}
	for _, key := range layoutKeys {
		if v, _ := o.Get(key); v != nil {
			if inner, ok := v.(*profiles.Object); ok {
				if n, ok := layoutBytes(inner, dtype, depth-1); ok {
					return n, true
				}
			}
		}
	}
	return 0, false
}

func wholeOf(o *profiles.Object, key string) (int64, bool) {
	v, _ := o.Get(key)
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	i, err := n.Int64()
	return i, err == nil
}

// valueBytes returns the size of one cached value. fp8_e5m2 counts as two bytes, like every word that is not listed,
// because the reference counts it so.
func valueBytes(o *profiles.Object, dtype string) int64 {
	if dtype == "auto" {
		dtype = "float16"
		for _, key := range []string{"dtype", "torch_dtype"} {
			if v, _ := o.Get(key); v != nil {
				dtype, _ = v.(string)
				break
			}
		}
	}
	switch strings.TrimPrefix(dtype, "torch.") {
	case "float32":
		return 4
	case "float8_e4m3fn", "float8_e5m2", "fp8", "fp8_ds_mla", "fp8_e4m3", "fp8_inc", "int8":
		return 1
	}
	return 2
}

// warnOfSize tells where the computed size is known to be off.
func (r *resolver) warnOfSize(config []byte, n int64) {
	o, err := profiles.ParseJSON("config.json", config)
	if err != nil {
		return
	}
	hidden, _ := wholeOf(o, "hidden_size")
	heads, _ := wholeOf(o, "num_attention_heads")
	if size, ok := wholeOf(o, "head_dim"); ok && heads > 0 && size != hidden/heads && hidden > 0 {
		r.warn("cached values are taken as %d bytes a token although the model's head size is %d, not %d; --kv-bytes-per-token %d would be exact",
			n, size, hidden/heads, n/(hidden/heads)*size)
	}
	if _, ok := o.Get("kv_lora_rank"); ok {
		r.warn("cached values are taken as %d bytes a token although the model compresses them, see --kv-bytes-per-token", n)
	}
	if r.v.Text("--kv-cache-dtype") == "fp8_e5m2" {
		r.warn("fp8_e5m2 values are taken as 2 bytes each, --kv-bytes-per-token %d would be exact", n/2)
	}
}
