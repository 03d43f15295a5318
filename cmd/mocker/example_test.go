package mocker_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"mockbench/cmd/mocker"
	"mockbench/engine/live"
	"mockbench/profiles"
)

// Workers of a Go test: launched, asked without a frontend, and shut down.
func ExampleLaunch() {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	s, err := mocker.ParseArgs([]string{"--num-workers", "2", "--speedup-ratio", "0", "--discovery-backend", "mem"}, os.LookupEnv)
	if err != nil {
		fmt.Println(err)
		return
	}
	w, err := mocker.Launch(ctx, s, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(w.Live()), "workers of", w.Model())

	answer, err := w.Live()[1].Submit(live.Request{Label: "first", Prompt: make([]uint32, 100), MaxOutput: 5, Rank: -1})
	if err != nil {
		fmt.Println(err)
		return
	}
	var tokens []live.Token
	for end := live.Open; end == live.Open && err == nil; {
		tokens, end, err = answer.Take(ctx, tokens)
	}
	fmt.Println(len(tokens), "tokens", err)

	fmt.Println("shutdown:", mocker.GracefulShutdown(ctx, w))
	// Output:
	// 2 workers of mockbench-demo
	// 5 tokens <nil>
	// shutdown: <nil>
}

func ExampleParseArgs() {
	none := func(string) (string, bool) { return "", false }
	s, err := mocker.ParseArgs([]string{"--engine-type", "sglang", "--num-workers=40", "--stagger-delay", "-1", "--max-num-seqs", "16"}, none)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Workers, s.Launch.Engine.Backend, s.Launch.Engine.MaxNumSeqs, s.Stagger, s.Pools[0].Endpoint)

	_, err = mocker.ParseArgs([]string{"--num-workers", "two"}, none)
	fmt.Println(err)
	_, err = mocker.ParseArgs([]string{"--max-num-seqs", "0"}, none)
	fmt.Println(err)
	// Output:
	// 40 sglang 16 100ms dyn://dynamo.backend.generate
	// --num-workers: got "two", must be a whole number
	// --max-num-seqs: engine.max_num_seqs: got 0, must be positive
}

func ExampleRuntimeConfig() {
	l, err := profiles.Normalize([]byte(`{"engine": {"worker_type": "prefill"}, "dynamo": {"bootstrap_port": 8998}, "dp_size": 2}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	size, r, err := mocker.RuntimeConfig(l)
	fmt.Println(size, r.TotalKVBlocks, r.Ranks, r.Bootstrap.Host, r.Bootstrap.Port, err)
	// Output:
	// 64 16384 2 192.0.2.10 8998 <nil>
}

func ExampleRun() {
	ctx, stop := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer stop()
	fmt.Println(mocker.Run(ctx, []string{"--discovery-backend", "mem"}, nil))
	fmt.Println(mocker.Run(ctx, []string{"--block-size", "0"}, nil))
	// Output:
	// <nil>
	// --block-size: engine.block_size: got 0, must be at least 1
}

func ExampleRunTraceReplay() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "trace.jsonl")
	text := `{"timestamp": 0, "input_length": 600, "output_length": 4, "hash_ids": [1, 2]}
{"timestamp": 500, "input_length": 700, "output_length": 4, "hash_ids": [1, 3]}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	r, err := mocker.RunTraceReplay(context.Background(), []string{file}, mocker.ReplayOptions{
		ExtraEngineArgs: `{"engine": {"num_gpu_blocks": 256}}`, NumWorkers: 1, CapturePerRequest: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, name := range []string{"completed_requests", "total_output_tokens", "prefix_cache_reused_ratio"} {
		v, _ := r.Summary.Get(name)
		fmt.Println(name, v)
	}
	fmt.Println(len(r.PerRequest), "records")

	_, err = mocker.RunTraceReplay(context.Background(), []string{file}, mocker.ReplayOptions{RouterMode: "random"})
	fmt.Println(err)
	// Output:
	// completed_requests 2
	// total_output_tokens 8
	// prefix_cache_reused_ratio 0.39384615384615385
	// 2 records
	// --router-mode: got "random", allowed: round_robin, kv_router
}
