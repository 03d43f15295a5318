package profiledata_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mockbench/engine/goldentest"
	"mockbench/profiles/profiledata"
)

type convertCase struct {
	Name  string
	Input struct {
		Form string
		profileInput
	}
	Expect struct {
		Class         string
		Message       string `json:"upstream_message"`
		Shapes        map[string][]int
		Index         []int       // of the recorded values in each axis
		PrefillTokens []float64   `json:"prefill_isl"`
		PrefillMS     []float64   `json:"prefill_ttft_ms"`
		ActiveTokens  []float64   `json:"decode_active_kv_tokens"`
		Context       []float64   `json:"decode_context_length"`
		DecodeMS      [][]float64 `json:"decode_itl"`
	}
}

// TestGoldenCliProfileConvert compares conversions that were recorded from starts of the reference's worker.
func TestGoldenCliProfileConvert(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(goldentest.Dir(t, "cli"), "profile_convert.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for line := range bytes.Lines(data) {
		var c convertCase
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		count++
		t.Run(c.Name, func(t *testing.T) { convert(t, &c) })
	}
	if count == 0 {
		t.Error("no cases")
	}
}

func convert(t *testing.T, c *convertCase) {
	dir := t.TempDir()
	c.Input.Layout = c.Input.Form
	writeResults(t, dir, &c.Input.profileInput)
	table, err := profiledata.Read(dir)
	want := &c.Expect
	if want.Class != "accept" {
		word := "decode"
		if strings.Contains(want.Message, "prefill") {
			word = "prefill"
		}
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("got %v, want an error about %s like %q", err, word, want.Message)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if shape := want.Shapes["decode_itl"]; table.DecodeShape != [2]int(shape) || len(want.Index) == 0 {
		t.Fatalf("decode shape %v, want %v", table.DecodeShape, shape)
	}
	for k, i := range want.Index {
		for _, v := range []struct {
			name      string
			got, want float64
		}{
			{"prefill_isl", table.PrefillTokens[i], want.PrefillTokens[k]}, {"prefill_ttft_ms", table.PrefillMS[i], want.PrefillMS[k]},
			{"decode_active_kv_tokens", table.ActiveTokens[i], want.ActiveTokens[k]},
			{"decode_context_length", table.Context[i], want.Context[k]},
		} {
			if !near(v.got, v.want, 1e-9) {
				t.Errorf("%s[%d]: got %v, want %v", v.name, i, v.got, v.want)
			}
		}
		for l, j := range want.Index {
			if got := table.DecodeMS[i*table.DecodeShape[1]+j]; !near(got, want.DecodeMS[k][l], 1e-9) {
				t.Errorf("decode_itl[%d,%d]: got %v, want %v", i, j, got, want.DecodeMS[k][l])
			}
		}
	}
}
