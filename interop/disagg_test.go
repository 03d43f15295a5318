package interop

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// side is the worker process of one role.
type side struct {
	*process
	port int // of its status server
	ours bool
}

// roles says who prefills and who decodes.
type roles struct {
	name                      string
	oursPrefills, oursDecodes bool
	together                  bool // in one process
}

var (
	twoProcesses = roles{"prefill and decode workers", true, true, false}
	oneProcess   = roles{"prefill and decode workers in one process", true, true, true}
	oursPrefills = roles{"prefill workers, decode workers of the reference", true, false, false}
	oursDecodes  = roles{"decode workers, prefill workers of the reference", false, true, false}
	allRoles     = []roles{twoProcesses, oneProcess, oursPrefills, oursDecodes}
)

// disagg is a deployment with one prefill and one decode worker.
type disagg struct {
	*cluster
	roles
	prefill, decode side
	joined          bool // the prefill worker has a bootstrap port
}

// disaggPool is the size of each worker's pool in tokens: room for about forty prompts of the tests.
const disaggPool = 1600

// startDisagg starts a deployment. more are flags of both workers.
func startDisagg(t *testing.T, engine string, joined bool, r roles, more ...string) *disagg {
	t.Helper()
	d := &disagg{cluster: newCluster(t), roles: r, joined: joined}
	d.frontend("--router-mode", "kv")
	args := append(engineFlags(engine), more...)
	var port []string
	if joined {
		port = []string{"--bootstrap-ports", fmt.Sprint(lowPort(t))}
	}
	if r.together {
		d.prefill = d.begin(true, "", append(append([]string{"--prefill-workers", "1", "--decode-workers", "1"}, args...), port...))
		d.decode = d.prefill
	} else {
		d.prefill = d.begin(r.oursPrefills, "prefill", append(append([]string{"--disaggregation-mode", "prefill"}, args...), port...))
		d.decode = d.begin(r.oursDecodes, "decode", append([]string{"--disaggregation-mode", "decode"}, args...))
	}
	d.serving(2)
	d.eventually(30*time.Second, "the frontend disaggregates", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		a, err := d.ask(ctx, "/v1/chat/completions", chat("warm up", 1), nil)
		return err == nil && a.status == 200 && !a.errored && (!joined || d.handoffs() > 0)
	})
	return d
}

// engineFlags are the flags of workers with a small pool.
func engineFlags(engine string) []string {
	args := []string{"--engine-type", engine, "--speedup-ratio", "4", "--max-num-seqs", "64", "--kv-bytes-per-token", "131072"}
	if engine == "sglang" {
		return append(args, "--block-size", "1", "--num-gpu-blocks-override", fmt.Sprint(disaggPool))
	}
	return append(args, "--block-size", "16", "--num-gpu-blocks-override", fmt.Sprint(disaggPool/16))
}

// begin starts a worker process.
func (d *disagg) begin(ours bool, role string, args []string) side {
	s := side{port: lowPort(d.t), ours: ours}
	env := []string{fmt.Sprint("DYN_SYSTEM_PORT=", s.port), "DYN_HTTP_RPC_HOST=127.0.0.1", "DYN_LOG=info,mockbench::handoff=debug"}
	if ours {
		s.process = d.oursIn(env, args...)
		return s
	}
	env[2] = "DYN_LOG=error"
	s.process = d.start("reference "+role+" worker", env, append([]string{python, "-m", "dynamo.mocker", "--model-path", modelDir(d.t),
		"--model-name", modelName}, args...)...)
	return s
}

// handoffs returns how many handoffs the workers of ours tell of.
func (d *disagg) handoffs() (n int) {
	for _, s := range []side{d.prefill, d.decode} {
		n = max(n, strings.Count(s.log.String(), "handoff complete"))
	}
	if d.together { // both sides tell in the same log
		n /= 2
	}
	return n
}

// many asks for n answers, some at a time.
func (d *disagg) many(n, tokens int) {
	d.t.Helper()
	var group sync.WaitGroup
	slots := make(chan struct{}, 8)
	for i := range n {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			ctx, cancel := context.WithTimeout(d.t.Context(), 60*time.Second)
			defer cancel()
			a, err := d.ask(ctx, "/v1/chat/completions", chat(fmt.Sprintf("question %d of %d: what is %d times 3?", i, n, i), tokens), nil)
			if err != nil || a.status != 200 || a.errored || a.usage.Completion != tokens || a.finish != "length" {
				d.t.Errorf("answer %d: got %+v, %v", i, a, err)
			}
		})
	}
	group.Wait()
}

