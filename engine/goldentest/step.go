package goldentest

import (
	"errors"
	"fmt"

	"mockbench/engine"
	"mockbench/kv"
)

// Flag is a truth value as recordings write it.
func Flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Met is the load of a rank as recordings write it.
func Met(l engine.Load) []any {
	return []any{l.ActiveBlocks, l.InactiveBlocks, l.TotalBlocks - l.ActiveBlocks - l.InactiveBlocks, l.Running, l.Waiting,
		l.Preemptions}
}

func put(f map[string]any, name string, list []any) {
	if len(list) > 0 {
		f[name] = list
	}
}

// plan writes down what is decided at the start of a pass.
func (r *run) plan(rank int, p *engine.Pass) map[string]any {
	f := map[string]any{}
	var sched, commit, admit, preempt []any
	batch := [3]int{}
	for _, w := range p.Work {
		from := "r"
		if w.Waited {
			from = "w"
		}
		sched = append(sched, []any{w.Request.Label, w.Tokens, w.Prompt, w.Prefix, w.Length, from})
		if w.Prompt > 0 && r.cfg.Role != engine.DecodeRole {
			batch[0]++
			batch[1] += w.Prefix + w.Prompt
			batch[2] += w.Prefix
		}
		commit = append(commit, w.Request.Label)
	}
	for _, a := range p.Admissions {
		row := []any{a.Request.Label, a.Reused}
		if r.cfg.HostOffload != nil && a.First {
			row = append(row, a.Reused-a.HostReused, a.HostReused)
		}
		admit = append(admit, row)
	}
	for _, x := range p.Preemptions {
		preempt = append(preempt, []any{x.Request.Label, x.Blocks, pressure(x.Before), pressure(x.After)})
	}
	put(f, "admit", admit)
	put(f, "preempt", preempt)
	s := &r.shadows[rank]
	s.schedule(p)
	deferred := r.deferred(rank)
	if len(r.c.Input.Commands) > 0 {
		put(f, "commit", commit)
	} else {
		put(f, "sched", sched)
		f["q"] = map[string]any{"w": words(s.waiting), "r": words(s.running), "left": p.BudgetLeft, "batch": batch, "l": words(deferred)}
		var perf []any
		if c := p.Prefill; c.Requests > 0 {
			perf = append(perf, []any{"prefill", c.Requests, c.MeanISL, c.MeanPrefix, c.Milliseconds})
		}
		if c := p.Decode; c.Requests > 0 {
			perf = append(perf, []any{"decode", c.Requests, c.ActiveTokens, c.MeanISL, c.CapacityTokens, c.Milliseconds})
		}
		put(f, "perf", perf)
	}
	s.settle(p)
	return f
}

func words(list []string) []any {
	out := []any{}
	for _, s := range list {
		out = append(out, s)
	}
	return out
}

func pressure(p engine.Pressure) []any { return []any{p.Running, p.Waiting, p.ActiveBlocks} }

// result writes down what a pass shows at its end.
func (r *run) result(f map[string]any, rank int, p *engine.Pass) {
	var out []any
	for _, o := range p.Outputs {
		var token, cached any
		if o.HasToken {
			token = o.Token
		}
		if o.Cached >= 0 {
			cached = o.Cached
		}
		out = append(out, []any{o.Request.Label, token, Flag(o.Completed), Flag(o.Rejected), cached})
	}
	put(f, "out", out)
	put(f, "kv", r.events(rank, &p.Events))
	put(f, "life", Life(p.Handoffs))
	put(f, "g2", r.transfers(p.Transfers))
	r.shadows[rank].reserve(p.Handoffs)
	f["met"] = Met(p.Load)
	m := p.FPM
	f["fpm"] = []any{m.PrefillRequests, m.PrefillTokens, m.PrefillLengthVar, m.PrefillKVTokens, m.DecodeRequests,
		m.DecodeKVTokens, m.DecodeKVVar, m.QueuedPrefills, m.QueuedPrefillTokens, m.QueuedPrefillVar, m.QueuedDecodes,
		m.QueuedDecodeKVTokens, m.QueuedDecodeKVVar, m.Milliseconds}
	if p.Drafts.Forwards > 0 {
		f["da"] = []any{p.Drafts.Accepted, p.Drafts.Forwards}
	}
	if p.ComputeStart > p.Start {
		f["compute_start"] = float64(p.ComputeStart)
	}
	r.inspect(f, rank, p)
}

