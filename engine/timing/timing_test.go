package timing

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"mockbench/engine"
)

// goldenCase is one recorded query of the polynomial model.
type goldenCase struct {
	Name  string
	Input struct {
		Kind           string
		BatchSize      int `json:"batch_size"`
		MeanISL        int `json:"mean_isl"`
		MeanPrefix     int `json:"mean_prefix"`
		ActiveTokens   int `json:"active_kv_tokens"`
		CapacityTokens int `json:"total_kv_tokens"`
		Speedup        float64
		DecodeSpeedup  float64 `json:"decode_speedup"`
	}
	Expect struct {
		Raw    float64 `json:"raw_ms"`
		Scaled float64 `json:"modeled_ms"`
	}
}

func TestPolynomial(t *testing.T) {
	data, err := os.ReadFile("testdata/polynomial.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []goldenCase
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 100 {
		t.Fatalf("only %d cases", len(cases))
	}
	for _, c := range cases {
		in := c.Input
		var call engine.ModelCall
		var scaled engine.Time
		if in.Kind == "prefill" {
			timer := NewTimer(polynomial{}, engine.Config{SpeedupRatio: in.Speedup})
			call, scaled = timer.Prefill(in.BatchSize, in.MeanISL, in.MeanPrefix)
		} else {
			timer := NewTimer(polynomial{}, engine.Config{SpeedupRatio: in.Speedup, DecodeSpeedupRatio: in.DecodeSpeedup})
			call, scaled = timer.Decode(1, in.ActiveTokens, in.CapacityTokens)
		}
		if !sameOrNext(call.Milliseconds, c.Expect.Raw) || !sameOrNext(float64(scaled), c.Expect.Scaled) {
			t.Errorf("%s: got %v, scaled %v, want %v, %v", c.Name, call.Milliseconds, scaled, c.Expect.Raw, c.Expect.Scaled)
		}
	}
}

// sameOrNext allows the last bit to differ.
func sameOrNext(a, b float64) bool {
	return a == b || math.Nextafter(a, b) == b
}

func TestTiesRoundOnTheExactValue(t *testing.T) {
	for ms, want := range map[float64]float64{1.5e-6: 1e-6, 2.5e-6: 3e-6, 3.5e-6: 3e-6} {
		if got := Scale(ms, 1); !sameOrNext(float64(got), want) {
			t.Errorf("%v ms: got %v, want %v", ms, got, want)
		}
	}
}

func TestFixed(t *testing.T) {
	m, err := NewModel(engine.TimingConfig{Type: "fixed", PrefillMS: 10, DecodeMS: 2})
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Prefill(3, 10, 10); got != 0 {
		t.Errorf("nothing to compute: got %v ms", got)
	}
	if got := m.Prefill(3, 11, 10); got != 10 {
		t.Errorf("prefill: got %v ms", got)
	}
	if got := m.Decode(1, 5, 5, 100); got != 2 {
		t.Errorf("decode: got %v ms", got)
	}
	if _, err := NewModel(engine.TimingConfig{Type: "external"}); err == nil {
		t.Error("a model of another kind is accepted")
	}
}
