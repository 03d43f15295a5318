package profiledata_test

import (
	"archive/zip"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"mockbench/engine"
	"mockbench/engine/goldentest"
	"mockbench/engine/timing"
	"mockbench/profiles/kvbytes"
	"mockbench/profiles/profiledata"
)

// TestGoldenTiming compares timing models, their files and cache sizes with recorded answers of the reference.
func TestGoldenTiming(t *testing.T) {
	t.Run("polynomial", func(t *testing.T) { each(t, "polynomial", polynomial) })
	t.Run("npz", func(t *testing.T) { each(t, "npz", npz) })
	t.Run("profile_dir", func(t *testing.T) { each(t, "profile_dir", profileDir) })
	t.Run("kv_bytes", func(t *testing.T) { each(t, "kv_bytes", kvBytes) })
}

type timingCase[In, Out any] struct {
	Name   string
	Input  In
	Expect Out
}

func each[In, Out any](t *testing.T, file string, check func(*testing.T, In, Out)) {
	data, err := os.ReadFile(filepath.Join(goldentest.Dir(t, "timing"), file+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []timingCase[In, Out]
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) == 0 {
		t.Fatalf("%s holds no case", file)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) { check(t, c.Input, c.Expect) })
	}
}

type polynomialInput struct {
	Kind           string
	Requests       int `json:"batch_size"`
	MeanISL        int `json:"mean_isl"`
	MeanPrefix     int `json:"mean_prefix"`
	ActiveTokens   int `json:"active_kv_tokens"`
	CapacityTokens int `json:"total_kv_tokens"`
	Speedup        float64
	DecodeSpeedup  float64 `json:"decode_speedup"`
}

type polynomialOutput struct {
	Raw    float64 `json:"raw_ms"`
	Scaled float64 `json:"modeled_ms"`
}

func polynomial(t *testing.T, in polynomialInput, want polynomialOutput) {
	model, err := timing.NewModel(engine.TimingConfig{Type: "polynomial"})
	if err != nil {
		t.Fatal(err)
	}
	timer := timing.NewTimer(model, engine.Config{SpeedupRatio: in.Speedup, DecodeSpeedupRatio: in.DecodeSpeedup})
	call, scaled := timer.Decode(1, in.ActiveTokens, in.CapacityTokens)
	if in.Kind == "prefill" {
		call, scaled = timer.Prefill(in.Requests, in.MeanISL, in.MeanPrefix)
	}
	if !sameOrNext(call.Milliseconds, want.Raw) || !sameOrNext(float64(scaled), want.Scaled) {
		t.Errorf("got %v, scaled %v, want %v, %v", call.Milliseconds, scaled, want.Raw, want.Scaled)
	}
}

// sameOrNext allows the last bit to differ.
func sameOrNext(a, b float64) bool { return a == b || math.Nextafter(a, b) == b }

func near(a, b, relative float64) bool { return math.Abs(a-b) <= relative*math.Abs(b) }

type npzInput struct {
	Data []byte `json:"npz_base64"`
}

type npzOutput struct {
	OK              bool
	Error           string
	Prefill, Decode []struct {
		Requests     int `json:"batch_size"`
		MeanISL      int `json:"mean_isl"`
		MeanPrefix   int `json:"mean_prefix"`
		ActiveTokens int `json:"active_kv_tokens"`
		MeanContext  int `json:"mean_context"`
		MS           float64
	}
}