// inspect compares the snapshot of a rank with the records.
func (r *run) inspect(f map[string]any, rank int, p *engine.Pass) {
	var snapshot engine.Snapshot
	r.group.Rank(rank).Inspect(&snapshot)
	if err := r.shadows[rank].matches(&snapshot); err != nil {
		r.t.Fatalf("pass at %v: %v", p.Start, err)
	}
	c, l := snapshot.Counts, p.Load
	active, inactive := c[engine.BlockActive]+c[engine.BlockShared], c[engine.BlockCached]+c[engine.BlockHost]
	if active != l.ActiveBlocks || inactive != l.InactiveBlocks || active+inactive+c[engine.BlockFree] != l.TotalBlocks {
		r.t.Fatalf("pass at %v: blocks %v do not add up to the load %+v", p.Start, c, l)
	}
	if len(r.c.Input.Commands) == 0 {
		return
	}
	owners := []any{}
	for _, q := range append(snapshot.Waiting, snapshot.Running...) {
		output := q.Request.OutputLimit()
		if n := r.cfg.MaxModelLen; n > 0 {
			output = min(output, n-len(q.Request.Prompt))
		}
		output = min(output, r.cfg.NumGPUBlocks*r.cfg.BlockSize-len(q.Request.Prompt))
		owners = append(owners, []any{q.Request.Label, q.Generated, q.Computed, q.Computed,
			(len(q.Request.Prompt) + output + r.cfg.BlockSize - 1) / r.cfg.BlockSize})
		if q.Blocks != (q.Computed+r.cfg.BlockSize-1)/r.cfg.BlockSize {
			r.t.Errorf("pass at %v: %s owns %d blocks for %d tokens", p.Start, q.Request.Label, q.Blocks, q.Computed)
		}
	}
	f["req"] = owners
	s := &r.shadows[rank]
	f["q"] = map[string]any{"w": words(s.queue()), "r": words(s.running)}
}

// events names blocks by the labels of the recording, and follows what they say of the pool.
func (r *run) events(rank int, e *kv.Events) (out []any) {
	for _, ev := range e.List {
		sequence, local := e.Blocks(ev)
		var blocks []any
		for i, h := range sequence {
			label := r.label(h)
			blocks = append(blocks, label)
			if ev.Kind == kv.Stored {
				if want := r.c.Expect.Hashes[label][1]; want == nil || fmt.Sprintf("%016x", local[i]) != *want {
					r.t.Errorf("block %s has the local hash %016x", label, local[i])
				}
			}
			if ev.Tier == kv.Device {
				if r.indexes[rank][h] == (ev.Kind == kv.Stored) {
					r.t.Errorf("event %d: block %s is stored or removed twice", ev.ID, label)
				}
				r.indexes[rank][h] = ev.Kind == kv.Stored
			}
		}
		step := map[string]any{"n": ev.ID}
		if ev.Kind == kv.Removed {
			step["removed"] = blocks
		} else {
			step["stored"], step["parent"] = blocks, nil
			if ev.HasParent {
				step["parent"] = r.label(ev.Parent)
			}
			if ev.Position >= 0 {
				step["pos"] = ev.Position
			}
		}
		if ev.Tier == kv.HostPinned {
			step["tier"] = "host_pinned"
		}
		out = append(out, step)
	}
	return out
}

func (r *run) label(hash uint64) string {
	if l, ok := r.labels[hash]; ok {
		return l
	}
	return fmt.Sprintf("%016x", hash)
}

// internal writes down internal work between passes.
func (r *run) internal(records []*engine.Pass) {
	var ranks []any
	for i, p := range records {
		if p == nil {
			continue
		}
		f := map[string]any{"rank": i}
		put(f, "kv", r.events(i, &p.Events))
		put(f, "g2", r.transfers(p.Transfers))
		ranks = append(ranks, f)
	}
	if ranks == nil {
		r.t.Fatalf("a deadline at %v without work", r.now)
	}
	r.steps = append(r.steps, map[string]any{"internal": r.now, "ranks": ranks})
}

