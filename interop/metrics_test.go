package interop

import (
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// series are the values of a scrape by series, numbers that change with every worker left out of the labels.
type series map[string]float64

func (c *cluster) scrape(port int) series {
	c.t.Helper()
	out := series{}
	for _, line := range strings.Split(fetch(c.t, fmt.Sprintf("http://127.0.0.1:%d/metrics", port)), "\n") {
		space := strings.LastIndexByte(line, ' ')
		if space < 0 || line[0] == '#' {
			continue
		}
		v, err := strconv.ParseFloat(line[space+1:], 64)
		if err != nil {
			c.t.Fatalf("%q: %v", line, err)
		}
		out[withoutIDs(line[:space])] = v
	}
	return out
}

// withoutIDs blanks what is different for every worker.
func withoutIDs(name string) string {
	for _, label := range []string{`worker_id="`, `worker_kv_query_source_`} {
		before, rest, found := strings.Cut(name, label)
		if _, after, closed := strings.Cut(rest, `"`); found && closed {
			name = before + label + `*"` + after
		}
	}
	return name
}

// lowPort returns a free port that the reference accepts for its status server: it reads a signed 16-bit number.
func lowPort(t testing.TB) int {
	t.Helper()
	for range 100 {
		port := 20000 + rand.IntN(12767)
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no free port below 32768")
	return 0
}

// TestMetricsEqualTheReferences serves the same requests with the real mocker and with ours, and compares what both
// show: every series of the reference is there, and those that count have the same value.
func TestMetricsEqualTheReferences(t *testing.T) {
	for _, engine := range []string{"vllm", "sglang", "trtllm"} {
		t.Run(engine, func(t *testing.T) {
			args := []string{"--engine-type", engine, "--data-parallel-size", "2", "--speedup-ratio", "10"}
			serve := func(start func(c *cluster, env []string)) series {
				c := newCluster(t)
				c.frontend()
				port := lowPort(t)
				start(c, []string{"DYN_SYSTEM_PORT=" + fmt.Sprint(port)})
				c.serving(1)
				var group sync.WaitGroup
				for i := range 6 {
					group.Go(func() { c.mustChat(fmt.Sprint("request ", i), 5) })
				}
				group.Wait()
				var s series
				c.eventually(10*time.Second, "all requests are counted", func() bool {
					s = c.scrape(port)
					return total(s, "e2e_request_latency_seconds_count") == 6
				})
				return s
			}
			theirs := serve(func(c *cluster, env []string) {
				c.start("reference mocker", append(env, "DYN_LOG=warn"), append([]string{python, "-m", "dynamo.mocker",
					"--model-path", modelDir(t), "--model-name", modelName}, args...)...)
			})
			ours := serve(func(c *cluster, env []string) { c.oursIn(env, args...) })
			compareSeries(t, theirs, ours)
		})
	}
}

func total(s series, suffix string) (sum float64) {
	for name, v := range s {
		if family, _, _ := strings.Cut(name, "{"); strings.HasSuffix(family, suffix) {
			sum += v
		}
	}
	return sum
}

// compareSeries compares names, and of families that count what clients did, the sums over ranks.
func compareSeries(t *testing.T, theirs, ours series) {
	t.Helper()
	var missing []string
	for name := range theirs {
		if _, ok := ours[name]; !ok {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	if len(missing) > 0 {
		t.Errorf("series of the reference that we lack:\n%s", strings.Join(missing, "\n"))
	}
	for _, family := range []string{"time_to_first_token_seconds_count", "inter_token_latency_seconds_count",
		"e2e_request_latency_seconds_count", "num_requests_total", "num_preemptions_total", "component_requests_total"} {
		if got, want := total(ours, family), total(theirs, family); got != want {
			t.Errorf("%s: ours add up to %v, the reference's to %v", family, got, want)
		}
	}
}

// TestMetricsWhileServing looks at a busy process with two workers.
func TestMetricsWhileServing(t *testing.T) {
	c := newCluster(t)
	c.frontend("--router-mode", "round-robin")
	port := freePort(t)
	c.oursIn([]string{"DYN_SYSTEM_PORT=" + fmt.Sprint(port)}, "--num-workers", "2", "--max-num-seqs", "1")
	c.serving(2)
	done := make(chan struct{})
	go func() {
		defer close(done)
		var group sync.WaitGroup
		for i := range 4 {
			group.Go(func() { c.mustChat(fmt.Sprint("busy ", i), 200) })
		}
		group.Wait()
	}()
	c.eventually(20*time.Second, "two requests run and two wait", func() bool {
		text := fetch(t, fmt.Sprintf("http://127.0.0.1:%d/metrics", port))
		return sum(text, "vllm:num_requests_running{") == 2 && sum(text, "vllm:num_requests_waiting{") == 2 &&
			sum(text, "dynamo_component_inflight_requests{") == 4 && sum(text, "vllm:kv_cache_usage_perc{") > 0
	})
	<-done
	c.eventually(10*time.Second, "nothing runs any more", func() bool {
		text := fetch(t, fmt.Sprintf("http://127.0.0.1:%d/metrics", port))
		return sum(text, "vllm:num_requests_running{") == 0 && sum(text, "vllm:inter_token_latency_seconds_count{") == 4*199 &&
			sum(text, "dynamo_component_inflight_requests{") == 0
	})
}

// sum adds up the lines of a scrape that start with a prefix.
func sum(text, prefix string) (total float64) {
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, prefix) {
			v, _ := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
			total += v
		}
	}
	return total
}
