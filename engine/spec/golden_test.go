package spec_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mockbench/engine"
	"mockbench/engine/goldentest"
	"mockbench/engine/spec"
)

// TestGoldenOutputs replays recorded acceptance streams: rates, raw draws and accepted tokens.
func TestGoldenOutputs(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(goldentest.Dir(t, "outputs"), "sampler.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		var c samplerCase
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		t.Run(c.Name, c.run)
	}
}

type samplerCase struct {
	Name  string
	Input struct {
		Nextn *int
		Rates *string
		Seed  string
		Count int
	}
	Expect struct {
		Accepted   []int
		FirstU64   []string `json:"first_u64"`
		Normalized []float64
		Error      string
	}
}

func (c *samplerCase) run(t *testing.T) {
	cfg := engine.DefaultConfig(engine.VLLM)
	if c.Input.Nextn != nil {
		cfg.Nextn = *c.Input.Nextn
	}
	if c.Input.Rates != nil {
		cfg.NextnAcceptRates = *c.Input.Rates
	}
	if c.Input.Nextn != nil && *c.Input.Nextn == 0 {
		// A written 0 is refused where the setting is read; in a Config it means that there are no drafts.
		if rates, err := cfg.AcceptRates(); rates != nil || err != nil {
			t.Errorf("got rates %v, %v", rates, err)
		}
		return
	}
	if c.Expect.Error != "" {
		c.checkRefusal(t, cfg.Validate())
		return
	}
	rates, err := cfg.AcceptRates()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(rates, c.Expect.Normalized) {
		t.Errorf("rates %v, want %v", rates, c.Expect.Normalized)
	}
	seed, err := strconv.ParseUint(c.Input.Seed, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range spec.Draws(seed, len(c.Expect.FirstU64)) {
		if got := fmt.Sprintf("%016x", want); got != c.Expect.FirstU64[i] {
			t.Fatalf("draw %d: got %s, want %s", i, got, c.Expect.FirstU64[i])
		}
	}
	s := spec.NewSampler(rates, seed)
	for i, want := range c.Expect.Accepted {
		if got := s.Accept(); got != want {
			t.Fatalf("sample %d: got %d, want %d", i, got, want)
		}
	}
}

func (c *samplerCase) checkRefusal(t *testing.T, err error) {
	var wrong *engine.SettingError
	if !errors.As(err, &wrong) {
		t.Fatalf("got %v, want a refusal like %q", err, c.Expect.Error)
	}
	setting := "engine.aic_nextn_accept_rates"
	if strings.Contains(c.Expect.Error, "aic_nextn must be in") {
		setting = "engine.aic_nextn"
	}
	if wrong.Setting != setting {
		t.Errorf("got a refusal of %s, want %s", wrong.Setting, setting)
	}
}
