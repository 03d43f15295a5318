package replay

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mockbench/engine"
	"mockbench/engine/trace"
)

// Recorded runs of random Weka traces: which conversations the reference finds in them, and what waits for what.
func TestWekaTraces(t *testing.T) {
	f, err := os.Open("testdata/weka.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Trace, Basis string
		Requests     map[string]struct {
			Session    string
			Dispatched float64 `json:"dispatched_ms"`
			Ended      float64 `json:"ended_ms"`
			Reused     float64
		}
	}
	if err := json.NewDecoder(z).Decode(&cases); err != nil {
		t.Fatal(err)
	}
	for i, c := range cases {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "f.json")
			if err := os.WriteFile(path, []byte(c.Trace), 0o600); err != nil {
				t.Fatal(err)
			}
			tr, err := trace.Read([]string{path}, trace.Options{Format: trace.Weka})
			if err != nil {
				t.Fatal(err)
			}
			if tr.Graph.Basis != c.Basis {
				t.Errorf("nested timestamps are %s, want %s", tr.Graph.Basis, c.Basis)
			}
			e := engine.DefaultConfig(engine.VLLM)
			e.NumGPUBlocks, e.Timing = 4096, engine.TimingConfig{Type: "fixed", PrefillMS: 10, DecodeMS: 1}
			r, err := Run(Options{Trace: tr, MaxTime: -1, Records: true, Workers: Pool{Workers: 1, Engine: e}})
			if err != nil {
				t.Fatal(err)
			}
			records := r.Offline.Records()
			if len(records) != len(c.Requests) {
				t.Fatalf("%d requests, want %d", len(records), len(c.Requests))
			}
			for _, record := range records {
				get := func(key string) any { v, _ := record.Get(key); return v }
				id := get("request_id").(string)
				want := c.Requests[id]
				if got := get("session_id"); got != want.Session {
					t.Errorf("%s is in %v, want %s", id, got, want.Session)
				}
				for key, want := range map[string]float64{"dispatched_at_ms": want.Dispatched, "terminal_time_ms": want.Ended,
					"reused_input_tokens": want.Reused} {
					if got := get(key); math.Abs(asNumber(t, got)-want) > 1e-6 {
						t.Errorf("%s: %s is %v, want %v", id, key, got, want)
					}
				}
			}
		})
	}
}

func asNumber(t *testing.T, v any) float64 {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var x float64
	if err := json.Unmarshal(data, &x); err != nil {
		t.Fatal(err)
	}
	return x
}

// A trace that cannot be used is refused with its name and what is wrong with it.
func TestWrongWekaTraces(t *testing.T) {
	const one = `{"type":"n","t":0,"model":"w","in":64,"out":1,"hash_ids":[1]}`
	object := func(requests string) string {
		return `{"id":"a","models":["w"],"block_size":64,"hash_id_scope":"local","requests":[` + requests + `]}`
	}
	for name, c := range map[string]struct{ text, want string }{
		"no object":       {"", "holds no traces"},
		"no JSON":         {"nope", "object 1"},
		"second object":   {object(one) + "\n{", "object 2"},
		"scope":           {strings.Replace(object(one), "local", "global", 1), "hash_id_scope"},
		"block size":      {strings.Replace(object(one), "64", "0", 1), "block_size"},
		"two block sizes": {object(one) + strings.Replace(object(one), "64", "32", 1), "block_size 32"},
		"no requests":     {object(""), "no requests"},
		"type":            {object(strings.Replace(one, `"n"`, `"q"`, 1)), `type "q"`},
		"time":            {object(strings.Replace(one, `"t":0`, `"t":-1`, 1)), "t must be"},
		"model":           {object(strings.Replace(one, `"w"`, `"v"`, 1)), "model v"},
		"empty prompt":    {object(strings.Replace(one, `"in":64`, `"in":0`, 1)), "in must be"},
		"subagent first":  {object(`{"type":"subagent","t":1,"agent_id":"g","status":"completed","requests":[` + one + `]}`), "no request before"},
		"subagent failed": {object(one + `,{"type":"subagent","t":1,"agent_id":"g","status":"failed","requests":[` + one + `]}`), `status "failed"`},
		"nothing to wait": {object(one + `,{"type":"subagent","t":1,"agent_id":"g","status":"completed","requests":[]}`), "has no requests"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "f.json")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := trace.Read([]string{path}, trace.Options{Format: trace.Weka}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}