// leave starts n long answers whose clients leave, some of them before the first token.
func (d *disagg) leave(n int) {
	var group sync.WaitGroup
	slots := make(chan struct{}, 8)
	for i := range n {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			ctx, cancel := context.WithTimeout(d.t.Context(), time.Duration(rand.IntN(150))*time.Millisecond)
			defer cancel()
			a, err := d.ask(ctx, "/v1/chat/completions", chat(fmt.Sprintf("long story %d of %d", i, n), 500), nil)
			if err == nil && !a.errored {
				d.t.Errorf("a story of 500 tokens was told in 150 ms: %+v", a)
			}
		})
	}
	group.Wait()
}

// idle waits until a worker of ours has no request and no block in use; the reference tells of its own only in passes.
func (d *disagg) idle() {
	d.t.Helper()
	for _, s := range []side{d.prefill, d.decode} {
		if !s.ours {
			continue
		}
		d.eventually(20*time.Second, "the worker of "+s.name+" is idle", func() bool {
			m := d.scrape(s.port)
			return total(m, "num_requests_running")+total(m, "num_requests_waiting")+total(m, "num_running_reqs")+total(m, "num_queue_reqs")+
				total(m, "kv_cache_usage_perc") == 0
		})
	}
}

// TestDisaggregatedRanks has two data-parallel ranks on each side.
func TestDisaggregatedRanks(t *testing.T) {
	for _, r := range []roles{oursPrefills, oursDecodes} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			startDisagg(t, "vllm", true, r, "--data-parallel-size", "2").check()
		})
	}
}

// check serves, lets clients leave at any moment, serves again, and looks for what is left. If workers kept the blocks of
// clients that left, the second round would find no room.
func (d *disagg) check() {
	d.t.Helper()
	begin := d.handoffs()
	d.many(40, 20)
	d.eventually(5*time.Second, "40 handoffs for 40 requests", func() bool { return !d.joined || d.handoffs()-begin == 40 })
	d.leave(80)
	d.many(40, 20)
	d.idle()
}

// TestTransferTakesItsTime has a transfer of about half a second in the answer's first token.
func TestTransferTakesItsTime(t *testing.T) {
	for _, joined := range []bool{true, false} {
		for _, r := range allRoles {
			t.Run(fmt.Sprintf("joined %v/%s", joined, r.name), func(t *testing.T) {
				t.Parallel()
				d := startDisagg(t, "vllm", joined, r, "--kv-transfer-bandwidth", "0.05")
				a := d.mustChat(strings.Repeat("a prompt that takes its time ", 6), 3)
				delay := time.Duration(float64(a.usage.Prompt)*131072/0.05e9*1000) * time.Millisecond
				t.Logf("%d prompt tokens, transfer %v, first token after %v", a.usage.Prompt, delay, a.first)
				if a.first < delay || a.first > delay+time.Second {
					t.Errorf("the first token came after %v, with a transfer of %v", a.first, delay)
				}
			})
		}
	}
}

// TestOneProcessCountsRequestsOnce compares the summary of a process with both roles with what clients asked for.
func TestOneProcessCountsRequestsOnce(t *testing.T) {
	t.Parallel()
	d := startDisagg(t, "vllm", true, oneProcess)
	begin := d.handoffs()
	d.many(20, 5)
	d.eventually(5*time.Second, "20 handoffs", func() bool { return d.handoffs()-begin == 20 })
	handoffs := d.handoffs()
	if _, status := d.prefill.stop(20 * time.Second); status != 0 {
		t.Errorf("exit status %d", status)
	}
	said := d.prefill.log.String()
	requests := regexp.MustCompile(`requests +(\d+) submitted, (\d+) completed, 0 rejected, 0 cancelled, 0 unfinished`).FindStringSubmatch(said)
	if requests == nil || requests[1] != requests[2] {
		t.Fatalf("summary:\n%s", said)
	}
	// Requests from before the frontend knew the prefill worker have no transfer.
	if n, _ := strconv.Atoi(requests[1]); n < handoffs || n > handoffs+5 {
		t.Errorf("%d requests, %d handoffs", n, handoffs)
	}
	if !regexp.MustCompile(fmt.Sprintf(`(?m)^transfer ms .* %d$`, handoffs)).MatchString(said) {
		t.Errorf("no %d transfers in the summary:\n%s", handoffs, said)
	}
}
