package interop

import (
	"context"
	"fmt"
	"math/rand/v2"
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

// disagg is a deployment with one prefill and one decode worker.
type disagg struct {
	*cluster
	prefill, decode side
	joined          bool // the prefill worker has a bootstrap port
}

// disaggPool is the size of each worker's pool in tokens: room for about forty prompts of the tests.
const disaggPool = 1600

// startDisagg starts a deployment. more are flags of both workers.
func startDisagg(t *testing.T, engine string, joined, oursPrefills, oursDecodes bool, more ...string) *disagg {
	t.Helper()
	d := &disagg{cluster: newCluster(t), joined: joined}
	d.frontend("--router-mode", "kv")
	dir := modelDir(t)
	args := []string{"--engine-type", engine, "--speedup-ratio", "4", "--max-num-seqs", "64", "--kv-bytes-per-token", "131072"}
	if engine == "sglang" {
		args = append(args, "--block-size", "1", "--num-gpu-blocks-override", fmt.Sprint(disaggPool))
	} else {
		args = append(args, "--block-size", "16", "--num-gpu-blocks-override", fmt.Sprint(disaggPool/16))
	}
	args = append(args, more...)
	begin := func(ours bool, role string, more ...string) side {
		s := side{port: lowPort(t), ours: ours}
		env := []string{fmt.Sprint("DYN_SYSTEM_PORT=", s.port), "DYN_HTTP_RPC_HOST=127.0.0.1", "DYN_LOG=info,mockbench::handoff=debug"}
		all := append(append([]string{"--disaggregation-mode", role}, args...), more...)
		if ours {
			s.process = d.oursIn(env, all...)
		} else {
			env[2] = "DYN_LOG=error"
			s.process = d.start("reference "+role+" worker", env, append([]string{python, "-m", "dynamo.mocker", "--model-path", dir,
				"--model-name", modelName}, all...)...)
		}
		return s
	}
	var port []string
	if joined {
		port = []string{"--bootstrap-ports", fmt.Sprint(lowPort(t))}
	}
	d.prefill = begin(oursPrefills, "prefill", port...)
	d.decode = begin(oursDecodes, "decode")
	d.serving(2)
	d.eventually(30*time.Second, "the frontend disaggregates", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		a, err := d.ask(ctx, "/v1/chat/completions", chat("warm up", 1), nil)
		return err == nil && a.status == 200 && !a.errored && (!joined || d.handoffs() > 0)
	})
	return d
}

// handoffs returns how many handoffs the workers of ours tell of.
func (d *disagg) handoffs() (n int) {
	for _, s := range []side{d.prefill, d.decode} {
		n = max(n, strings.Count(s.log.String(), "handoff complete"))
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

// TestDisaggregated serves with a prefill and a decode worker, ours and the reference's in every mix: answers are
// complete, clients leave at any moment, and afterwards neither side keeps blocks for them.
func TestDisaggregated(t *testing.T) {
	for _, engine := range []string{"vllm", "sglang"} {
		for _, joined := range []bool{true, false} {
			for _, mix := range [][2]bool{{true, true}, {true, false}, {false, true}} {
				name := fmt.Sprintf("%s/%s/%s-%s", engine, map[bool]string{true: "joined", false: "sequential"}[joined], whose(mix[0]), whose(mix[1]))
				t.Run(name, func(t *testing.T) {
					d := startDisagg(t, engine, joined, mix[0], mix[1])
					d.check()
				})
			}
		}
	}
}

// TestDisaggregatedRanks has two data-parallel ranks on each side.
func TestDisaggregatedRanks(t *testing.T) {
	for _, mix := range [][2]bool{{true, false}, {false, true}} {
		t.Run(whose(mix[0])+"-"+whose(mix[1]), func(t *testing.T) {
			startDisagg(t, "vllm", true, mix[0], mix[1], "--data-parallel-size", "2").check()
		})
	}
}

// check serves, lets clients leave, serves again, and looks for what is left. If workers kept the blocks of clients that
// left, the second round would find no room.
func (d *disagg) check() {
	d.t.Helper()
	begin := d.handoffs()
	d.many(40, 20)
	d.eventually(5*time.Second, "40 handoffs for 40 requests", func() bool { return !d.joined || d.handoffs()-begin == 40 })
	d.leave(80)
	d.many(40, 20)
	d.idle()
}

func whose(ours bool) string {
	if ours {
		return "ours"
	}
	return "reference"
}

// TestTransferTakesItsTime has a transfer of about half a second in the answer's first token.
func TestTransferTakesItsTime(t *testing.T) {
	for _, joined := range []bool{true, false} {
		for _, mix := range [][2]bool{{true, true}, {true, false}, {false, true}} {
			t.Run(fmt.Sprintf("joined %v/%s-%s", joined, whose(mix[0]), whose(mix[1])), func(t *testing.T) {
				d := startDisagg(t, "vllm", joined, mix[0], mix[1], "--kv-transfer-bandwidth", "0.05")
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
