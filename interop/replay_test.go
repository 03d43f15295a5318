package interop

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"mockbench/engine/trace/tracetest"
)

// referenceReplay replays a trace by the reference's function and prints the seconds and processor seconds of the call.
const referenceReplay = `
import json, resource, sys, time
from dynamo._core import run_mocker_trace_replay
def cpu():
    r = resource.getrusage(resource.RUSAGE_SELF)
    return r.ru_utime + r.ru_stime
wall, before = time.time(), cpu()
run_mocker_trace_replay([sys.argv[1]], extra_engine_args={"engine": {"num_gpu_blocks": 16384, "block_size": 64}},
                        num_workers=int(sys.argv[2]), router_mode=sys.argv[3], trace_block_size=512)
print(json.dumps({"wall": time.time() - wall, "cpu": cpu() - before}))
`

// cost is what a run took: processor seconds of the process, seconds and processor seconds of the replay within it, MiB.
type cost struct{ process, call, callCPU, peak float64 }

func (c *cost) least(o cost) {
	if c.process == 0 {
		*c = o
	}
	*c = cost{min(c.process, o.process), min(c.call, o.call), min(c.callCPU, o.callCPU), min(c.peak, o.peak)}
}

func measure(b *testing.B, command *exec.Cmd) (out []byte, c cost) {
	b.Helper()
	out, err := command.Output()
	if err != nil {
		b.Fatalf("%v: %v", command.Args, err)
	}
	c.process = (command.ProcessState.UserTime() + command.ProcessState.SystemTime()).Seconds()
	c.peak = float64(command.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) / 1024
	return out, c
}

// BenchmarkReplayBesideTheReference replays the baseline traces with both programs in turn and reports the least cost of
// each, and how many times as much the reference's is. Run it with
//
//	go tool task bench:replay
func BenchmarkReplayBesideTheReference(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		for _, fleet := range []struct{ workers, gap int }{{4, 60}, {64, 4}} {
			path := filepath.Join(b.TempDir(), "trace.jsonl")
			if err := tracetest.WriteBaseline(path, n, fleet.gap); err != nil {
				b.Fatal(err)
			}
			for _, mode := range []string{"round_robin", "kv_router"} {
				b.Run(fmt.Sprintf("%dk/%d/%s", n/1000, fleet.workers, mode), func(b *testing.B) {
					besideReference(b, path, fleet.workers, mode)
				})
			}
		}
	}
}

func besideReference(b *testing.B, path string, workers int, mode string) {
	var theirs, one, two cost
	for b.Loop() {
		for range rounds {
			theirs.least(replayReference(b, path, workers, mode))
			one.least(replayOurs(b, path, workers, mode, 1))
			two.least(replayOurs(b, path, workers, mode, 2))
		}
	}
	for _, m := range []struct {
		value float64
		unit  string
	}{
		{theirs.process, "ref-cpu-s"}, {one.process, "our-cpu-s"}, {theirs.process / one.process, "x-cpu"},
		{theirs.callCPU, "ref-call-cpu-s"}, {one.call, "our-call-s"}, {theirs.callCPU / one.call, "x-call"},
		{two.call, "our-call-2cores-s"}, {theirs.callCPU / two.call, "x-call-2cores"},
		{theirs.peak, "ref-MiB"}, {one.peak, "our-MiB"}, {theirs.peak / one.peak, "x-MiB"},
	} {
		b.ReportMetric(m.value, m.unit)
	}
	b.ReportMetric(0, "ns/op") // it is that of all runs together
}

func replayReference(b *testing.B, path string, workers int, mode string) cost {
	command := exec.Command(python, "-c", referenceReplay, path, strconv.Itoa(workers), mode)
	command.Env = append(os.Environ(), "DYN_LOG=error")
	out, c := measure(b, command)
	var call struct{ Wall, CPU float64 }
	if err := json.Unmarshal(out, &call); err != nil {
		b.Fatalf("%s: %v", out, err)
	}
	c.call, c.callCPU = call.Wall, call.CPU
	return c
}

func replayOurs(b *testing.B, path string, workers int, mode string, cores int) cost {
	command := exec.Command(binary, "replay", path, "--num-workers", strconv.Itoa(workers), "--router-mode", mode, "--cores", strconv.Itoa(cores),
		"--quiet", "--report-json", "-")
	command.Env = append(os.Environ(), fmt.Sprintf("GOMAXPROCS=%d", cores))
	out, c := measure(b, command)
	var report struct {
		Summary struct {
			Wall float64 `json:"wall_time_ms"`
		}
	}
	if err := json.Unmarshal(out, &report); err != nil {
		b.Fatalf("%s: %v", out, err)
	}
	c.call = report.Summary.Wall / 1000
	return c
}
