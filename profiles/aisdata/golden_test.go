package aisdata

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mockbench/engine"
	"mockbench/engine/goldentest"
	"mockbench/engine/timing/ais"
)

// recorded is one configuration of the reference, its questions and its answers. An answer is a number, or a text if the
// data lacks what the question needs.
type recorded struct {
	Name  string
	Input struct {
		Config   *placed
		Parallel placed
		placed
		Prefill [][3]int // requests, tokens, prefix
		Decode  [][2]int // requests, context
	}
	Expect struct {
		Prefill []any `json:"prefill_ms"`
		Decode  []any `json:"decode_ms"`
		Blocks  any   `json:"num_gpu_blocks"`
		PerOp   []struct {
			Prefill []int
			Decode  []int
			Ops     [][3]any // name, ms, source
			Err     string
		} `json:"per_op"`
	}
}

// placed says what runs where. Both files of the recording spell some names differently.
type placed struct {
	Model   string
	System  string
	Backend engine.Backend
	TP      int `json:"tp"`
	TPSize  int `json:"tp_size"`
	DP      int `json:"attention_dp"`
	DPSize  int `json:"attention_dp_size"`
	MoETP   int `json:"moe_tp_size"`
	MoEEP   int `json:"moe_ep_size"`
}

func (c *recorded) descriptor(rules ais.Rules) Descriptor {
	what, where := c.Input.placed, c.Input.Parallel
	if c.Input.Config != nil {
		what, where = *c.Input.Config, *c.Input.Config
	}
	return Descriptor{Model: what.Model, System: what.System, Backend: what.Backend, TP: max(where.TP, where.TPSize),
		AttentionDP: max(where.DP, where.DPSize), MoETP: where.MoETP, MoEEP: where.MoEEP, Rules: rules}
}

// recordings reads a file of recorded cases, compressed or not.
func recordings(t testing.TB, name string) (cases []recorded) {
	t.Helper()
	path := filepath.Join(goldentest.Dir(t, "ais"), name+".json")
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		if data, err = os.ReadFile(path + ".gz"); err == nil {
			var z *gzip.Reader
			if z, err = gzip.NewReader(bytes.NewReader(data)); err == nil {
				data, err = io.ReadAll(z)
			}
		}
	}
	if err == nil {
		err = json.Unmarshal(data, &cases)
	}
	if err != nil || len(cases) == 0 {
		t.Fatalf("%s: %d cases, %v", path, len(cases), err)
	}
	return cases
}

