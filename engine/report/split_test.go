package report

import (
	"strings"
	"testing"

	"mockbench/engine"
)

// splitRun is a collector with one prefill and one decode worker, and the two halves of each request.
type splitRun struct {
	*Collector
	legs [2]*leg
	half [2]map[string]*engine.Request
}

func newSplitRun() *splitRun {
	c := NewCollector(Options{Workers: []string{"p0", "d0"}, Roles: []engine.Role{engine.PrefillRole, engine.DecodeRole}})
	r := &splitRun{Collector: c, half: [2]map[string]*engine.Request{{}, {}}}
	for i := range r.legs {
		r.legs[i] = c.Reader(i).(*leg)
	}
	return r
}

const prefill, decode = 0, 1

func (r *splitRun) submit(side int, label string, now engine.Time) {
	q := &engine.Request{Label: label, Prompt: make([]uint32, 64), MaxOutput: 5, Arrival: now}
	r.half[side][label] = q
	r.legs[side].Submitted(0, q, now)
}

// pass shows a pass that admits requests and gives a token to others; "!" after a label completes it, "-" rejects it.
func (r *splitRun) pass(side int, start, end engine.Time, admitted, outputs string) {
	p := &engine.Pass{Start: start, End: end, Load: engine.Load{TotalBlocks: 256}}
	for label := range strings.FieldsSeq(admitted) {
		p.Admissions = append(p.Admissions, engine.Admission{Request: r.half[side][label], First: true, Reused: 16})
	}
	for word := range strings.FieldsSeq(outputs) {
		label := strings.TrimRight(word, "!-")
		rejected := strings.HasSuffix(word, "-")
		p.Outputs = append(p.Outputs, engine.Output{Request: r.half[side][label], HasToken: !rejected, Rejected: rejected,
			Completed: rejected || side == prefill || strings.HasSuffix(word, "!")})
	}
	r.legs[side].Pass(p)
}

func (r *splitRun) decode(label string, from engine.Time) {
	r.pass(decode, from, from+2, label, label)
	for i := range 4 {
		word := label
		if i == 3 {
			word += "!"
		}
		at := from + 2 + 2*engine.Time(i)
		r.pass(decode, at, at+2, "", word)
	}
}

// A prefill pass of 10 ms, a transfer of 4 ms and decode passes of 2 ms: the parts of TTFT are each there once. The
// second request waits for the only slot of the decode worker.
func TestPartsOfSplitTTFT(t *testing.T) {
	r := newSplitRun()
	for _, label := range []string{"a", "b"} {
		r.submit(prefill, label, 0)
	}
	r.pass(prefill, 0, 10, "a b", "a b")
	for _, label := range []string{"a", "b"} {
		r.submit(decode, label, 10)
		r.legs[decode].Activated(0, r.half[decode][label], 14)
	}
	r.decode("a", 14)
	r.decode("b", 24)
	report := r.Report(Final{Now: 34, Mode: "live"})
	for _, v := range violations(t, report) {
		t.Error(v)
	}
	s := report.Summary
	if s.Requests != 2 || s.Completed != 2 || s.Unfinished != 0 || s.OutputTokens != 10 || s.InputTokens != 128 || s.Passes != 11 {
		t.Errorf("got %+v", s)
	}
	if *s.HitRate != 0.25 || *report.Workers[decode].HitRate != 0.25 {
		t.Errorf("hit rates %v, %v", *s.HitRate, *report.Workers[decode].HitRate)
	}
	want := map[string][2]float64{"ttft_ms": {16, 26}, "e2e_latency_ms": {24, 34}, "itl_ms": {2, 2}, "queue_time_ms": {0, 0},
		"prefill_time_ms": {10, 10}, "transfer_time_ms": {4, 4}, "decode_queue_time_ms": {0, 10}, "first_decode_time_ms": {2, 2},
		"tpot_ms": {2, 2}}
	sum := 0.0
	for _, m := range s.Metrics() {
		if got := [2]float64{m.Min, m.Max}; got != want[m.Name] {
			t.Errorf("%s: got %v, want %v", m.Name, got, want[m.Name])
		}
		if strings.HasSuffix(m.Name, "time_ms") {
			sum += m.Mean
		}
		delete(want, m.Name)
	}
	if len(want) > 0 || sum != s.TTFT.Mean {
		t.Errorf("missing %v; the parts add up to %v, TTFT is %v", want, sum, s.TTFT.Mean)
	}
	var w Window
	r.Window(&w, All, 34, 1)
	if c := w.Columns[0]; w.TTFT.N != 2 || c.Output != 10 || c.Finished != 2 || c.Prompt != 128 {
		t.Errorf("window: TTFT %v, %+v", w.TTFT.N, c)
	}
	if text := text(t, report, 100); !strings.Contains(text, "decode queue ms") {
		t.Errorf("summary:\n%s", text)
	}
}

// Whatever ends a request, it counts once; on its way it is unfinished.
func TestSplitRequestsCountOnce(t *testing.T) {
	r := newSplitRun()
	counts := func() [5]int {
		c := r.Counts(All)
		return [5]int{c.Submitted, c.Completed, c.Rejected, c.Cancelled, c.Unfinished}
	}
	check := func(what string, want [5]int) {
		t.Helper()
		if got := counts(); got != want {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
	}
	r.submit(decode, "both", 1)
	r.submit(prefill, "both", 2)
	check("both halves", [5]int{1, 0, 0, 0, 1})
	r.legs[prefill].Cancelled(0, r.half[prefill]["both"], 3)
	r.legs[decode].Cancelled(0, r.half[decode]["both"], 3)
	check("both cancelled", [5]int{1, 0, 0, 1, 0})
	r.submit(prefill, "long", 4)
	check("submitted", [5]int{2, 0, 0, 1, 1})
	r.pass(prefill, 5, 6, "", "long-")
	check("rejected", [5]int{2, 0, 1, 1, 0})
	r.submit(prefill, "leaves", 7)
	r.pass(prefill, 7, 10, "leaves", "leaves")
	r.submit(prefill, "stays", lost)
	r.pass(prefill, lost, lost+9, "stays", "stays")
	check("in between", [5]int{4, 0, 1, 1, 2})
	r.submit(decode, "stays", lost+10)
	r.decode("stays", lost+10)
	check("lost and answered", [5]int{4, 1, 1, 2, 0})
	r.submit(decode, "alone", lost+30) // a frontend without prefill workers
	r.decode("alone", lost+30)
	check("decode worker alone", [5]int{5, 2, 1, 2, 0})
	if n := r.Report(Final{}).Summary.Parts[partPrefill].Samples; n != 1 {
		t.Errorf("%d requests had a prefill worker, want 1", n)
	}
}