// command applies one command and returns its record.
func (r *run) command(c Command, now float64, mid bool) map[string]any {
	at := engine.Time(now)
	q := r.requests[c.ID]
	rank := r.rankOf[c.ID]
	var result engine.CommandResult
	word := ""
	var err error
	if c.Cmd == "cancel" {
		result.CancelResult = r.group.Cancel(rank, q.ID, at, c.Discard)
		result.Request = q
	} else {
		result, word, err = r.handoff(c, rank, at)
	}
	if err != nil {
		f := r.failure(c, now, err)
		f["mid_pass"] = mid
		return f
	}
	if word == "" {
		word = "noop"
		if result.Applied {
			word = "applied"
		}
	}
	step := map[string]any{"cmd": c.Cmd, "at": now, "id": c.ID, "mid_pass": mid, "result": word,
		"suppressed": result.Suppressed, "retired": []any{}, "met": Met(r.group.Rank(rank).Load())}
	if result.Retired {
		step["retired"] = []any{result.Request.Label}
		r.shadows[rank].drop(result.Request.Label)
	}
	if c.Handoff != 0 {
		step["handoff"] = c.Handoff
	}
	if result.Events != nil {
		step["kv"] = r.events(rank, result.Events)
	}
	put(step, "life", Life(result.Steps))
	put(step, "g2", r.transfers(result.Transfers))
	r.shadows[rank].reserve(result.Steps)
	return step
}

func (r *run) handoff(c Command, rank int, at engine.Time) (result engine.CommandResult, word string, err error) {
	d, ok := r.group.Rank(rank).(engine.Disaggregated)
	if !ok {
		r.t.Fatalf("%T has no handoff commands", r.group.Rank(rank))
	}
	q, handoff := r.requests[c.ID], Number(c.Handoff)
	switch c.Cmd {
	case "submit":
		word, err = "submitted", r.group.Submit(rank, q, at)
	case "submit_prefill":
		word, err = "submitted", d.SubmitSource(q, handoff, at)
	case "reserve":
		word = "accepted"
		r.receivers[c.Handoff] = c.ID
		result, err = d.Reserve(q, handoff, at)
	case "activate":
		if result = d.Activate(handoff, at); result.Applied {
			r.shadows[rank].arrived = append(r.shadows[rank].arrived, r.receivers[c.Handoff])
		}
	case "release_source":
		result = d.ReleaseSource(handoff, at)
	case "cancel_source":
		result = d.CancelSource(handoff, at)
	case "cancel_destination":
		result = d.CancelDestination(handoff, at)
	default:
		r.t.Fatalf("unknown command %q", c.Cmd)
	}
	if err == nil && word == "submitted" {
		r.shadows[rank].submit(c.ID)
	}
	return result, word, err
}

// failure records a refused command by the kind of its error.
func (r *run) failure(c Command, now float64, err error) map[string]any {
	return map[string]any{"cmd": c.Cmd, "at": now, "id": c.ID, "error": ErrorWord(err)}
}

// ErrorWord returns the word by which Difference compares the error of a command with a recorded message.
func ErrorWord(err error) string {
	var setting *engine.SettingError
	switch {
	case errors.Is(err, engine.ErrActive):
		return "active"
	case errors.As(err, &setting):
		return setting.Setting
	}
	return "other: " + err.Error()
}

// Life is a list of handoff steps as recordings write it.
func Life(list []engine.Handoff) (out []any) {
	for _, h := range list {
		step := map[string]any{"handoff": uuid(h.ID)}
		if h.Kind == engine.SourceHeld {
			step["source_held"], step["full_prompt_tokens"] = h.Request.Label, h.Tokens
		} else {
			step["destination_reserved"], step["transferable_prompt_tokens"] = h.Request.Label, h.Tokens
		}
		out = append(out, step)
	}
	return out
}
