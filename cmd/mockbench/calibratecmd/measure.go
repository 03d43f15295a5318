package calibratecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"mockbench/engine/spawn"
	"mockbench/profiles/calibration"
)

// words make prompts; most are one token of common vocabularies.
var words = strings.Fields(`time year people way day man thing woman life child world school state family student group
	country problem hand part place case week company system program question work government number night point home
	water room mother area money story fact month lot right study book eye job word business issue side kind head house`)

// prompt returns random words, different from the first one on, so that no cache helps.
func prompt(count int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%x", rand.Uint64())
	for range max(0, count-8) { // the number is about eight tokens
		b.WriteByte(' ')
		b.WriteString(words[rand.IntN(len(words))])
	}
	return b.String()
}

// measurement measures at an endpoint.
type measurement struct {
	*endpoint
	osl, repeats  int
	timeout       time.Duration
	tokensPerWord float64
	progress      io.Writer
}

// run measures every prompt length with every number of requests at a time. The first request also lets the server warm
// up, and tells how many tokens a word is.
func (m *measurement) run(ctx context.Context, lengths, batches []int) (samples []calibration.Sample, err error) {
	const probe = 500
	m.tokensPerWord = 1
	first, err := m.together(ctx, 1, probe)
	if err != nil {
		return nil, err
	}
	m.tokensPerWord = float64(first[0].prompt) / probe
	for _, isl := range lengths {
		for _, batch := range batches {
			s, err := m.measure(ctx, batch, isl)
			if err != nil {
				return nil, fmt.Errorf("%d requests of %d tokens: %w", batch, isl, err)
			}
			samples = append(samples, s)
			fmt.Fprintf(m.progress, "%5d x %6.0f tokens  TTFT %s  ITL %s\n",
				batch, s.ISL, milliseconds(s.TTFTMS), milliseconds(s.ITLMS))
		}
	}
	return samples, nil
}

func milliseconds(ms float64) string {
	if ms == 0 {
		return "    not measured"
	}
	return fmt.Sprintf("%10.3f ms   ", ms)
}

// measure returns the medians of some repetitions.
func (m *measurement) measure(ctx context.Context, batch, isl int) (calibration.Sample, error) {
	s := calibration.Sample{Batch: batch}
	var first, gaps, prompts, contexts []float64
	for range m.repeats {
		answers, err := m.together(ctx, batch, int(float64(isl)/m.tokensPerWord))
		if err != nil {
			return s, err
		}
		for _, a := range answers {
			prompts = append(prompts, float64(a.prompt))
		}
		if batch == 1 {
			first = append(first, answers[0].chunks[0].Seconds()*1000)
		}
		if step, context, ok := steadyStep(answers); ok {
			gaps, contexts = append(gaps, step), append(contexts, context)
		}
	}
	s.ISL, s.TTFTMS, s.ITLMS, s.Context = median(prompts), median(first), median(gaps), median(contexts)
	return s, nil
}

// together sends some requests at the same time and returns their answers.
func (m *measurement) together(ctx context.Context, batch, words int) ([]*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, m.timeout)
	defer cancel()
	type outcome struct {
		*answer
		err error
	}
	outcomes := make(chan outcome, batch)
	for range batch {
		text := prompt(words)
		spawn.Go("calibration request", func() {
			a, err := m.ask(ctx, text, m.osl)
			outcomes <- outcome{a, err}
		})
	}
	var answers []*answer
	var failure error
	for range batch {
		o := <-outcomes
		if o.err != nil && failure == nil {
			failure = o.err
			cancel()
		}
		answers = append(answers, o.answer)
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, fmt.Errorf("--timeout: got %s, an answer was not complete by then", m.timeout)
	}
	return answers, failure
}

// steadyStep returns the time of a decode step in milliseconds while all requests decode: after the last one got its
// first token and before the first one got its last. context is the tokens of a request in the middle of that.
func steadyStep(answers []*answer) (ms, context float64, ok bool) {
	var start, end time.Time
	for _, a := range answers {
		if t := a.sent.Add(a.chunks[0]); t.After(start) {
			start = t
		}
		if t := a.sent.Add(a.chunks[len(a.chunks)-1]); end.IsZero() || t.Before(end) {
			end = t
		}
	}
	const fewest = 8 // chunks, below which one late one would count too much
	var steps, contexts []float64
	for _, a := range answers {
		low, high := 0, len(a.chunks)-1
		for low < high && a.sent.Add(a.chunks[low]).Before(start) {
			low++
		}
		for high > low && a.sent.Add(a.chunks[high]).After(end) {
			high--
		}
		if high-low < fewest {
			continue
		}
		steps = append(steps, slope(a.chunks[low:high+1])*1000/a.perChunk())
		contexts = append(contexts, float64(a.prompt)+a.perChunk()*float64(low+high+1)/2)
	}
	return median(steps), median(contexts), len(steps) > 0
}

// slope returns the seconds from one arrival to the next, by least squares: a late one in the middle counts little.
func slope(arrivals []time.Duration) float64 {
	centre, products, squares := float64(len(arrivals)-1)/2, 0.0, 0.0
	for i, t := range arrivals {
		x := float64(i) - centre
		products += x * t.Seconds()
		squares += x * x
	}
	return products / squares
}

// median returns 0 for nothing.
func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	slices.Sort(v)
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}
