package jobs_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// row matches the figures of a worker in the overview.
var row = regexp.MustCompile(`(?m)^│ [> ][ !](\S+) .*?(\d+)% +(\d+) +(\d+) +(\d+\.\d) +(\d+|--) +([\d,]+) `)

// preempting returns the preemptions a second of all workers that an overview shows, and how many workers that are.
func preempting(screen string) (sum float64, workers int) {
	for _, m := range row.FindAllStringSubmatch(screen, -1) {
		x, _ := strconv.ParseFloat(m[5], 64)
		sum += x
		workers++
	}
	return sum, workers
}

func TestTuning(t *testing.T) {
	p := open(t, "tuning.md")
	x := p.start("mockbench --profile tight-memory --slo ttft_ms=1000,itl_ms=60")
	p.picture("before", x.until("preemptions of both workers", func(s string) bool {
		n, workers := preempting(s)
		return n > 0.5 && workers == 2 && strings.Contains(s, "goodput ") && strings.Contains(s, "00:00:1")
	}))
	x.press("b")
	x.shows("vs baseline")
	x.press("9")
	x.shows("> max_num_seqs")
	x.set("num_gpu_blocks", "576")
	p.picture("knob", x.screen())
	x.press("R")
	x.shows("workers restarted")
	x.press("1")
	p.picture("after", x.until("the end of preemptions", func(s string) bool {
		n, workers := preempting(s)
		return n == 0 && workers == 2 && strings.Count(s, "pre↓100%") == 2
	}))
	x.press("7")
	better := regexp.MustCompile(`TTFT, arrival to first token.*\n│ now +p50 +\S+ ↓\d+% +p99 +\S+ ↓\d+% `)
	p.picture("latency", x.until("latencies below the baseline", func(s string) bool {
		return strings.Count(s, "base p50") == 4 && better.MatchString(s)
	}))
	x.press("s")
	x.shows("saved mockbench --profile tuned-")
	out := x.quit()
	_, saved, found := strings.Cut(out, "\nsaved ")
	if !found || !strings.Contains(saved, "mockbench --profile tight-memory --num-gpu-blocks-override 576 --slo ttft_ms=1000,itl_ms=60\n") {
		t.Errorf("the flags are not told:\n%s", out)
	}
	p.picture("saved", "saved "+strings.TrimSpace(saved))
}

// hits are the shares of prompt tokens that the host tier panel shows.
var hits = regexp.MustCompile(`device hit ([\d.]+)% +h host hit ([\d.]+)% +N miss, computed ([\d.]+)%`)

func missed(screen string) float64 {
	m := hits.FindStringSubmatch(screen)
	if m == nil {
		return -1
	}
	x, _ := strconv.ParseFloat(m[3], 64)
	return x
}

// used matches how busy the link to the device is.
var used = regexp.MustCompile(`to device .*?[█#].*? (\d+)% `)

func TestHostTier(t *testing.T) {
	p := open(t, "g2-sizing.md")
	x := p.start("mockbench --profile g2-sizing")
	x.shows("RUN")
	x.press("3")
	settled := func(s string) bool { return strings.Contains(s, "00:00:2") && missed(s) >= 0 && missed(s) < 30 }
	p.picture("enough", x.until("hits of the host tier", settled))
	x.press("b", "9")
	x.shows("> max_num_seqs")
	x.set("num_host_blocks", "256")
	x.press("R")
	x.shows("workers restarted")
	x.press("3")
	p.picture("small", x.until("misses", func(s string) bool { return missed(s) > 40 && strings.Contains(s, "of 256 blocks") }))
	x.press("9")
	x.set("num_host_blocks", "1024")
	x.set("h2d_bandwidth_gbps", "1")
	x.press("R")
	x.shows("workers restarted")
	x.press("3")
	p.picture("link", x.until("a busy link", func(s string) bool {
		m := used.FindStringSubmatch(s)
		if m == nil {
			return false
		}
		n, _ := strconv.Atoi(m[1])
		return n >= 20 && strings.Contains(s, "of 1,024 blocks")
	}))
	x.quit()
}

func TestRouting(t *testing.T) {
	p := open(t, "routing-demo.md")
	x := p.start("mockbench --profile routing-ab --ab round-robin")
	x.shows("RUN")
	x.press("6")
	ahead := regexp.MustCompile(`hit rate +\d+\.\d% +\d+\.\d% +↓\d\d points`)
	p.picture("round-robin", x.until("more hits with the KV router", func(s string) bool {
		return ahead.MatchString(s) && strings.Contains(s, "00:00:2") && strings.Contains(s, "*64/")
	}))
	x.press("a")
	p.picture("random", x.shows("B: random, share and hit"))
	x.quit()
}

func TestExplain(t *testing.T) {
	p := open(t, "explain.md")
	x := p.start("mockbench --profile tight-memory")
	x.until("work", func(s string) bool { n, _ := preempting(s); return n > 0 })
	x.press("space")
	x.shows("PAUSE")
	x.press("4")
	x.shows("batches of w0")
	told := regexp.MustCompile(`(?m)^ ?w0 pass ([\d,]+): .*$`)
	last, pictures := "", map[string]string{"admitted": "", "preempted": ""}
	for range 400 {
		x.press(".")
		s := x.until("what a pass did", func(s string) bool {
			m := told.FindStringSubmatch(s)
			return m != nil && m[1] != last
		})
		last = told.FindStringSubmatch(s)[1]
		line := told.FindString(s)
		for word := range pictures {
			if pictures[word] == "" && strings.Contains(line, word) {
				pictures[word] = s
			}
		}
		if pictures["admitted"] != "" && pictures["preempted"] != "" {
			break
		}
	}
	for word, s := range pictures {
		if s == "" {
			t.Fatalf("nothing was %s in 400 passes", word)
		}
		p.picture(word, s)
	}
	x.press("left")
	x.shows(" ago: ")
	x.press("esc")
	x.until("the present", func(s string) bool { return !strings.Contains(s, " ago: ") })
	x.press("2")
	p.picture("blocks", x.shows("used by"))
	x.press("space")
	x.shows("RUN")
	x.quit()
}

func TestIntegration(t *testing.T) {
	p := open(t, "integration.md")
	x := p.start("mockbench --discovery-backend file --model-name demo --block-size 16")
	x.shows("RUN")
	x.press("7")
	p.picture("events", x.shows("ready model=demo"))
	status, out := p.run("mockbench doctor --discovery-backend file")
	if status != 0 || !strings.Contains(out, `model "demo" in namespace dynamo: has every kind of worker it needs`) {
		t.Errorf("status %d\n%s", status, out)
	}
	p.picture("doctor", out)
	status, out = p.run("mockbench doctor --discovery-backend file --model-name demo --block-size 32")
	if status != 1 || !strings.Contains(out, "kv_cache_block_size differs (16 and 32)") {
		t.Errorf("status %d\n%s", status, out)
	}
	p.picture("mismatch", out)
	x.quit()
	if _, out = p.run("mockbench doctor --discovery-backend file"); strings.Contains(out, `model "demo"`) || strings.Contains(out, "1 workers") {
		t.Errorf("records are left:\n%s", out)
	}
}
