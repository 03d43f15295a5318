// Package kvbytes reads from a model's config.json how many bytes the cached keys and values of a token take.
package kvbytes

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"os"
	"path/filepath"
	"strings"

	"mockbench/profiles"
)

// Layout is the shape of a model's KV cache.
type Layout struct {
	Layers, Heads, KVHeads, Hidden int64
	ValueBytes                     int64 // of one cached value
	HeadDim                        int64 // size of a head as the model gives it, 0 if it does not
	Latent                         bool  // the model caches a compressed form (MLA)
	Bytes                          int64 // of a token, as the reference computes it
}

// Exact returns the bytes of a token with the head size that the model gives; 0 if it gives none.
func (l *Layout) Exact() int64 { return l.Layers * 2 * l.KVHeads * l.HeadDim * l.ValueBytes }

// mostBytes bounds the files that are read; real ones have some kilobytes.
const mostBytes = 16 << 20

// Read reads the config.json in a model's folder. dtype is the type of cached values, "auto" for the model's own.
func Read(dir, dtype string) (*Layout, error) {
	path := filepath.Join(dir, "config.json")
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: no such file", path)
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > mostBytes:
		return nil, fmt.Errorf("%s: must be a regular file of at most %d MiB", path, mostBytes>>20)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	l, err := Parse(data, dtype)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return l, nil
}

// wrappers are where a model's text part may be described, in the order they are searched.
var wrappers = []string{"text_config", "llm_config", "language_config", "decoder", "thinker_config"}

// deepest is how deep descriptions may be nested.
const deepest = 3

var errLayout = errors.New(
	"num_hidden_layers, num_attention_heads and hidden_size are not given together as whole numbers")

// Parse reads the text of a config.json. Bytes is layers x 2 (keys and values) x KV heads x head size x value size. The
// head size is hidden size by heads, as the reference computes it, even where the model says otherwise or compresses its
// cache, and tensor parallelism does not divide it.
func Parse(config []byte, dtype string) (*Layout, error) {
	o, err := profiles.ParseJSON("config", config)
	if err != nil {
		return nil, err
	}
	inner := find(o, deepest)
	if inner == nil {
		return nil, errLayout
	}
	return layoutOf(inner, dtype)
}

// find returns the first object that gives all sizes, searching depth first.
func find(o *profiles.Object, depth int) *profiles.Object {
	_, layers := whole(o, "num_hidden_layers")
	_, heads := whole(o, "num_attention_heads")
	_, hidden := whole(o, "hidden_size")
	if layers && heads && hidden {
		return o
	}
	if depth == 0 {
		return nil
	}
	for _, key := range wrappers {
		if v, _ := o.Raw(key); v != nil {
			if inner, ok := v.(*profiles.Object); ok {
				if found := find(inner, depth-1); found != nil {
					return found
				}
			}
		}
	}
	return nil
}

func layoutOf(o *profiles.Object, dtype string) (*Layout, error) {
	l := &Layout{ValueBytes: valueBytes(o, dtype)}
	l.Layers, _ = whole(o, "num_hidden_layers")
	l.Heads, _ = whole(o, "num_attention_heads")
	l.Hidden, _ = whole(o, "hidden_size")
	l.KVHeads = l.Heads
	for _, key := range []string{"num_key_value_heads", "num_kv_heads"} {
		if v, _ := o.Raw(key); v != nil {
			n, ok := whole(o, key)
			if !ok {
				return nil, fmt.Errorf("%s: must be a whole number", key)
			}
			l.KVHeads = n
			break
		}
	}
	switch {
	case l.Heads <= 0:
		return nil, fmt.Errorf("num_attention_heads: got %d, must be positive", l.Heads)
	case l.Layers < 0 || l.Hidden < 0 || l.KVHeads < 0:
		return nil, errors.New("layers, heads and sizes must not be negative")
	}
	l.HeadDim, _ = whole(o, "head_dim")
	rank, _ := o.Raw("kv_lora_rank")
	l.Latent = rank != nil
	var ok bool
	if l.Bytes, ok = product(l.Layers, 2, l.KVHeads, l.Hidden/l.Heads, l.ValueBytes); !ok {
		return nil, errors.New("the sizes make more bytes than can be counted")
	}
	if _, ok = product(l.Layers, 2, l.KVHeads, l.HeadDim, l.ValueBytes); !ok || l.HeadDim < 0 {
		l.HeadDim = 0
	}
	return l, nil
}

// product multiplies numbers that are not negative, unless the result is too large.
func product(factors ...int64) (int64, bool) {
	p := uint64(1)
	for _, f := range factors {
		high, low := bits.Mul64(p, uint64(f))
		if high != 0 || low > 1<<62 {
			return 0, false
		}
		p = low
	}
	return int64(p), true
}

// whole returns an integer; true counts as 1, as in the reference's language.
func whole(o *profiles.Object, key string) (int64, bool) {
	v, _ := o.Raw(key)
	switch v := v.(type) {
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case json.Number:
		n, err := v.Int64()
		return n, err == nil
	}
	return 0, false
}

// valueBytes returns the size of one cached value. fp8_e5m2 counts as two bytes, like every word that is not listed,
// because the reference counts it so.
func valueBytes(o *profiles.Object, dtype string) int64 {
	if dtype == "auto" {
		dtype = "float16"
		for _, key := range []string{"dtype", "torch_dtype"} {
			if v, _ := o.Raw(key); v != nil {
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
