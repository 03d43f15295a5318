package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"mockbench/engine"
)

// Records returns the records of the requests that ended, sorted as in the reference's report. They exist only if they
// were asked for.
func (c *Offline) Records() []Fields {
	sorted := slices.Clone(c.records)
	slices.SortStableFunc(sorted, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.RequestID, b.RequestID), cmp.Compare(a.Arrival, b.Arrival), cmp.Compare(a.Number, b.Number))
	})
	out := make([]Fields, len(sorted))
	for i := range sorted {
		out[i] = sorted[i].fields(c.o.Host)
	}
	return out
}

// WriteRecords writes the records as JSON, one a line.
func (c *Offline) WriteRecords(w io.Writer) error {
	for _, f := range c.Records() {
		line, err := json.Marshal(f)
		if err != nil {
			return err
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return nil
}

// when is a time, or null if it did not come.
func when(t engine.Time) any {
	if t < 0 {
		return nil
	}
	return float64(t)
}

func rank(n int32) any {
	if n < 0 {
		return nil
	}
	return n
}

// only returns a value if a condition holds, else null.
func only[T any](holds bool, v func() T) any {
	if !holds {
		return nil
	}
	return v()
}

// fields returns the record of a request.
func (e *Entry) fields(host bool) Fields {
	var f Fields
	split := e.Workers[Prefill] >= 0 || e.SourceHeld >= 0 || e.DestinationReserved >= 0 || e.admissions[Prefill] > 0 || e.Workers[Decode] >= 0
	if e.RequestID != "" {
		f.add("request_id", e.RequestID)
		f.add("play_id", e.Play)
	}
	f.add("session_id", only(e.InSession, func() string { return e.Session }))
	f.add("turn_index", only(e.InSession && e.RequestID == "", func() int { return e.Turn }))
	f.add("uuid", e.uuid())
	f.add("arrival_time_ms", float64(e.Arrival))
	f.add("dispatched_at_ms", when(e.Dispatched))
	first := e.firstStage()
	f.add("first_admit_ms", when(e.admitted[first]))
	f.add("terminal_time_ms", when(e.ended))
	f.add("first_token_ms", when(e.first))
	f.add("last_token_ms", when(e.latest))
	f.add("ttft_ms", only(e.tokens > 0, e.ttft))
	f.add("ttst_ms", only(e.tokens > 1, func() float64 { return float64(e.second - e.first) }))
	f.add("e2e_latency_ms", only(e.tokens > 0, e.latency))
	f.add("itl_ms", only(e.tokens > 1, e.tpot))
	f.add("input_length", e.Input)
	f.add("requested_output_length", e.Requested)
	f.add("output_length", e.tokens)
	f.add("reused_input_tokens", max(e.maxReused[Aggregated], e.maxReused[Prefill]))
	if host {
		f.add("first_admission_g1_reused_input_tokens", e.firstReused[first]-e.firstHost)
		f.add("first_admission_host_reused_input_tokens", e.firstHost)
	}
	answering := e.Workers[Aggregated]
	if split {
		answering = e.Workers[Decode]
	}
	f.add("prefill_worker_idx", rank(e.Workers[Prefill]))
	f.add("decode_worker_idx", rank(answering))
	f.add("prefill_admit_ms", when(e.admitted[Prefill]))
	f.add("source_held_ms", when(e.SourceHeld))
	f.add("destination_reserved_ms", when(e.DestinationReserved))
	f.add("destination_activated_ms", when(e.DestinationActivated))
	f.add("decode_admit_ms", when(e.admitted[Decode]))
	f.add("source_released_ms", when(e.SourceReleased))
	f.add("decode_reused_input_tokens", only(split && e.admissions[Decode] > 0, func() int32 { return e.maxReused[Decode] }))
	f.add("prefill_route_overlap_tokens", only(split && e.Workers[Prefill] >= 0, func() int32 { return e.Overlaps[Prefill] }))
	f.add("decode_route_overlap_tokens", only(split && e.Workers[Decode] >= 0, func() int32 { return e.Overlaps[Decode] }))
	f.add("routing_history", e.routing())
	f.add("admission_history", e.admissionHistory(host))
	count, again := e.counts()
	f.add("admission_count", count)
	f.add("readmission_count", again)
	f.add("pressure_record_ordinals", []int{})
	f.add("terminal_status", e.status.String())
	return f
}

// uuid is the request's number, from 1, as a UUID.
func (e *Entry) uuid() string { return fmt.Sprintf("00000000-0000-0000-0000-%012x", e.Number+1) }

func (e *Entry) routing() []Fields {
	out := []Fields{}
	for _, r := range e.Routes {
		var f Fields
		outcome, wait := "immediate", 0.0
		if r.Queued {
			outcome, wait = "queued", float64(r.Released-r.Entered)
		}
		f.add("pool", stageWords[r.Stage])
		f.add("outcome", outcome)
		f.add("queue_entered_at_ms", only(r.Queued, func() float64 { return float64(r.Entered) }))
		f.add("released_at_ms", only(r.Queued, func() float64 { return float64(r.Released) }))
		f.add("queue_wait_ms", wait)
		f.add("logical_worker_id", r.Worker)
		f.add("scheduler_id", r.Scheduler)
		f.add("dp_rank", r.Rank)
		f.add("reported_overlap_tokens", r.OverlapTokens)
		f.add("selected_overlap_blocks", only(r.Scored, func() int { return r.Overlap }))
		f.add("best_available_overlap_blocks", only(r.Scored, func() int { return r.Best }))
		f.add("overlap_regret_blocks", only(r.Scored, func() int { return r.Best - r.Overlap }))
		f.add("placement_replica_id", nil)
		out = append(out, f)
	}
	return out
}

func (e *Entry) admissionHistory(host bool) []Fields {
	out := []Fields{}
	var seen [3]int
	for i, a := range e.history {
		var f Fields
		f.add("admission_ordinal", i)
		f.add("pool_admission_ordinal", seen[a.stage])
		f.add("pool", stageWords[a.stage])
		f.add("at_ms", float64(a.at))
		f.add("reused_input_tokens", a.reused)
		if host {
			f.add("g1_reused_input_tokens", a.reused-a.host)
			f.add("host_reused_input_tokens", a.host)
		}
		f.add("is_readmission", seen[a.stage] > 0)
		seen[a.stage]++
		out = append(out, f)
	}
	return out
}

// counts returns the admissions, and those of them that were not the first of their stage.
func (e *Entry) counts() (all, again int32) {
	for _, n := range e.admissions {
		all += n
		again += max(0, n-1)
	}
	return all, again
}

// Kept returns the number of records.
func (c *Offline) Kept() int { return len(c.records) }
