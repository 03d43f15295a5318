package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// OfflineText is what the summary of an offline run for people needs beside the figures.
type OfflineText struct {
	Unfinished  int  // requests that had not ended
	Interrupted bool // by a signal
	Notes       []string
}

// WriteText writes the figures for people, in lines of at most width cells (at least 80). Figures without samples are
// shown as missing, not as 0.
func (c *Offline) WriteText(w io.Writer, summary Fields, t OfflineText, width int) error {
	var b bytes.Buffer
	writeTotals(&b, c.totals(summary, t))
	writeLatencies(&b, c.Metrics(), width)
	if c.ended[Completed] < c.arrived {
		fmt.Fprintf(&b, "of %s of %s requests, those that completed\n", whole(c.ended[Completed]), whole(c.arrived))
	}
	if !c.o.Bounds.none() {
		c.writeGoodput(&b, summary)
	}
	for _, n := range t.Notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (c *Offline) totals(summary Fields, t OfflineText) (out totals) {
	line, figure := out.line, summary.float
	cut := ""
	if t.Interrupted {
		cut = ", INTERRUPTED"
	}
	line("duration", "%s s simulated, %s s wall clock%s", decimal(figure("duration_ms")/1000, 2), decimal(figure("wall_time_ms")/1000, 2), cut)
	line("requests", "%s arrived, %s completed, %s rejected, %s failed, %s unfinished", whole(c.arrived), whole(c.ended[Completed]),
		whole(c.ended[Rejected]), whole(c.ended[Failed]), whole(t.Unfinished))
	line("throughput", "%s requests/s, tokens/s: %s in, %s out", decimal(figure("request_throughput_rps"), 2),
		decimal(figure("input_throughput_tok_s"), 1), decimal(figure("output_throughput_tok_s"), 1))
	line("tokens", "%s in, %s out, %s prefill tokens computed", whole(c.input), whole(c.output), whole(c.committed))
	recomputed := ""
	if n := c.recomputed(); n > 0 {
		recomputed = fmt.Sprintf(", %s tokens recomputed", whole(n))
	}
	line("cache", "hit rate %s, reused incl. re-admission %s%s", portion(c.reused, c.input), portion(c.reusedMax, c.input), recomputed)
	line("workers", "%s worker seconds (prefill %s), %s GPU hours", decimal(figure("prefill_worker_seconds")+figure("decode_worker_seconds"), 1),
		decimal(figure("prefill_worker_seconds"), 1), decimal(figure("gpu_hours"), 4))
	return out
}

// recomputed returns how many tokens were computed again after preemptions: what was computed beyond what the prompts did
// not find in the cache. It is known if an aggregated fleet completed all requests, else 0.
func (c *Offline) recomputed() uint64 {
	if needed := c.input - c.reused; !c.split && c.ended[Completed] == c.arrived && c.committed > needed {
		return c.committed - needed
	}
	return 0
}

func portion(part, whole uint64) string {
	if whole == 0 {
		return none
	}
	p := float64(part) / float64(whole)
	return percent(&p)
}

func (c *Offline) writeGoodput(b *bytes.Buffer, summary Fields) {
	var bounds []string
	for _, x := range []struct {
		name  string
		value float64
	}{{"TTFT", c.o.Bounds.TTFT}, {"ITL", c.o.Bounds.ITL}, {"E2E", c.o.Bounds.E2E}} {
		if x.value > 0 {
			bounds = append(bounds, fmt.Sprintf("%s <= %s ms", x.name, decimal(x.value, 1)))
		}
	}
	fmt.Fprintf(b, "\n%-12s%s: %s of %s requests, %s/s, %s tokens/s\n", "goodput", strings.Join(bounds, ", "), whole(c.good), whole(c.ended[Completed]),
		decimal(summary.float("goodput_request_throughput_rps"), 2), decimal(summary.float("goodput_output_throughput_tok_s"), 1))
}
