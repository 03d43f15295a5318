package profiledata

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"mockbench/engine"
	"mockbench/engine/timing"
)

// Names within a results directory of Dynamo's profiler; an NPZ file wins over JSON.
var (
	prefillFiles = [2]string{filepath.Join("selected_prefill_interpolation", "raw_data.npz"), "prefill_raw_data.json"}
	decodeFiles  = [2]string{filepath.Join("selected_decode_interpolation", "raw_data.npz"), "decode_raw_data.json"}
)

// Results are the measurements of a profiler. Vectors of a part have one length.
type Results struct {
	PrefillISL, PrefillTTFT []float64 // tokens, ms

	KVUsage, Context, ITL []float64 // share of the pool in use, tokens of a request, ms
	MaxKVTokens           float64   // of the pool
}

// Keys of the profiler's files.
const (
	islKey, ttftKey              = "prefill_isl", "prefill_ttft"
	usageKey, contextKey, gapKey = "x_kv_usage", "y_context_length", "z_itl"
	maxTokensKey                 = "max_kv_tokens"
)

// found returns which of two files is there, "" if none.
func found(dir string, names [2]string) string {
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return name
		}
	}
	return ""
}

// complete says what a directory lacks to be a results directory.
func complete(dir string) error {
	for _, names := range [][2]string{prefillFiles, decodeFiles} {
		if found(dir, names) == "" {
			return fmt.Errorf("no %s and no %s in it", names[0], names[1])
		}
	}
	return nil
}

// ReadResults reads the results directory of a profiler. Errors name the file, and the array within it.
func ReadResults(dir string) (*Results, error) {
	if err := complete(dir); err != nil {
		return nil, err
	}
	r := &Results{}
	var most []float64
	err := readVectors(dir, found(dir, prefillFiles), []string{islKey, ttftKey},
		[]*[]float64{&r.PrefillISL, &r.PrefillTTFT})
	if err != nil {
		return nil, err
	}
	name := found(dir, decodeFiles)
	err = readVectors(dir, name, []string{usageKey, contextKey, gapKey, maxTokensKey},
		[]*[]float64{&r.KVUsage, &r.Context, &r.ITL, &most})
	if err != nil {
		return nil, err
	}
	if len(most) == 0 {
		return nil, fmt.Errorf("%s: %s: is empty", name, maxTokensKey)
	}
	r.MaxKVTokens = most[0]
	if err := r.check(); err != nil {
		return nil, err
	}
	return r, nil
}

// check finds vectors that do not belong together and numbers that are none.
func (r *Results) check() error {
	for _, v := range []struct {
		key    string
		values []float64
		count  int
		with   string
	}{
		{islKey, r.PrefillISL, len(r.PrefillISL), islKey}, {ttftKey, r.PrefillTTFT, len(r.PrefillISL), islKey},
		{usageKey, r.KVUsage, len(r.KVUsage), usageKey}, {contextKey, r.Context, len(r.KVUsage), usageKey},
		{gapKey, r.ITL, len(r.KVUsage), usageKey}, {maxTokensKey, []float64{r.MaxKVTokens}, 1, ""},
	} {
		if len(v.values) != v.count {
			return &timing.ArrayError{Array: v.key, Kind: engine.KindConflict,
				Text: fmt.Sprintf("got %d values, must be %d as in %s", len(v.values), v.count, v.with)}
		}
		if len(v.values) == 0 {
			return &timing.ArrayError{Array: v.key, Kind: engine.KindMissing, Text: "holds no value"}
		}
		if err := finite(v.key, v.values); err != nil {
			return err
		}
	}
	return nil
}

// largest bounds tokens and milliseconds, so that sums and squares of them stay exact enough.
const largest = 1e15

// finite refuses what is not a sensible number.
func finite(key string, values []float64) error {
	for i, x := range values {
		if !(math.Abs(x) <= largest) {
			return &timing.ArrayError{Array: key, Kind: engine.KindRange,
				Text: fmt.Sprintf("got %v at index %d, must be finite and at most %g", x, i, float64(largest))}
		}
	}
	return nil
}

// readVectors reads vectors from one file of a results directory.
func readVectors(dir, name string, keys []string, dst []*[]float64) error {
	read := readJSONVectors
	if filepath.Ext(name) == ".npz" {
		read = readNPZVectors
	}
	if err := read(filepath.Join(dir, name), keys, dst); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func readNPZVectors(path string, keys []string, dst []*[]float64) error {
	return withNPZ(path, func(a archive) error {
		for i, key := range keys {
			v, err := a.read(key)
			if err != nil {
				return err
			}
			if len(v.shape) != 1 {
				return &timing.ArrayError{Array: key, Kind: engine.KindType,
					Text: fmt.Sprintf("got %d dimensions, must be 1", len(v.shape))}
			}
			*dst[i] = v.values
		}
		return nil
	})
}

func readJSONVectors(path string, keys []string, dst []*[]float64) error {
	f, _, err := openFile(path)
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, mostArrayBytes+1))
	if err != nil {
		return plain(err)
	}
	if len(data) > mostArrayBytes {
		return fmt.Errorf("more than %d MiB of JSON", mostArrayBytes>>20)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil {
		return fmt.Errorf("not a JSON object: %w", err)
	}
	for i, key := range keys {
		text, ok := object[key]
		if !ok {
			return &timing.ArrayError{Array: key, Kind: engine.KindMissing, Text: "no such key in the file"}
		}
		var err error
		if key == maxTokensKey {
			*dst[i] = make([]float64, 1)
			err = json.Unmarshal(text, &(*dst[i])[0])
		} else {
			err = json.Unmarshal(text, dst[i])
		}
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return &timing.ArrayError{Array: key, Kind: engine.KindType, Text: "got a " + wrong.Value + ", must be numbers"}
		}
		if err != nil {
			return &timing.ArrayError{Array: key, Kind: engine.KindType, Text: err.Error()}
		}
	}
	return nil
}
