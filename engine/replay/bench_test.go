package replay

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"mockbench/engine"
	"mockbench/engine/router"
	"mockbench/engine/trace"
)

// mixer is splitmix64, the generator of the baseline trace.
type mixer uint64

func (m *mixer) next() uint64 {
	*m += 0x9E3779B97F4A7C15
	z := uint64(*m)
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// writeBaseline writes the baseline trace, whose figures in the reference are known, and returns its path.
func writeBaseline(t testing.TB, n, gap int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "baseline.jsonl")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(f)
	random, unique := mixer(42), 1000000
	for i := range n {
		group, shared, own, trim, output := random.next()%64, 1+random.next()%8, 1+random.next()%12, random.next()%512, 16+random.next()%240
		fmt.Fprintf(w, `{"timestamp": %d, "input_length": %d, "output_length": %d, "hash_ids": [%d`, i*gap, (shared+own)*512-trim, output, group*16)
		for k := uint64(1); k < shared; k++ {
			fmt.Fprintf(w, ", %d", group*16+k)
		}
		for range own {
			fmt.Fprintf(w, ", %d", unique)
			unique++
		}
		fmt.Fprint(w, "]}\n")
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
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

// baselines are the runs whose figures are known; the placements of routed ones are those of two other implementations.
var baselines = []struct {
	name                  string
	gap, workers          int
	routed                bool
	duration, ttft, reuse float64
}{
	{"rr4", 60, 4, false, 601610.4960959974, 84.93935266431765, 0.3760687752518036},
	{"kv4", 60, 4, true, 601512.4695370023, 85.1781683200806, 0.3789996472476658},
	{"rr64", 4, 64, false, 41683.455816, 101.99185053739461, 0.21533771158573395},
	{"kv64", 4, 64, true, 41720.67571399994, 94.93688498769359, 0.31118803693075436},
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
			_, s := replay(t, baselineOptions(t, path, b.workers, b.routed))
			expect(t, s, map[string]float64{"completed_requests": 10000, "total_input_tokens": 53870657, "total_output_tokens": 1356751,
				"duration_ms": b.duration, "mean_ttft_ms": b.ttft, "prefix_cache_reused_ratio": b.reuse})
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
				if d, _ := summary.Get("duration_ms"); math.Abs(d.(float64)-base.duration) > 1e-6 {
					b.Fatalf("duration %v, want %v", d, base.duration)
				}
				passes = r.Passes
			}
			b.ReportMetric(float64(passes), "passes")
		})
	}
}
