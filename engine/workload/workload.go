// Package workload makes the load of a demonstration or a benchmark: requests with lengths, shared prefixes and
// follow-up turns as asked for, the same ones for the same seed.
//
// [Load.Run] drives live workers on simulated time. A driver with a clock of its own takes requests with [Load.Next]
// and [Load.Follow].
package workload

import (
	"fmt"
	"math"

	"mockbench/engine"
)

// Token ids of prompts lie in [FirstToken, LastToken].
const (
	FirstToken = 1000
	LastToken  = 31999
)

// Options describe a load. All but Seed and Requests may change while it runs.
type Options struct {
	Seed     uint64
	Requests int // stop after so many; 0 = no end

	Rate        float64 // requests a simulated second, arrivals at random (open loop); 0 = Concurrency counts
	Burst       int     // open loop: so many arrive together, at the same rate; 0 is 1
	Concurrency int     // requests in flight at any time (closed loop), if Rate is 0
	Sessions    int     // conversations at any time, each in flight or thinking, if neither of them is given
	MaxInFlight int     // open loop: arrivals beyond so many requests in flight are dropped and counted; 0 = 4096

	PromptMean, PromptSpread int // new tokens of a prompt: mean and standard deviation
	OutputMean, OutputSpread int // tokens of an answer: mean and standard deviation

	PrefixCount  int     // number of different shared prefixes
	PrefixLength int     // tokens of each
	PrefixShare  float64 // of the conversations that begin with one of them, 0 to 1

	Turns     int     // most turns of a conversation, their number is uniform from 1; 0 is 1
	ThinkTime float64 // mean simulated milliseconds between an answer and the next turn
	MaxPrompt int     // a conversation whose next prompt would be longer ends; 0 = 8192
}

// Demo returns the load of the embedded demonstration for a number of workers.
func Demo(workers int) Options {
	return Options{Rate: 3 * float64(workers), PromptMean: 300, PromptSpread: 120, OutputMean: 160, OutputSpread: 60,
		PrefixCount: 8, PrefixLength: 512, PrefixShare: 0.6, Turns: 4, ThinkTime: 1500}
}

// What Options mean by 0.
const (
	DefaultMaxInFlight = 4096
	DefaultMaxPrompt   = 8192
)

// mostTokens bounds lengths, since requests are made in memory: no context is that long.
const mostTokens = 10_000_000

// Validate returns a *engine.SettingError for the first setting that is out of range.
func (o Options) Validate() error {
	wrong := func(setting string, given any, allowed string) error {
		return &engine.SettingError{Setting: "workload." + setting, Kind: engine.KindRange, Given: fmt.Sprint(given), Allowed: allowed}
	}
	for _, s := range []struct {
		name   string
		tokens int
	}{
		{"prompt_mean", o.PromptMean}, {"prompt_spread", o.PromptSpread}, {"output_mean", o.OutputMean},
		{"output_spread", o.OutputSpread}, {"prefix_length", o.PrefixLength},
	} {
		if s.tokens > mostTokens {
			return wrong(s.name, s.tokens, fmt.Sprintf("must be at most %d", mostTokens))
		}
	}
	for _, s := range []struct {
		name       string
		value, min int
	}{
		{"requests", o.Requests, 0}, {"burst", o.Burst, 0}, {"concurrency", o.Concurrency, 0}, {"sessions", o.Sessions, 0}, {"max_in_flight", o.MaxInFlight, 0},
		{"prompt_mean", o.PromptMean, 1}, {"prompt_spread", o.PromptSpread, 0},
		{"output_mean", o.OutputMean, 1}, {"output_spread", o.OutputSpread, 0},
		{"prefix_count", o.PrefixCount, 0}, {"prefix_length", o.PrefixLength, 0},
		{"turns", o.Turns, 0}, {"max_prompt", o.MaxPrompt, 0},
	} {
		if s.value < s.min {
			return wrong(s.name, s.value, fmt.Sprintf("must be at least %d", s.min))
		}
	}
	switch {
	case !(o.Rate >= 0) || math.IsInf(o.Rate, 0):
		return wrong("rate", o.Rate, "must be finite and not negative")
	case o.Rate == 0 && o.Concurrency == 0 && o.Sessions == 0:
		return wrong("concurrency", 0, "must be positive if no rate and no sessions are given")
	case !(o.PrefixShare >= 0 && o.PrefixShare <= 1):
		return wrong("prefix_share", o.PrefixShare, "must be between 0 and 1")
	case !(o.ThinkTime >= 0) || math.IsInf(o.ThinkTime, 0):
		return wrong("think_time", o.ThinkTime, "must be finite and not negative")
	}
	return nil
}

// withDefaults fills in what was left out.
func (o Options) withDefaults() Options {
	if o.MaxInFlight == 0 {
		o.MaxInFlight = DefaultMaxInFlight
	}
	if o.MaxPrompt == 0 {
		o.MaxPrompt = DefaultMaxPrompt
	}
	o.Turns, o.Burst = max(o.Turns, 1), max(o.Burst, 1)
	return o
}

// WithoutDefaults returns options that came of these, with 0 again for what is as these left it out.
func (o Options) WithoutDefaults(now Options) Options {
	full := o.withDefaults()
	for _, f := range []struct{ now, given, full *int }{
		{&now.MaxInFlight, &o.MaxInFlight, &full.MaxInFlight}, {&now.MaxPrompt, &o.MaxPrompt, &full.MaxPrompt},
		{&now.Turns, &o.Turns, &full.Turns}, {&now.Burst, &o.Burst, &full.Burst},
	} {
		if *f.now == *f.full {
			*f.now = *f.given
		}
	}
	return now
}

// Counts are the requests of a load so far.
type Counts struct {
	Submitted int // handed to a worker
	Finished  int // all tokens came
	Rejected  int // refused by an engine for their size
	Cancelled int
	Failed    int // the worker was closed or failed
	Dropped   int // not submitted: too many in flight
	InFlight  int
	FollowUps int // of the submitted, turns after the first

	Mirrored   int // copies that reached the mirror
	Unmirrored int // copies that no worker of the mirror took, or that were too many
}

// Ended returns the requests that need no more attention.
func (c Counts) Ended() int { return c.Finished + c.Rejected + c.Cancelled + c.Failed + c.Dropped }