func npz(t *testing.T, in npzInput, want npzOutput) {
	path := filepath.Join(t.TempDir(), "table.npz")
	if err := os.WriteFile(path, in.Data, 0o600); err != nil {
		t.Fatal(err)
	}
	table, err := profiledata.ReadNPZ(path)
	var grid *timing.Grid
	if err == nil {
		grid, err = timing.NewGrid(*table)
	}
	if !want.OK {
		sameFailure(t, err, want.Error)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(want.Prefill)+len(want.Decode) == 0 {
		t.Error("the case asks nothing")
	}
	for _, q := range want.Prefill {
		if got := grid.Prefill(q.Requests, q.MeanISL, q.MeanPrefix); !near(got, q.MS, 1e-12) {
			t.Errorf("prefill %+v: got %v", q, got)
		}
	}
	for _, q := range want.Decode {
		if got := grid.Decode(q.Requests, q.ActiveTokens, q.MeanContext, 0); !near(got, q.MS, 1e-12) {
			t.Errorf("decode %+v: got %v", q, got)
		}
	}
}

// failures pairs the first part of the reference's texts with the array and kind they identify.
var failures = []struct {
	text, array string
	kind        engine.Kind
}{
	{"Failed to build prefill interpolator: ", timing.PrefillTokensArray, engine.KindRange},
	{"Failed to build decode interpolator: The 0-dimension", timing.ActiveTokensArray, engine.KindRange},
	{"Failed to build decode interpolator: The 1-dimension", timing.ContextArray, engine.KindRange},
	{"Failed to build decode interpolator: The x-axis", timing.ActiveTokensArray, engine.KindRange},
	{"Failed to build decode interpolator: The y-axis", timing.ContextArray, engine.KindRange},
	{"Prefill array length mismatch: ", timing.PrefillMSArray, engine.KindConflict},
	{"Decode array dimension mismatch: ", timing.DecodeMSArray, engine.KindConflict},
}

func sameFailure(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one like %q", text)
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("more than one line: %v", err)
	}
	if strings.HasPrefix(text, "Failed to create NPZ reader") {
		if !strings.Contains(err.Error(), "not an NPZ file") {
			t.Errorf("got %v, want an error about the file", err)
		}
		return
	}
	got, ok := err.(*timing.ArrayError)
	if !ok {
		t.Fatalf("got %v, want an error about an array, like %q", err, text)
	}
	if rest, ok := strings.CutPrefix(text, "Failed to load "); ok {
		array, _, _ := strings.Cut(rest, " ")
		missing := strings.Contains(rest, "not found in archive")
		if got.Array != array || missing != (got.Kind == engine.KindMissing) {
			t.Errorf("got %v (%s), want an error like %q", err, got.Kind, text)
		}
		return
	}
	for _, f := range failures {
		if strings.HasPrefix(text, f.text) {
			if got.Array != f.array || got.Kind != f.kind {
				t.Errorf("got %v (%s), want %s of %s", err, got.Kind, f.kind, f.array)
			}
			return
		}
	}
	t.Errorf("no array is known for %q", text)
}

type profileInput struct {
	Layout  string
	Prefill struct {
		ISL  []float64 `json:"prefill_isl"`
		TTFT []float64 `json:"prefill_ttft"`
	}
	Decode struct {
		Usage   []float64       `json:"x_kv_usage"`
		Context []float64       `json:"y_context_length"`
		ITL     []float64       `json:"z_itl"`
		Max     json.RawMessage `json:"max_kv_tokens"`
	}
}

type profileOutput struct {
	ErrorType string `json:"error_type"`
	Error     string
	Shapes    map[string][]int

	PrefillTokens []float64          `json:"prefill_isl"`
	PrefillMS     []float64          `json:"prefill_ttft_ms"`
	ActiveTokens  []float64          `json:"decode_active_kv_tokens"`
	Context       []float64          `json:"decode_context_length"`
	DecodeMS      map[string]float64 `json:"decode_itl"`
}

