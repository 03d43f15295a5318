package replay

import (
	"crypto/sha256"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"mockbench/engine"
	"mockbench/engine/router"
	"mockbench/engine/trace"
	"mockbench/engine/trace/tracetest"
)

// writeBaseline writes the baseline trace, whose figures in the reference are known, and returns its path.
func writeBaseline(t testing.TB, n, gap int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "baseline.jsonl")
	if err := tracetest.WriteBaseline(path, n, gap); err != nil {
		t.Fatal(err)
	}
	return path
}

func baselineOptions(t testing.TB, path string, workers int, routed bool) Options {
	t.Helper()
	tr, err := trace.Read([]string{path}, trace.Options{Format: trace.Mooncake, BlockSize: 512})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Trace: tr, MaxTime: -1, Workers: Pool{Workers: workers, Engine: engine.DefaultConfig(engine.VLLM)}}
	if routed {
		c := router.DefaultConfig()
		o.Router = &c
	}
	return o
}

// baselines are the runs whose figures are known. Those of round robin are the reference's; the placements of routed ones
// are those of two other implementations.
var baselines = []struct {
	name         string
	gap, workers int
	routed       bool
	figures      map[string]float64
}{
	{"rr4", 60, 4, false, map[string]float64{"duration_ms": 601610.4960959974, "mean_ttft_ms": 84.93935266431765, "p99_ttft_ms": 170.33629000037035,
		"mean_itl_ms": 10.661297184088273, "p99_itl_ms": 110.4984029966124, "prefix_cache_reused_ratio": 0.3760687752518036}},
	{"kv4", 60, 4, true, map[string]float64{"duration_ms": 601512.4695370023, "mean_ttft_ms": 85.1781683200806,
		"prefix_cache_reused_ratio": 0.3789996472476658}},
	{"rr64", 4, 64, false, map[string]float64{"duration_ms": 41683.455816, "mean_ttft_ms": 101.99185053739461, "p99_ttft_ms": 222.30297000001883,
		"mean_itl_ms": 11.312459137032615, "p99_itl_ms": 126.84947081953312, "prefix_cache_reused_ratio": 0.21533771158573395}},
	{"kv64", 4, 64, true, map[string]float64{"duration_ms": 41720.67571399994, "mean_ttft_ms": 94.93688498769359,
		"prefix_cache_reused_ratio": 0.31118803693075436}},
}

func TestBaseline(t *testing.T) {
	sums := map[int]string{60: "f0d1dc440e15ca76f408bd94b709b49d5752ab2a1f261e0b6489cb37822c47ae",
		4: "ef4e83849b631ec54ba64d3122672e29225a5e99fba986c92beab2255c30036d"}
	for _, b := range baselines {
		t.Run(b.name, func(t *testing.T) {
			path := writeBaseline(t, 10000, b.gap)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if sum := fmt.Sprintf("%x", sha256.Sum256(data)); sum != sums[b.gap] {
				t.Fatalf("the trace has the sum %s", sum)
			}
			for _, general := range []bool{false, true} {
				o := baselineOptions(t, path, b.workers, b.routed)
				o.General = general
				_, s := replay(t, o)
				expect(t, s, map[string]float64{"completed_requests": 10000, "total_input_tokens": 53870657, "total_output_tokens": 1356751})
				expect(t, s, b.figures)
			}
		})
	}
}

// BenchmarkReplay reads and replays the baseline trace on one core and checks what comes out.
func BenchmarkReplay(b *testing.B) {
	for _, base := range baselines {
		b.Run(base.name, func(b *testing.B) {
			path := writeBaseline(b, 10000, base.gap)
			b.ReportAllocs()
			var passes uint64
			for b.Loop() {
				r, err := Run(baselineOptions(b, path, base.workers, base.routed))
				if err != nil {
					b.Fatal(err)
				}
				summary := r.Offline.Summary(r.Fleet)
				if d, _ := summary.Get("duration_ms"); math.Abs(d.(float64)-base.figures["duration_ms"]) > 1e-6 {
					b.Fatalf("duration %v, want %v", d, base.figures["duration_ms"])
				}
				passes = r.Passes
			}
			b.ReportMetric(float64(passes), "passes")
		})
	}
}
