package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mockbench/engine/spawn"
)

type options struct {
	url, model                       string
	connections, requests, maxTokens int
	filler                           int // letters that make each prompt longer
	paceTokens                       int // token slots of the worker's pool, to compare gaps with the model; 0: do not
}

// percentiles of a list of milliseconds.
type percentiles struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

func percentilesOf(list []float64) percentiles {
	if len(list) == 0 {
		return percentiles{}
	}
	slices.Sort(list)
	at := func(p float64) float64 { return list[int(p*float64(len(list)-1))] }
	sum := 0.0
	for _, v := range list {
		sum += v
	}
	return percentiles{sum / float64(len(list)), at(0.5), at(0.9), at(0.99), list[len(list)-1]}
}

// result is what one request gave.
type result struct {
	tokens, chunks int
	ttft           float64
	gaps           []float64
	err            error
}

// run keeps the given number of requests in flight until all are done.
func run(o options) report {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: o.connections, MaxConnsPerHost: o.connections}}
	var next atomic.Int64
	results := make(chan result, o.connections)
	var wait sync.WaitGroup
	for range o.connections {
		wait.Add(1)
		spawn.Go("client", func() {
			defer wait.Done()
			for n := next.Add(1); n <= int64(o.requests); n = next.Add(1) {
				results <- ask(client, o, int(n))
			}
		})
	}
	spawn.Go("end of the run", func() { wait.Wait(); close(results) })
	var r report
	var ttft, gaps, errors []float64
	for one := range results {
		r.Requests++
		r.Tokens += one.tokens
		r.Chunks += one.chunks
		gaps = append(gaps, one.gaps...)
		if o.paceTokens > 0 {
			errors = append(errors, paceErrors(one.gaps, o)...)
		}
		if one.chunks > 0 {
			ttft = append(ttft, one.ttft)
		}
		if one.err != nil {
			if r.Failed == 0 {
				r.FirstFailure = one.err.Error()
			}
			r.Failed++
		}
	}
	r.TTFT, r.ITL = percentilesOf(ttft), percentilesOf(gaps)
	r.MeanPaceError = percentilesOf(errors).Mean
	for i, e := range errors {
		errors[i] = math.Abs(e)
	}
	r.PaceError = percentilesOf(errors)
	return r
}

const (
	promptTokens = 32 // of ask's prompt without filler, with a byte-level tokenizer
	firstGap     = 9  // earlier gaps still contain prefill passes
)

// paceErrors compares the gaps of one request of a single wave with the polynomial decode time of a batch that starts
// together: observed minus modelled, in ms.
func paceErrors(gaps []float64, o options) (errors []float64) {
	for k := firstGap; k < len(gaps); k++ {
		u := min(1, float64(o.connections*(promptTokens+o.filler+k+1))/float64(o.paceTokens))
		errors = append(errors, gaps[k]-max(1, -25.74*u*u+54.01*u+5.74))
	}
	return errors
}

// ask sends one request with a prompt that no other request starts with.
func ask(client *http.Client, o options, n int) (r result) {
	prompt := fmt.Sprintf("%08d-%d %s", n, time.Now().UnixNano(), strings.Repeat("x", o.filler))
	body, _ := json.Marshal(map[string]any{"model": o.model, "stream": true, "max_tokens": o.maxTokens, "ignore_eos": true,
		"stream_options": map[string]bool{"include_usage": true},
		"messages":       []map[string]string{{"role": "user", "content": prompt}}})
	start := time.Now()
	response, err := client.Post(o.url+"/v1/chat/completions", "application/json", bytes.NewReader(body))
	if err != nil {
		return result{err: err}
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 512))
		return result{err: fmt.Errorf("status %d: %s", response.StatusCode, text)}
	}
	r.err = read(response.Body, start, &r)
	return r
}

var (
	dataPrefix = []byte("data: ")
	content    = []byte(`"content":"`)
	usageKey   = []byte(`"completion_tokens"`)
)

func read(body io.Reader, start time.Time, r *result) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 64<<10), 1<<20)
	last, done := start, false
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), dataPrefix)
		switch {
		case !ok:
		case bytes.Equal(data, []byte("[DONE]")):
			done = true
		case bytes.HasPrefix(data, []byte(`{"error"`)):
			return fmt.Errorf("error event: %s", data)
		case bytes.Contains(data, usageKey):
			var chunk struct {
				Usage struct {
					Tokens int `json:"completion_tokens"`
				}
			}
			if err := json.Unmarshal(data, &chunk); err != nil {
				return err
			}
			r.tokens = max(r.tokens, chunk.Usage.Tokens)
		case bytes.Contains(data, content):
			now := time.Now()
			gap := float64(now.Sub(last)) / float64(time.Millisecond)
			if r.chunks == 0 {
				r.ttft = gap
			} else {
				r.gaps = append(r.gaps, gap)
			}
			last = now
			r.chunks++
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if !done {
		return fmt.Errorf("the stream ended without [DONE] after %d chunks", r.chunks)
	}
	return nil
}