func profileDir(t *testing.T, in profileInput, want profileOutput) {
	dir := t.TempDir()
	writeResults(t, dir, &in)
	table, err := profiledata.Read(dir)
	if want.ErrorType != "" {
		word := "decode"
		if strings.Contains(want.Error, "prefill") {
			word = "prefill"
		}
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("got %v, want an error about %s like %q", err, word, want.Error)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if shape := want.Shapes["decode_itl"]; table.DecodeShape != [2]int(shape) {
		t.Errorf("decode shape %v, want %v", table.DecodeShape, shape)
	}
	for _, v := range []struct {
		name      string
		got, want []float64
	}{
		{"prefill_isl", table.PrefillTokens, want.PrefillTokens}, {"prefill_ttft_ms", table.PrefillMS, want.PrefillMS},
		{"decode_active_kv_tokens", table.ActiveTokens, want.ActiveTokens}, {"decode_context_length", table.Context, want.Context},
	} {
		if len(v.got) != want.Shapes[v.name][0] || len(v.want) == 0 {
			t.Fatalf("%s: %d values, want %v", v.name, len(v.got), want.Shapes[v.name])
		}
	}
	sampled(t, "decode_active_kv_tokens", table.ActiveTokens, table.ActiveTokens, want.ActiveTokens, want.ActiveTokens)
	sampled(t, "decode_context_length", table.Context, table.Context, want.Context, want.Context)
	sampled(t, "prefill", table.PrefillTokens, table.PrefillMS, want.PrefillTokens, want.PrefillMS)
	for cell, ms := range want.DecodeMS {
		row, column, _ := strings.Cut(cell, ",")
		i, _ := strconv.Atoi(row)
		j, _ := strconv.Atoi(column)
		if got := table.DecodeMS[i*table.DecodeShape[1]+j]; !near(got, ms, 1e-9) {
			t.Errorf("decode_itl[%s]: got %v, want %v", cell, got, ms)
		}
	}
}

// sampled checks that the points that were recorded lie on a curve, and that they include its ends.
func sampled(t *testing.T, name string, x, y, wantX, wantY []float64) {
	t.Helper()
	last := len(wantX) - 1
	if !near(x[0], wantX[0], 1e-9) || !near(x[len(x)-1], wantX[last], 1e-9) {
		t.Errorf("%s: from %v to %v, want %v to %v", name, x[0], x[len(x)-1], wantX[0], wantX[last])
	}
	for i := range wantX {
		found := false
		for j := range x {
			found = found || near(x[j], wantX[i], 1e-9) && near(y[j], wantY[i], 1e-9)
		}
		if !found {
			t.Errorf("%s: no point %v, %v", name, wantX[i], wantY[i])
		}
	}
}

func writeResults(t *testing.T, dir string, in *profileInput) {
	t.Helper()
	if in.Layout == "json" {
		writeJSON(t, filepath.Join(dir, "prefill_raw_data.json"), in.Prefill)
		writeJSON(t, filepath.Join(dir, "decode_raw_data.json"), in.Decode)
		return
	}
	var most []float64
	if err := json.Unmarshal(in.Decode.Max, &most); err != nil {
		most = make([]float64, 1)
		if err := json.Unmarshal(in.Decode.Max, &most[0]); err != nil {
			t.Fatal(err)
		}
	}
	writeArrays(t, filepath.Join(dir, "selected_prefill_interpolation", "raw_data.npz"),
		map[string][]float64{"prefill_isl": in.Prefill.ISL, "prefill_ttft": in.Prefill.TTFT})
	writeArrays(t, filepath.Join(dir, "selected_decode_interpolation", "raw_data.npz"),
		map[string][]float64{"x_kv_usage": in.Decode.Usage, "y_context_length": in.Decode.Context, "z_itl": in.Decode.ITL,
			"max_kv_tokens": most})
}

func writeJSON(t *testing.T, path string, v any) {
	t.Helper()
	data, err := json.Marshal(v)
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func writeArrays(t *testing.T, path string, arrays map[string][]float64) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z := zip.NewWriter(f)
	for key, values := range arrays {
		w, err := z.Create(key + ".npy")
		if err == nil {
			err = profiledata.WriteNPY(w, values, len(values))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
}

type kvInput struct {
	Config json.RawMessage `json:"config_json"`
	Text   *string         `json:"config_text"`
	Dtype  string          `json:"kv_cache_dtype"`
}

type kvOutput struct {
	Bytes     *int64 `json:"kv_bytes_per_token"`
	ErrorType string `json:"error_type"`
}

func kvBytes(t *testing.T, in kvInput, want kvOutput) {
	dir := t.TempDir()
	text := []byte(in.Config)
	if in.Text != nil {
		text = []byte(*in.Text)
	}
	if len(text) > 0 && string(text) != "null" {
		if err := os.WriteFile(filepath.Join(dir, "config.json"), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l, err := kvbytes.Read(dir, in.Dtype)
	switch {
	case want.Bytes == nil && err == nil:
		t.Errorf("got %d bytes, want none (%s)", l.Bytes, want.ErrorType)
	case want.Bytes != nil && err != nil:
		t.Error(err)
	case want.Bytes != nil && l.Bytes != *want.Bytes:
		t.Errorf("got %d bytes, want %d", l.Bytes, *want.Bytes)
	}
}
