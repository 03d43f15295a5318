package viewcmd

import (
	"fmt"
	"io"
	"strings"
	"time"

	"mockbench/engine"
	"mockbench/ui"
	"mockbench/ui/feed"
	"mockbench/ui/recording"
)

// summary prints what a recording holds: what was run, how long, what its workers did, and the summary of the run if it
// came to its end.
func summary(r *recording.Recording, w io.Writer) error {
	h := &r.Header
	first, last := r.Span()
	totals := make([]feed.Totals, len(h.Workers))
	var dropped uint64
	var window *ui.Window
	lost := make([]uint64, len(h.Workers))
	err := r.Each(func(m *ui.Moment) error {
		for i := range m.Parts {
			p := &m.Parts[i]
			totals[p.Worker], lost[p.Worker] = p.Batch.Totals, p.Batch.Dropped
		}
		if m.Window != nil {
			window = m.Window
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, n := range lost {
		dropped += n
	}
	fmt.Fprintf(w, "recording  %s of a %s run, begun %s\n", h.Program, h.Mode, h.Started.Format(time.RFC3339))
	fmt.Fprintf(w, "model      %s, %s, %d workers\n", h.Model, h.Backend, len(h.Workers))
	if len(h.Settings) > 0 {
		fmt.Fprintf(w, "settings   %s\n", strings.Join(h.Settings, " "))
	}
	fmt.Fprintf(w, "time       %s to %s\n", clock(first), clock(last))
	if dropped > 0 {
		fmt.Fprintf(w, "missed     %d passes, KV events and moments of requests\n", dropped)
	}
	fmt.Fprintf(w, "\n%-12s%10s%10s%12s%12s%9s\n", "worker", "passes", "done", "prompt tok", "output tok", "preempt")
	for i, name := range h.Workers {
		t := &totals[i]
		fmt.Fprintf(w, "%-12s%10d%10d%12d%12d%9d\n", name, t.Passes, t.Finished, t.PromptTokens, t.OutputTokens, t.Preemptions)
	}
	if r.End != nil && r.End.Summary != "" {
		fmt.Fprintf(w, "\n%s", r.End.Summary)
		return nil
	}
	if window != nil {
		fmt.Fprintf(w, "\nthe last %.0f s%9s%10s%10s%10s\n", window.Seconds, "n", "p50 ms", "p90 ms", "p99 ms")
		for _, l := range []struct {
			name string
			f    *ui.Figures
		}{{"TTFT", &window.TTFT}, {"ITL", &window.ITL}, {"E2E", &window.E2E}, {"queue", &window.Queue}} {
			fmt.Fprintf(w, "%-12s%10d%10.1f%10.1f%10.1f\n", l.name, l.f.Count, l.f.P50, l.f.P90, l.f.P99)
		}
	}
	return nil
}

// clock returns a time as h:mm:ss.mmm.
func clock(t engine.Time) string {
	ms := int64(t)
	return fmt.Sprintf("%d:%02d:%02d.%03d", ms/3600e3, ms/60e3%60, ms/1e3%60, ms%1000)
}
