// Package goldentest replays recorded runs of the reference engine on ours and compares every recorded field. It is
// used by tests only. The README files beside the recordings describe their form.
package goldentest

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mockbench/engine"
)

// Case is one recorded run.
type Case struct {
	Name  string
	Input struct {
		Detail    string
		DPSize    int `json:"dp_size"`
		Engine    json.RawMessage
		Requests  []Request
		Cancels   []Command
		Commands  []Command
		MaxPasses int    `json:"max_passes"`
		WorkerID  uint64 `json:"worker_id"`
		NoPool    bool   `json:"no_pool"`
		Tree      bool   // SGLang: radix trees are recorded
	}
	Expect struct {
		ConfigError   string `json:"config_error"`
		Steps         []any
		Passes        int
		EndMS         float64 `json:"end_ms"`
		Stalled       bool
		PassLimitHit  bool `json:"pass_limit_hit"`
		Drained       bool
		Hashes        map[string][2]*string
		PoolOccupancy []int `json:"pool_occupancy"`
	}
}

// Request is one request of a case.
type Request struct {
	ID        string
	N         uint64
	ArrivalMS *float64 `json:"arrival_ms"`
	Rank      int      `json:"dp_rank"`
	Prompt    [][3]uint64
	MaxOutput int      `json:"max_output"`
	OutputIDs []uint32 `json:"output_ids"`

	request *engine.Request
}

// Command is a cancellation or a handoff command of a case.
type Command struct {
	AtMS    float64 `json:"at_ms"`
	Cmd     string
	ID      string
	Handoff uint64
	Discard bool
}

// Dir returns the folder of an area: under $MOCKBENCH_GOLDEN if that is set, else under testdata/golden of the module.
func Dir(t testing.TB, area string) string {
	t.Helper()
	if root := os.Getenv("MOCKBENCH_GOLDEN"); root != "" {
		return filepath.Join(root, area)
	}
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			return filepath.Join(root, "testdata", "golden", area)
		}
		if parent := filepath.Dir(root); parent != root {
			root = parent
			continue
		}
		t.Fatal("no go.mod above the test")
	}
}

// Load reads all cases of an area whose file names (without ending) are among names, of all files if none are given.
func Load(t testing.TB, area string, names ...string) []Case {
	t.Helper()
	dir := Dir(t, area)
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded cases in %s: %v", dir, err)
	}
	var cases []Case
	for _, file := range files {
		name, _, _ := strings.Cut(filepath.Base(file), ".")
		if len(names) > 0 && !slices.Contains(names, name) {
			continue
		}
		for line := range bytes.Lines(read(t, file)) {
			var c Case
			if err := json.Unmarshal(line, &c); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			cases = append(cases, c)
		}
	}
	if len(cases) == 0 {
		t.Fatalf("no cases in %v of %s", names, dir)
	}
	return cases
}

// read reads a file, compressed or not.
func read(t testing.TB, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err == nil && strings.HasSuffix(file, ".gz") {
		var z *gzip.Reader
		if z, err = gzip.NewReader(bytes.NewReader(data)); err == nil {
			data, err = io.ReadAll(z)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Config reads the engine configuration of a case. Events are on unless the case says otherwise.
func (c *Case) Config() (engine.Config, error) {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(c.Input.Engine, &keys); err != nil {
		return engine.Config{}, err
	}
	var backend engine.Backend
	if err := json.Unmarshal(keys["backend"], &backend); err != nil {
		return engine.Config{}, err
	}
	cfg := engine.DefaultConfig(backend)
	cfg.EmitKVEvents = true
	for _, key := range []string{"state_cache", "kv_cache_groups", "kv_cache_capacity_bytes"} {
		if keys[key] != nil {
			return cfg, &engine.SettingError{Setting: "engine." + key, Kind: engine.KindUnsupported}
		}
	}
	if keys["native_host_offload"] != nil {
		cfg.HostOffload = engine.DefaultHostOffload(0)
	}
	decoder := json.NewDecoder(bytes.NewReader(c.Input.Engine))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&cfg); err != nil {
		return cfg, &engine.SettingError{Setting: "engine", Kind: engine.KindUnknown, Given: err.Error()}
	}
	for key, limit := range map[string]*uint64{"max_num_seqs": &cfg.MaxNumSeqs, "max_num_batched_tokens": &cfg.MaxNumBatchedTokens} {
		if string(keys[key]) == "null" {
			*limit = engine.Unlimited
		}
	}
	return cfg, cfg.Validate()
}

// Number returns the request or handoff id that recordings write as a number.
func Number(n uint64) (id engine.ID) {
	binary.BigEndian.PutUint64(id[8:], n)
	return id
}

func uuid(id engine.ID) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// Prompt expands segments [seed, start, count] to tokens.
func Prompt(segments [][3]uint64) (tokens []uint32) {
	for _, s := range segments {
		for i := range s[2] {
			tokens = append(tokens, Token(s[0], s[1]+i))
		}
	}
	return tokens
}

// Token is the i-th token of a seed.
func Token(seed, i uint64) uint32 { return uint32(Mix(seed, i) % 32000) }

// Mix is the generator under Token.
func Mix(seed, i uint64) uint64 {
	z := seed*0x9E3779B97F4A7C15 + (i+1)*0xBF58476D1CE4E5B9
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}
