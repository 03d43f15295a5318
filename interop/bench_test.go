package interop

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// rounds is how often both programs are measured, in turn.
const rounds = 3

// loadReport is what the load generator prints of a run.
type loadReport struct {
	Failed      int
	Tokens      int
	Requests    float64                    `json:"requests_per_s"`
	MeanPace    float64                    `json:"pace_mean_error_ms"`
	Pace        struct{ P50, P99 float64 } `json:"pace_abs_error_ms"`
	CPUPerToken map[string]float64         `json:"cpu_us_per_token"`
	RSS         map[string]float64         `json:"peak_rss_mb"`
}

// BenchmarkBesideTheReference measures our worker and the real mocker in turn, behind the real frontend, and reports
// the median of each figure for both. Run it on an idle machine:
//
//	go test ./interop -run '^$' -bench Beside -benchtime 1x -timeout 30m
func BenchmarkBesideTheReference(b *testing.B) {
	generator := filepath.Join(b.TempDir(), "load")
	if out, err := exec.Command("go", "build", "-o", generator, "./load").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	load := func(args ...string) func(*cluster, *process) loadReport {
		return func(c *cluster, p *process) (r loadReport) {
			warm := exec.Command(generator, "-url", c.url, "-c", "2", "-n", "4", "-max-tokens", "8")
			if out, err := warm.CombinedOutput(); err != nil {
				b.Fatalf("%v\n%s", err, out)
			}
			run := exec.Command(generator, append(args, "-url", c.url, "-pid", fmt.Sprintf("worker=%d", p.cmd.Process.Pid))...)
			out, err := run.Output()
			if err == nil {
				err = json.Unmarshal(out, &r)
			}
			if err != nil || r.Failed > 0 {
				b.Fatalf("%v\n%s", err, out)
			}
			return r
		}
	}
	const blockChanges = 242400 // of the churn run: 600 prompts of 202 blocks, each stored and removed
	for _, m := range []struct {
		name    string
		router  string
		worker  []string
		load    func(*cluster, *process) loadReport
		figures map[string]func(loadReport) float64
	}{
		{"tokens at no delay", "round-robin", []string{"--speedup-ratio", "1000000"}, load("-c", "64", "-n", "600", "-max-tokens", "256"),
			map[string]func(loadReport) float64{
				"us-cpu/token": func(r loadReport) float64 { return r.CPUPerToken["worker"] },
				"requests/s":   func(r loadReport) float64 { return r.Requests },
				"MB":           func(r loadReport) float64 { return r.RSS["worker"] },
			}},
		{"block churn", "kv", []string{"--block-size", "16", "--num-gpu-blocks-override", "2048", "--speedup-ratio", "1000000"},
			load("-c", "16", "-n", "600", "-max-tokens", "16", "-filler", "3200"),
			map[string]func(loadReport) float64{
				"us-cpu/blockchange": func(r loadReport) float64 { return r.CPUPerToken["worker"] * float64(r.Tokens) / blockChanges },
			}},
		{"pacing", "round-robin", nil, load("-c", "16", "-n", "16", "-max-tokens", "512", "-pace", "1048576"),
			map[string]func(loadReport) float64{
				"us-mean-error": func(r loadReport) float64 { return r.MeanPace * 1000 },
				"us-p50-error":  func(r loadReport) float64 { return r.Pace.P50 * 1000 },
				"us-p99-error":  func(r loadReport) float64 { return r.Pace.P99 * 1000 },
			}},
	} {
		b.Run(strings.ReplaceAll(m.name, " ", "-"), func(b *testing.B) {
			dir := modelDir(b)
			figures := map[string][]float64{}
			for range rounds {
				for _, who := range []string{"ours", "reference"} {
					c := newCluster(b)
					f := c.frontend("--router-mode", m.router)
					start := c.reference
					if who == "ours" {
						start = func(dir string, args ...string) *process { return c.ours(append(args, "--model-path", dir)...) }
					}
					p := start(dir, m.worker...)
					c.serving(1)
					r := m.load(c, p)
					for name, figure := range m.figures {
						figures[who+"-"+name] = append(figures[who+"-"+name], figure(r))
					}
					p.kill()
					f.kill()
				}
			}
			report(b, figures)
		})
	}
	b.Run("idle", func(b *testing.B) { idle(b) })
}

// idle measures how soon workers are listed, and what they use when nothing happens.
func idle(b *testing.B) {
	dir := modelDir(b)
	figures := map[string][]float64{}
	for range rounds {
		for _, who := range []string{"ours", "reference"} {
			for _, workers := range []int{1, 64} {
				c := newCluster(b)
				f := c.frontend()
				args := []string{"--num-workers", fmt.Sprint(workers)}
				begin := time.Now()
				var p *process
				if who == "ours" {
					p = c.ours(append(args, "--model-path", dir)...)
				} else {
					p = c.reference(dir, args...)
				}
				c.eventually(time.Minute, "the model is listed", c.listed)
				listed := time.Since(begin)
				c.serving(workers)
				time.Sleep(4 * time.Second)
				before := cpuTime(b, p)
				time.Sleep(10 * time.Second)
				used := cpuTime(b, p) - before
				note := func(name string, value float64) {
					key := fmt.Sprintf("%s-%s-%d", who, name, workers)
					figures[key] = append(figures[key], value)
				}
				note("s-listed", listed.Seconds())
				note("%cpu", used.Seconds()/10*100)
				note("MB", residentMB(b, p))
				p.kill()
				f.kill()
			}
		}
	}
	report(b, figures)
}

func report(b *testing.B, figures map[string][]float64) {
	for name, list := range figures {
		slices.Sort(list)
		b.ReportMetric(list[len(list)/2], name)
	}
	b.ReportMetric(0, "ns/op")
}

// cpuTime sums what all threads of a process have used (Linux).
func cpuTime(b *testing.B, p *process) (total time.Duration) {
	b.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.cmd.Process.Pid))
	if err != nil || len(files) == 0 {
		b.Fatalf("no scheduler statistics: %v", err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			continue // the thread has ended
		}
		ns, err := strconv.ParseInt(strings.Fields(string(data))[0], 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		total += time.Duration(ns)
	}
	return total
}

func residentMB(b *testing.B, p *process) float64 {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.cmd.Process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(data))[1], 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return float64(pages) * float64(os.Getpagesize()) / 1e6
}
