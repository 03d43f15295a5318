package goldentest

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"testing"

	"mockbench/engine"
)

// Builder makes the ranks of a case, or says why its configuration is refused.
type Builder func(cfg engine.Config, c *Case) (*engine.Group, error)

// run drives one case with the recorded clock.
type run struct {
	t         *testing.T
	c         *Case
	cfg       engine.Config
	group     *engine.Group
	requests  map[string]*engine.Request
	rankOf    map[string]int
	receivers map[uint64]string // request of each handoff to a destination
	shadows   []shadow
	indexes   []map[uint64]bool // hashes that events say are in the device pool, by rank
	labels    map[uint64]string

	arrivals []Request
	commands []Command
	steps    []any
	idle     []any // effect-free passes in a row, in cases with commands
	now      float64
	passes   int
	stalled  bool
	limit    bool
}

// Run replays a case and compares it.
func Run(t *testing.T, c *Case, build Builder) {
	cfg, err := c.Config()
	var group *engine.Group
	if err == nil {
		group, err = build(cfg, c)
	}
	if c.Expect.ConfigError != "" {
		CheckRefusal(t, err, c.Expect.ConfigError)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	r := &run{t: t, c: c, cfg: cfg, group: group, requests: map[string]*engine.Request{}, rankOf: map[string]int{},
		receivers: map[uint64]string{},
		labels:    map[uint64]string{}, shadows: make([]shadow, c.Input.DPSize)}
	for range c.Input.DPSize {
		r.indexes = append(r.indexes, map[uint64]bool{})
	}
	for label, h := range c.Expect.Hashes {
		b, err := hex.DecodeString(*h[0])
		if err != nil {
			t.Fatal(err)
		}
		r.labels[binary.BigEndian.Uint64(b)] = label
	}
	for i := range c.Input.Requests {
		q := &c.Input.Requests[i]
		q.request = &engine.Request{ID: Number(q.N), Label: q.ID, Prompt: Prompt(q.Prompt), MaxOutput: q.MaxOutput, Output: q.OutputIDs}
		if r.requests[q.ID] == nil {
			r.requests[q.ID], r.rankOf[q.ID] = q.request, q.Rank
		}
	}
	r.prepare()
	r.drive()
	r.flush()
	r.compare()
}

// prepare sorts what arrives by time.
func (r *run) prepare() {
	in := &r.c.Input
	r.arrivals = slices.DeleteFunc(slices.Clone(in.Requests), func(q Request) bool { return q.ArrivalMS == nil })
	slices.SortStableFunc(r.arrivals, func(a, b Request) int { return cmp.Compare(*a.ArrivalMS, *b.ArrivalMS) })
	for _, x := range in.Cancels {
		x.Cmd = "cancel"
		r.commands = append(r.commands, x)
	}
	for _, x := range in.Commands {
		x.Discard = true
		r.commands = append(r.commands, x)
	}
	slices.SortStableFunc(r.commands, func(a, b Command) int { return cmp.Compare(a.AtMS, b.AtMS) })
}

// drive is the recorded clock.
func (r *run) drive() {
	still := 0 // passes without length and effect in a row
	for {
		r.boundary()
		if !r.group.Ready() {
			if !r.jump() {
				return
			}
			continue
		}
		if r.c.Input.MaxPasses > 0 && r.passes == r.c.Input.MaxPasses {
			r.stalled, r.limit = true, true
			return
		}
		if r.pass() {
			still = 0
			continue
		}
		if still++; still == 3 {
			still = 0
			if !r.jump() {
				r.stalled = true
				return
			}
		}
	}
}

// boundary does what is due between two passes.
func (r *run) boundary() {
	for {
		d, ok := r.group.Deadline()
		if !ok || float64(d) > r.now {
			break
		}
		r.internal(r.group.Advance(engine.Time(r.now)))
	}
	for len(r.commands) > 0 && r.commands[0].AtMS <= r.now {
		r.flush()
		r.steps = append(r.steps, r.command(r.commands[0], r.now, false))
		r.commands = r.commands[1:]
	}
	for len(r.arrivals) > 0 && *r.arrivals[0].ArrivalMS <= r.now {
		a := r.arrivals[0]
		r.arrivals = r.arrivals[1:]
		q := a.request
		q.Arrival = engine.Time(r.now)
		if err := r.group.Submit(a.Rank, q, engine.Time(r.now)); err != nil {
			r.flush()
			r.steps = append(r.steps, r.failure(Command{Cmd: "submit", ID: a.ID}, r.now, err))
			continue
		}
		r.shadows[a.Rank].submit(a.ID)
	}
}

// jump moves the clock to the next event, if there is one.
func (r *run) jump() bool {
	next, ok := 0.0, false
	consider := func(t float64) {
		if t > r.now && (!ok || t < next) {
			next, ok = t, true
		}
	}
	if len(r.commands) > 0 {
		consider(r.commands[0].AtMS)
	}
	if len(r.arrivals) > 0 {
		consider(*r.arrivals[0].ArrivalMS)
	}
	if d, has := r.group.Deadline(); has {
		consider(float64(d))
	}
	if ok {
		r.now = next
	}
	return ok
}

// pass runs one group pass, with the commands that come during it, and reports whether it had length or effect.
func (r *run) pass() bool {
	begun, end := r.group.Begin(engine.Time(r.now))
	plans := make([]map[string]any, len(begun))
	for i, p := range begun {
		if p != nil {
			plans[i] = r.plan(i, p)
		}
	}
	var mid []any
	for len(r.commands) > 0 && r.commands[0].AtMS < float64(end) {
		mid = append(mid, r.command(r.commands[0], r.commands[0].AtMS, true))
		r.commands = r.commands[1:]
	}
	start := r.now
	records := r.group.Complete()
	r.now = float64(end)
	r.passes++
	effect := r.group.End() > engine.Time(start) || len(mid) > 0
	step := map[string]any{"t": start, "end": float64(end)}
	var ranks []any
	for i, p := range records {
		effect = effect || p.Effect
		fields := step
		if len(records) > 1 {
			fields = map[string]any{"rank": i}
			if p.Idle {
				fields["idle"] = true
			} else if p.RankEnd < p.End {
				fields["rank_end"] = float64(p.RankEnd)
			}
			ranks = append(ranks, fields)
		}
		for k, v := range plans[i] {
			fields[k] = v
		}
		if p.Idle && len(r.c.Input.Commands) == 0 {
			fields["q"] = nil
		}
		r.result(fields, i, p)
	}
	if ranks != nil {
		step["ranks"] = ranks
	}
	if mid != nil {
		step["mid"] = mid
	}
	if len(r.c.Input.Commands) == 0 {
		r.steps = append(r.steps, step)
		return effect
	}
	step["retry"] = "n/a"
	if effect {
		r.flush()
		r.steps = append(r.steps, step)
	} else {
		step["idle_pass"] = true
		r.idle = append(r.idle, step)
	}
	return effect
}

// flush writes down a row of effect-free passes in the recorded short form.
func (r *run) flush() {
	if n := len(r.idle); n > 3 {
		r.idle = []any{r.idle[0], r.idle[1], map[string]any{"skipped": n - 3}, r.idle[n-1]}
	}
	r.steps = append(r.steps, r.idle...)
	r.idle = nil
}
