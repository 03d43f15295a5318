// Command load sends streaming chat completions to an OpenAI-style frontend in a closed loop and measures what comes
// back, and the CPU time that given processes use meanwhile (Linux).
//
//	go run ./interop/load -url http://127.0.0.1:8000 -model mock -c 64 -n 600 -max-tokens 256 -pid worker=123 -pid frontend=124
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

// pids are processes to measure, by a name for the report.
type pids map[string]string

func (p pids) String() string { return fmt.Sprint(map[string]string(p)) }

func (p pids) Set(s string) error {
	name, pid, ok := strings.Cut(s, "=")
	if !ok {
		return fmt.Errorf("want NAME=PID, got %q", s)
	}
	p[name] = pid
	return nil
}

// report is what a run prints.
type report struct {
	Requests       int                `json:"requests"`
	Failed         int                `json:"failed"`
	Tokens         int                `json:"tokens"` // as the frontend counted them
	Chunks         int                `json:"chunks"` // with content
	Seconds        float64            `json:"seconds"`
	RequestsPerSec float64            `json:"requests_per_s"`
	TokensPerSec   float64            `json:"tokens_per_s"`
	TTFT           percentiles        `json:"ttft_ms"`
	ITL            percentiles        `json:"itl_ms"`
	MeanPaceError  float64            `json:"pace_mean_error_ms,omitempty"`
	PaceError      percentiles        `json:"pace_abs_error_ms,omitzero"`
	CPUPerToken    map[string]float64 `json:"cpu_us_per_token,omitempty"`
	Core           map[string]float64 `json:"core_use,omitempty"`
	RSS            map[string]float64 `json:"peak_rss_mb,omitempty"`
	FirstFailure   string             `json:"first_failure,omitempty"`
}

func main() {
	var o options
	processes := pids{}
	flag.StringVar(&o.url, "url", "http://127.0.0.1:8000", "frontend")
	flag.StringVar(&o.model, "model", "mock", "model name")
	flag.IntVar(&o.connections, "c", 64, "concurrent requests")
	flag.IntVar(&o.requests, "n", 600, "requests in all")
	flag.IntVar(&o.maxTokens, "max-tokens", 256, "output tokens of each request")
	flag.IntVar(&o.filler, "filler", 200, "letters that make each prompt longer; a byte-level tokenizer makes a token of each")
	flag.IntVar(&o.paceTokens, "pace", 0, "token slots of the worker's pool: compare gaps with the polynomial timing model")
	flag.Var(processes, "pid", "process to measure, NAME=PID; may be given more than once")
	flag.Parse()
	before, err := usageOf(processes)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	start := time.Now()
	r := run(o)
	r.Seconds = time.Since(start).Seconds()
	r.RequestsPerSec, r.TokensPerSec = float64(r.Requests)/r.Seconds, float64(r.Tokens)/r.Seconds
	after, err := usageOf(processes)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	r.CPUPerToken, r.Core, r.RSS = map[string]float64{}, map[string]float64{}, map[string]float64{}
	for name := range after {
		used := after[name].cpu - before[name].cpu
		r.CPUPerToken[name] = used * 1e6 / float64(max(1, r.Tokens))
		r.Core[name] = used / r.Seconds
		if after[name].rssMB > 0 {
			r.RSS[name] = after[name].rssMB
		}
	}
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(r); err != nil || r.Failed > 0 {
		os.Exit(1)
	}
}
