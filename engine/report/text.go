package report

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"

	"mockbench/engine"
)

// none stands for a figure that does not exist.
const none = "--"

// WriteText writes the summary of a report for people, in lines of at most width cells (at least 80).
func WriteText(w io.Writer, r Report, width int) error {
	var b bytes.Buffer
	writeTotals(&b, r.Summary.totals())
	writeLatencies(&b, r.Summary.Metrics(), width)
	if f := &r.Summary; f.Completed < f.Requests {
		fmt.Fprintf(&b, "of %s of %s requests, those that completed; gaps of all\n", whole(f.Completed), whole(f.Requests))
	}
	writeGoodput(&b, r.Summary)
	if len(r.Workers) > 1 {
		writeWorkers(&b, r.Workers)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// totals are single figures for people, by what they are about.
type totals [][2]string

func (t *totals) line(name, format string, args ...any) {
	*t = append(*t, [2]string{name, fmt.Sprintf(format, args...)})
}

func writeTotals(b *bytes.Buffer, t totals) {
	for _, x := range t {
		fmt.Fprintf(b, "%-12s%s\n", x[0], x[1])
	}
}

func (f *Figures) totals() (t totals) {
	line := t.line
	line("duration", "%s s simulated, %s s wall clock", decimal(f.DurationMS/1000, 2), decimal(f.WallMS/1000, 2))
	line("requests", "%s submitted, %s completed, %s rejected, %s cancelled, %s unfinished", whole(f.Requests),
		whole(f.Completed), whole(f.Rejected), whole(f.Cancelled), whole(f.Unfinished))
	line("throughput", "%s requests/s, tokens/s: %s in, %s out", decimal(f.RequestsPerSecond, 2), decimal(f.InputPerSecond, 1),
		decimal(f.OutputPerSecond, 1))
	line("tokens", "%s in, %s out, %s emitted", whole(f.InputTokens), whole(f.OutputTokens), whole(f.Emitted))
	line("cache", "hit rate %s, reused incl. re-admission %s", percent(f.HitRate), percent(f.ReusedRatio))
	line("preemptions", "%s, %s tokens recomputed", whole(f.Preemptions), whole(f.Recomputed))
	line("KV blocks", "%s, in use: mean %s, peak %s", whole(f.Blocks), percent(f.MeanOccupancy), percent(f.PeakOccupancy))
	if f.HostStored+f.HostLoaded > 0 {
		line("host tier", "%s blocks stored, %s loaded", whole(f.HostStored), whole(f.HostLoaded))
	}
	if a := f.AcceptanceLength; a != nil && *a != 1 {
		line("drafts", "%s tokens a decode forward", decimal(*a, 2))
	}
	line("passes", "%s, %s stalls, clock slip %s ms", whole(f.Passes), whole(f.Stalls), decimal(f.ClockSlipMS, 1))
	return t
}

func writeGoodput(b *bytes.Buffer, f Figures) {
	g := f.Goodput
	if g == nil {
		return
	}
	var kept []string
	if g.LimitTTFT > 0 {
		kept = append(kept, fmt.Sprintf("TTFT <= %s ms: %s", decimal(g.LimitTTFT, 1), percent(g.AttainmentTTFT)))
	}
	if g.LimitITL > 0 {
		kept = append(kept, fmt.Sprintf("ITL <= %s ms: %s", decimal(g.LimitITL, 1), percent(g.AttainmentITL)))
	}
	if g.LimitE2E > 0 {
		kept = append(kept, fmt.Sprintf("E2E <= %s ms", decimal(g.LimitE2E, 1)))
	}
	fmt.Fprintf(b, "\n%-12s%s\n%-12s%s of %s requests (%s), %s/s, %s tokens/s\n", "goodput", strings.Join(kept, ", "), "", whole(g.Completed), whole(f.Completed),
		percent(g.Attainment), decimal(g.RequestsPerSecond, 2), decimal(g.OutputPerSecond, 1))
}

func writeWorkers(b *bytes.Buffer, workers []Worker) {
	fmt.Fprintf(b, "\n%-8s%9s%11s%8s%8s%8s%9s%9s\n", "worker", "done", "out tok/s", "hit", "KV mean", "peak", "preempt", "p99 TTFT")
	for _, w := range workers {
		p99 := none
		if w.TTFT.Samples > 0 {
			p99 = decimal(w.TTFT.P99, 0)
		}
		fmt.Fprintf(b, "%-8.8s%9s%11s%8s%8s%8s%9s%9s\n", w.Name, whole(w.Completed), decimal(w.OutputPerSecond, 1), percent(w.HitRate),
			percent(w.MeanOccupancy), percent(w.PeakOccupancy), whole(w.Preemptions), p99)
	}
}

// Line returns one line on the run at a moment, for progress where there is no screen. total is the number of requests
// to come in all, 0 if there is no end. w is scratch.
func (c *Collector) Line(w *Window, now engine.Time, total int) string {
	n := c.Counts(All)
	c.Window(w, All, now, 26) // 5 complete seconds
	rates := w.Rates(5)
	of := n.Submitted
	if total > 0 {
		of = total
	}
	used := none
	if n.Blocks > 0 {
		used = fmt.Sprintf("%.0f%%", 100*float64(n.Active)/float64(n.Blocks))
	}
	return fmt.Sprintf("%6.1fs  %d/%d requests  %.1f req/s  %.0f tok/s  TTFT p50 %s p99 %s ms  KV %s  %d preemptions",
		float64(now-c.o.Start)/1000, n.Completed, of, rates.Requests, rates.Output, recentPercentile(&w.TTFT, 50),
		recentPercentile(&w.TTFT, 99), used, n.Preemptions)
}

func recentPercentile(h *Histogram, p float64) string {
	x, ok := h.Percentile(p)
	if !ok {
		return none
	}
	return decimal(x, 0)
}

// milliseconds returns a latency that leaves a gap in a column of numberWidth up to 99 days.
func milliseconds(x float64) string {
	if x >= 1e6 {
		return decimal(x, 0)
	}
	return decimal(x, 2)
}

// percent returns a share in percent, always with one decimal.
func percent(share *float64) string {
	if share == nil {
		return none
	}
	return decimal(*share*100, 1) + "%"
}

// decimal returns x with thousands separators, or none if it is no number.
func decimal(x float64, digits int) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return none
	}
	text := fmt.Sprintf("%.*f", digits, x)
	integer, fraction, point := strings.Cut(text, ".")
	if point {
		fraction = "." + fraction
	}
	return group(integer) + fraction
}

// Decimal returns a figure for people: whole numbers as they are, others with enough digits, thousands separated.
func Decimal(x float64) string {
	switch a := math.Abs(x); {
	case x == math.Trunc(x) && a < 1e15:
		return decimal(x, 0)
	case a < 1:
		return decimal(x, 4)
	}
	return decimal(x, 2)
}

func whole[T int | uint64](n T) string { return group(fmt.Sprint(n)) }

// group puts a comma before every third digit from the right.
func group(digits string) string {
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}