// testRoot is the data that tests use: the one the environment names, fetched data, or else the cut-out beside the tests,
// which has what the recorded cases in the tree need. For cases from elsewhere all data is fetched, if that can be done.
// A case that finds no data fails.
func testRoot(t testing.TB) *Root {
	t.Helper()
	places := append(fetched(), "testdata/cutout")
	if e := os.Getenv(EnvironmentVariable); e != "" {
		places = []string{e}
	} else if len(places) == 1 && os.Getenv("MOCKBENCH_GOLDEN") != "" {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		dir, err := Fetch(ctx, FetchOptions{Dir: filepath.Join("..", "..", ".ais")})
		if err == nil {
			places = []string{dir}
		} else {
			t.Logf("only the cut-out is here: %v", err)
		}
	}
	r, err := Open(places[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("data: %s", r)
	return r
}

// tolerance of recorded times, relative.
const tolerance = 1e-9

func TestGoldenAis(t *testing.T) {
	root := testRoot(t)
	for file, rules := range map[string]ais.Rules{"aic_0_12_0_latency": ais.Rules012, "mocker_latency": ais.Rules013} {
		t.Run(file, func(t *testing.T) {
			values, newer, errors := 0, 0, deviations{}
			for _, c := range recordings(t, file) {
				t.Run(c.Name, func(t *testing.T) {
					g := golden{t: t, c: &c, newer: rules == ais.Rules013 && strings.HasPrefix(root.Version, "0.12."), errors: errors}
					g.run(root, c.descriptor(rules))
					values, newer = values+g.values, newer+g.differ
				})
			}
			t.Logf("%d values compared, %d of newer data left out", values, newer)
			errors.log(t)
			if values == 0 {
				t.Error("no value was compared")
			}
		})
	}
}

// golden compares one case.
type golden struct {
	t              *testing.T
	c              *recorded
	newer          bool // the recording used newer data
	values, differ int
	errors         deviations
	group          string // of deviations
}

// deviations are relative errors of times, by kind of model and backend.
type deviations map[string][]float64

func (d deviations) log(t *testing.T) {
	for _, group := range slices.Sorted(maps.Keys(d)) {
		list := slices.Sorted(slices.Values(d[group]))
		t.Logf("%-18s %4d times, relative error: median %.1e, p99 %.1e, largest %.1e", group, len(list), list[len(list)/2],
			list[len(list)*99/100], list[len(list)-1])
	}
}

func (g *golden) run(root *Root, d Descriptor) {
	p, err := root.Predict(d)
	if err != nil {
		g.t.Fatal(err)
	}
	g.group = fmt.Sprintf("%s, %s", p.Model().Family, d.Backend)
	for i, q := range g.c.Input.Prefill {
		ops, err := p.PrefillOps(q[0], q[1], q[2])
		g.compare(fmt.Sprint("prefill ", q), ais.Sum(ops), err, g.c.Expect.Prefill[i], g.newer && remeasured(p, d, true))
	}
	for i, q := range g.c.Input.Decode {
		ops, err := p.DecodeOps(q[0], q[1])
		g.compare(fmt.Sprint("decode ", q), ais.Sum(ops), err, g.c.Expect.Decode[i], g.newer && remeasured(p, d, false))
	}
	g.perOp(p)
	if want := g.c.Expect.Blocks; want != nil {
		size := map[engine.Backend]int{engine.VLLM: 64, engine.SGLang: 1, engine.TRTLLM: 32}[d.Backend]
		got, err := p.GPUBlocks(ais.Capacity{BlockSize: size, MaxBatchedTokens: 8192, Fraction: ais.DefaultFraction(d.Backend)})
		g.compare("blocks", float64(got), err, want, false)
	}
}

// remeasured reports whether release 0.13 brought other measurements than 0.12 for a configuration: products in blocks
// of FP8 on vLLM, sums over eight ranks on GB200 with SGLang, latent attention over prompts on SGLang and TensorRT-LLM.
func remeasured(p *Prediction, d Descriptor, prefill bool) bool {
	m := p.Model()
	switch {
	case d.Backend == engine.VLLM:
		return m.Quants.GEMM == ais.FP8Block
	case d.Backend == engine.SGLang && d.System == "gb200" && d.TP*max(d.AttentionDP, 1) == 8:
		return true
	}
	return m.Family == ais.MLA && prefill
}

// compare checks one answer. Answers from other measurements are counted, not compared.
func (g *golden) compare(question string, got float64, err error, want any, other bool) {
	ms, number := want.(float64)
	if number && err == nil && question != "blocks" {
		g.errors[g.group] = append(g.errors[g.group], math.Abs(got-ms)/ms)
	}
	switch {
	case other:
		g.differ++
		return
	case number && err != nil:
		g.t.Errorf("%s: %v, want %v", question, err, ms)
	case number && math.Abs(got-ms) > tolerance*ms:
		g.t.Errorf("%s: got %v, want %v", question, got, ms)
	case !number && err == nil:
		g.t.Errorf("%s: got %v, want an error like %q", question, got, want)
	}
	g.values++
}

// perOp compares names and latencies of single operators.
func (g *golden) perOp(p *Prediction) {
	for _, q := range g.c.Expect.PerOp {
		var ops []ais.Op
		var err error
		if q.Err != "" {
			continue // recorded for both parts together
		}
		if q.Prefill != nil {
			ops, err = p.PrefillOps(q.Prefill[0], q.Prefill[1], q.Prefill[2])
		} else {
			ops, err = p.DecodeOps(q.Decode[0], q.Decode[1])
		}
		if err != nil || len(ops) != len(q.Ops) {
			g.t.Errorf("%v %v: got %d operators, want %d (%v)", q.Prefill, q.Decode, len(ops), len(q.Ops), err)
			continue
		}
		for i, want := range q.Ops {
			ms := want[1].(float64)
			if ops[i].Name != want[0] || math.Abs(ops[i].MS-ms) > tolerance*ms {
				g.t.Errorf("%v %v: got %s %v, want %s %v", q.Prefill, q.Decode, ops[i].Name, ops[i].MS, want[0], ms)
			}
			g.values++
		}
	}
}
