package trace

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mockbench/engine/goldentest"
	"mockbench/engine/random"
	"mockbench/kv"
)

func golden(t *testing.T, name string, into any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(goldentest.Dir(t, "replay"), name))
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestGoldenReplay checks what workloads are made of.
func TestGoldenReplay(t *testing.T) {
	t.Run("rng", goldenRandom)
	t.Run("tokens", goldenTokens)
	t.Run("arrivals", goldenArrivals)
	t.Run("synthetic_sessions", goldenSessions)
}

func goldenRandom(t *testing.T) {
	var cases []struct {
		Name   string
		Input  struct{ Seed string }
		Expect struct {
			F64   []float64
			U32   []uint32
			Below []uint32 `json:"random_range_0_to_2_plus_i_mod_7"`
		}
	}
	golden(t, "rng.json", &cases)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			seed, err := strconv.ParseUint(c.Input.Seed, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			got := c.Expect
			got.F64, got.U32, got.Below = nil, nil, nil
			got.F64 = floats(random.New(seed), len(c.Expect.F64))
			words, below := random.New(seed), random.New(seed)
			for range c.Expect.U32 {
				got.U32 = append(got.U32, words.Uint32())
			}
			for i := range c.Expect.Below {
				got.Below = append(got.Below, below.Below(uint32(2+i%7)))
			}
			if d := cmp.Diff(c.Expect, got); d != "" {
				t.Error(d)
			}
			for i, want := range c.Expect.U32 {
				again := random.New(seed)
				again.Seek(1000)
				again.Uint32()
				again.Seek(uint64(i))
				if got := again.Uint32(); got != want {
					t.Errorf("word %d is %d, want %d", i, got, want)
				}
			}
		})
	}
}

func floats(r *random.ChaCha12, n int) (out []float64) {
	for range n {
		out = append(out, r.Float64())
	}
	return out
}

// write writes rows of JSON to a file and returns its path.
func write(t *testing.T, rows []json.RawMessage) string {
	t.Helper()
	var text []byte
	for _, r := range rows {
		text = append(append(text, r...), '\n')
	}
	path := filepath.Join(t.TempDir(), "trace.jsonl")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

type goldenTurn struct {
	Delay     float64  `json:"delay_after_previous_ms"`
	Arrival   float64  `json:"first_arrival_timestamp_ms"`
	IDs       []uint32 `json:"hash_ids"`
	Input     int      `json:"input_length"`
	Local     []string `json:"local_block_hashes"`
	Output    int      `json:"max_output_tokens"`
	Sequence  []string `json:"sequence_hashes"`
	Session   string   `json:"session_id"`
	Synthetic bool     `json:"synthetic_session_id"`
	Tokens    []uint32 `json:"tokens"`
}

func goldenTokens(t *testing.T) {
	var cases []struct {
		Name  string
		Input struct {
			Rows        []json.RawMessage
			BlockSize   int `json:"trace_block_size"`
			EngineBlock int `json:"engine_block_size"`
		}
		Expect struct{ Turns []goldenTurn }
	}
	golden(t, "tokens.json", &cases)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			tr, err := Read([]string{write(t, c.Input.Rows)}, Options{Format: Mooncake, BlockSize: c.Input.BlockSize})
			if err != nil {
				t.Fatal(err)
			}
			var got []goldenTurn
			for _, s := range tr.Sessions {
				for _, u := range s.Turns {
					g := goldenTurn{Delay: u.Delay, Arrival: s.Arrival, IDs: u.IDs, Input: u.Input, Output: u.Output, Session: s.Name,
						Synthetic: !s.Named, Local: []string{}, Sequence: []string{}}
					for i := range u.Input {
						g.Tokens = append(g.Tokens, u.IDs[i/tr.BlockSize])
					}
					local, sequence := kv.AppendHashes(nil, nil, g.Tokens, c.Input.EngineBlock)
					for i := range local {
						g.Local = append(g.Local, fmt.Sprint(local[i]))
						g.Sequence = append(g.Sequence, fmt.Sprint(sequence[i]))
					}
					got = append(got, g)
				}
			}
			if d := cmp.Diff(c.Expect.Turns, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// arrivals reads "burst", "constant_20qps" and "poisson_0.5qps".
func arrivals(t *testing.T, text string, seed uint64) Arrivals {
	t.Helper()
	a := Arrivals{Given: true, Seed: seed}
	kind, rest, _ := strings.Cut(text, "_")
	if kind == "burst" {
		return a
	}
	rate, err := strconv.ParseFloat(strings.TrimSuffix(rest, "qps"), 64)
	if err != nil {
		t.Fatal(err)
	}
	if kind == "poisson" {
		a.Rate = rate
	} else {
		a.Interval = 1000 / rate
	}
	return a
}

func goldenArrivals(t *testing.T) {
	var cases []struct {
		Name  string
		Input struct {
			Spec  string
			Seed  uint64
			Count int
		}
		Expect struct {
			Times []float64 `json:"timestamps_ms"`
		}
	}
	golden(t, "arrivals.json", &cases)
	for _, c := range cases {
		if strings.HasPrefix(c.Input.Spec, "gamma") {
			continue // arrivals that no parameter asks for
		}
		t.Run(c.Name, func(t *testing.T) {
			got := arrivals(t, c.Input.Spec, c.Input.Seed).Times(c.Input.Count)
			for i, want := range c.Expect.Times {
				if math.Abs(got[i]-want) > 1e-12*math.Abs(want) {
					t.Errorf("arrival %d is at %v, want %v", i, got[i], want)
				}
			}
		})
	}
}

func goldenSessions(t *testing.T) {
	var cases []struct {
		Name  string
		Input struct {
			Arrival   string
			Seed      uint64
			BlockSize int     `json:"block_size"`
			Input     int     `json:"input_tokens"`
			Output    int     `json:"output_tokens"`
			Requests  int     `json:"request_count"`
			Delay     float64 `json:"inter_turn_delay_ms"`
			Groups    int     `json:"num_prefix_groups"`
			Ratio     float64 `json:"shared_prefix_ratio"`
			Turns     int     `json:"turns_per_session"`
		}
		Expect struct {
			Sessions []struct {
				Arrival float64 `json:"first_arrival_timestamp_ms"`
				Session string  `json:"session_id"`
				Turns   []struct {
					Delay  float64  `json:"delay_after_previous_ms"`
					IDs    []uint32 `json:"hash_ids"`
					Input  int      `json:"input_length"`
					Output int      `json:"max_output_tokens"`
				}
			}
		}
	}
	golden(t, "synthetic_sessions.json", &cases)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			in := c.Input
			s := Synthetic{Input: in.Input, Output: in.Output, Requests: in.Requests, Turns: in.Turns, PrefixRatio: in.Ratio,
				PrefixGroups: in.Groups, Delay: in.Delay, BlockSize: in.BlockSize, Arrivals: arrivals(t, in.Arrival, in.Seed)}
			if err := s.Validate(); err != nil {
				t.Fatal(err)
			}
			tr := s.Generate()
			for i, want := range c.Expect.Sessions {
				got := &tr.Sessions[i]
				if got.Name != want.Session || got.Arrival != want.Arrival || len(got.Turns) != len(want.Turns) {
					t.Fatalf("session %d is %+v", i, got)
				}
				for k, u := range want.Turns {
					g := got.Turns[k]
					if d := cmp.Diff(u.IDs, g.IDs); d != "" || g.Input != u.Input || g.Output != u.Output || g.Delay != u.Delay {
						t.Errorf("session %d turn %d: %+v, want %+v", i, k, g, u)
					}
				}
			}
		})
	}
}
