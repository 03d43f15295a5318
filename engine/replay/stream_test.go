package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"mockbench/engine"
	"mockbench/engine/trace"
)

// swapped returns lines with two of them in each other's place.
func swapped(lines [][]byte, i, k int) [][]byte {
	out := append([][]byte(nil), lines...)
	out[i], out[k] = out[k], out[i]
	return out
}

// A file that is read while it runs gives what the trace as a whole gives, whether it turns out to be a stream or not.
func TestStreamEqualsTrace(t *testing.T) {
	data, err := os.ReadFile(writeBaseline(t, 9000, 4))
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	lines = lines[:len(lines)-1]
	turn := bytes.Replace(lines[8900], []byte("{"), []byte(`{"session_id": "s", `), 1)
	for name, c := range map[string]struct {
		lines  [][]byte
		blocks int
	}{
		"sorted":          {lines, 16384},
		"unsorted":        {swapped(lines, 8500, 8900), 16384},
		"session":         {append(append([][]byte(nil), lines...), turn, turn), 16384},
		"same time":       {bytes.SplitAfter(bytes.ReplaceAll(bytes.Join(lines[:300], nil), []byte(`"timestamp": 1`), []byte(`"timestamp": 0.1`)), []byte("\n")), 4000},
		"tight":           {lines[:400], 300},
		"DOS and a mark":  {[][]byte{[]byte("\xef\xbb\xbf"), bytes.ReplaceAll(bytes.Join(lines[:100], nil), []byte("\n"), []byte("\r\n"))}, 16384},
		"blank lines, no": {[][]byte{[]byte("\n \n"), bytes.TrimSpace(lines[0])}, 16384},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "trace.jsonl")
			if err := os.WriteFile(path, bytes.Join(c.lines, nil), 0o600); err != nil {
				t.Fatal(err)
			}
			var outcomes []string
			for _, streamed := range []bool{false, true} {
				o := Options{MaxTime: -1, Cores: 2, Workers: Pool{Workers: 3, Engine: engine.DefaultConfig(engine.VLLM)}}
				o.Workers.Engine.NumGPUBlocks = c.blocks
				if streamed {
					o.Stream = trace.NewStream(path, 512, 1)
				} else if o.Trace, err = trace.Read([]string{path}, trace.Options{Format: trace.Mooncake, BlockSize: 512}); err != nil {
					t.Fatal(err)
				}
				r, err := Run(o)
				if err != nil {
					t.Fatal(err)
				}
				text, err := json.Marshal(r.Offline.Summary(r.Fleet))
				if err != nil {
					t.Fatal(err)
				}
				outcomes = append(outcomes, string(text))
			}
			if outcomes[0] != outcomes[1] {
				t.Errorf("the whole trace gives\n%s\nthe stream\n%s", outcomes[0], outcomes[1])
			}
		})
	}
}

func TestStreamWithAWrongLine(t *testing.T) {
	path := writeBaseline(t, 9000, 4)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"timestamp": 40000, "output_length": -3, "hash_ids": [1]}` + "\n"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = Run(Options{Stream: trace.NewStream(path, 512, 1), MaxTime: -1, Workers: Pool{Workers: 1, Engine: engine.DefaultConfig(engine.VLLM)}})
	var line *trace.LineError
	if !errors.As(err, &line) || line.Line != 9001 || line.File != path {
		t.Errorf("got %v, want an error about line 9001", err)
	}
}

// A run that is interrupted gives the figures of what was done.
func TestInterruptedStream(t *testing.T) {
	for _, routed := range []bool{false, true} {
		ctx, cancel := context.WithCancel(context.Background())
		o := baselineOptions(t, writeBaseline(t, 20000, 60), 4, routed)
		o.Context, o.Progress = ctx, func(p Progress) {
			if p.Ended > 1000 {
				cancel()
			}
		}
		r, err := Run(o)
		if err != nil {
			t.Fatal(err)
		}
		done, _ := r.Offline.Summary(r.Fleet).Get("completed_requests")
		if n := done.(int); !r.Interrupted || n < 1000 || n >= 20000 {
			t.Errorf("routed %v: interrupted %v, %d requests complete", routed, r.Interrupted, n)
		}
	}
}
