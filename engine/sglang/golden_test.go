package sglang

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"testing"

	"mockbench/engine"
	"mockbench/engine/goldentest"
	"mockbench/engine/spec"
	"mockbench/engine/timing"
)

func TestGoldenEngineSglang(t *testing.T) {
	for _, c := range goldentest.Load(t, "engine-sglang") {
		t.Run(c.Name, func(t *testing.T) { runGolden(t, &c) })
	}
}

// goldenRun drives one case with the recorded clock.
type goldenRun struct {
	t        *testing.T
	c        *goldentest.Case
	group    *engine.Group
	ranks    []*Scheduler
	requests map[string]*engine.Request
	rankOf   map[string]int
	steps    []any
	labels   map[uint64]string
	idle     []any // effect-free passes in a row
}

func newGroup(c *goldentest.Case) (*engine.Group, []*Scheduler, error) {
	cfg, err := c.Config()
	if err != nil {
		return nil, nil, err
	}
	model, err := timing.NewModel(cfg.Timing)
	if err != nil {
		return nil, nil, err
	}
	var list []engine.Scheduler
	var ranks []*Scheduler
	for r := range c.Input.DPSize {
		var sampler *spec.Sampler
		if rates, _ := cfg.AcceptRates(); rates != nil {
			sampler = spec.NewSampler(rates, cfg.MTPSeed+c.Input.WorkerID*uint64(c.Input.DPSize)+uint64(r))
		}
		s, err := New(cfg, r, c.Input.DPSize, timing.NewTimer(model, cfg), sampler)
		if err != nil {
			return nil, nil, err
		}
		list, ranks = append(list, s), append(ranks, s)
	}
	return engine.NewGroup(list), ranks, nil
}

func runGolden(t *testing.T, c *goldentest.Case) {
	group, ranks, err := newGroup(c)
	if c.Expect.ConfigError != "" {
		goldentest.CheckRefusal(t, err, c.Expect.ConfigError)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	g := &goldenRun{t: t, c: c, group: group, ranks: ranks, requests: map[string]*engine.Request{},
		rankOf: map[string]int{}, labels: map[uint64]string{}}
	for label, h := range c.Expect.Hashes {
		var v uint64
		fmt.Sscanf(*h[0], "%x", &v)
		g.labels[v] = label
	}
	for _, r := range c.Input.Requests {
		g.requests[r.ID] = &engine.Request{ID: goldentest.Number(r.N), Label: r.ID, Prompt: goldentest.Prompt(r.Prompt), MaxOutput: r.MaxOutput,
			Output: r.OutputIDs}
		g.rankOf[r.ID] = r.Rank
	}
	g.run()
}

func (g *goldenRun) run() {
	arrivals := slices.DeleteFunc(slices.Clone(g.c.Input.Requests), func(r goldentest.Request) bool { return r.ArrivalMS == nil })
	slices.SortStableFunc(arrivals, func(a, b goldentest.Request) int { return cmp.Compare(*a.ArrivalMS, *b.ArrivalMS) })
	commands := slices.Clone(g.c.Input.Cancels)
	for i := range commands {
		commands[i].Cmd = "cancel"
	}
	for _, x := range g.c.Input.Commands {
		x.Discard = true
		commands = append(commands, x)
	}
	slices.SortStableFunc(commands, func(a, b goldentest.Command) int { return cmp.Compare(a.AtMS, b.AtMS) })

	var now float64
	passes, exhausted := 0, 0
	stalled, limit := false, false
	for {
		for len(commands) > 0 && commands[0].AtMS <= now {
			g.flush()
			g.steps = append(g.steps, g.command(commands[0], now, false))
			commands = commands[1:]
		}
		for len(arrivals) > 0 && *arrivals[0].ArrivalMS <= now {
			a := arrivals[0]
			arrivals = arrivals[1:]
			r := g.requests[a.ID]
			r.Arrival = engine.Time(now)
			if err := g.group.Submit(a.Rank, r, engine.Time(now)); err != nil {
				g.flush()
				g.steps = append(g.steps, g.failure("submit", a.ID, now, false, err))
			}
		}
		next, more := upcoming(now, commands, arrivals)
		if !g.group.Ready() {
			if !more {
				break
			}
			now = next
			continue
		}
		if g.c.Input.MaxPasses > 0 && passes == g.c.Input.MaxPasses {
			limit = true
			break
		}
		_, end := g.group.Begin(engine.Time(now))
		var mid []any
		for len(commands) > 0 && commands[0].AtMS < float64(end) {
			mid = append(mid, g.command(commands[0], commands[0].AtMS, true))
			commands = commands[1:]
		}
		records := g.group.Complete()
		passes++
		step, effect, hint := g.pass(now, records, mid)
		if effect || len(mid) > 0 {
			g.flush()
			g.steps = append(g.steps, step)
			exhausted = 0
		} else {
			step["idle_pass"] = true
			g.idle = append(g.idle, step)
			if hint == "exhausted" {
				exhausted++
			} else {
				exhausted = 0
			}
		}
		now = float64(end)
		if exhausted == 3 {
			exhausted = 0
			if next, more = upcoming(now, commands, arrivals); !more {
				stalled = true
				break
			}
			now = next
		}
	}
	g.flush()
	want := &g.c.Expect
	if passes != want.Passes || stalled != want.Stalled || limit != want.PassLimitHit || g.group.Drained() != want.Drained {
		g.t.Errorf("passes %d stalled %v limit %v drained %v, want %d %v %v %v", passes, stalled, limit, g.group.Drained(),
			want.Passes, want.Stalled, want.PassLimitHit, want.Drained)
	}
	g.compare()
}

func upcoming(now float64, commands []goldentest.Command, arrivals []goldentest.Request) (next float64, ok bool) {
	if len(commands) > 0 && commands[0].AtMS > now {
		next, ok = commands[0].AtMS, true
	}
	if len(arrivals) > 0 && (!ok || *arrivals[0].ArrivalMS < next) {
		next, ok = *arrivals[0].ArrivalMS, true
	}
	return next, ok
}

// flush writes down a row of effect-free passes in the recorded short form.
func (g *goldenRun) flush() {
	if n := len(g.idle); n > 3 {
		g.idle = []any{g.idle[0], g.idle[1], map[string]any{"skipped": n - 3}, g.idle[n-1]}
	}
	g.steps = append(g.steps, g.idle...)
	g.idle = nil
}

// command applies one command and returns its record.
func (g *goldenRun) command(c goldentest.Command, now float64, mid bool) map[string]any {
	at := engine.Time(now)
	r := g.requests[c.ID]
	rank := g.ranks[g.rankOf[c.ID]]
	var result engine.CommandResult
	word := ""
	var err error
	switch handoff := goldentest.Number(c.Handoff); c.Cmd {
	case "cancel":
		result.CancelResult = rank.Cancel(r.ID, at, c.Discard)
		result.Request = r
	case "submit":
		word, err = "submitted", rank.Submit(r, at)
	case "submit_prefill":
		word, err = "submitted", rank.SubmitSource(r, handoff, at)
	case "reserve":
		word = "accepted"
		result, err = rank.Reserve(r, handoff, at)
	case "activate":
		result = rank.Activate(handoff, at)
	case "release_source":
		result = rank.ReleaseSource(handoff, at)
	case "cancel_source":
		result = rank.CancelSource(handoff, at)
	case "cancel_destination":
		result = rank.CancelDestination(handoff, at)
	default:
		g.t.Fatalf("unknown command %q", c.Cmd)
	}
	if err != nil {
		return g.failure(c.Cmd, c.ID, now, mid, err)
	}
	if word == "" {
		word = "noop"
		if result.Applied {
			word = "applied"
		}
	}
	step := map[string]any{"cmd": c.Cmd, "at": now, "id": c.ID, "mid_pass": mid, "result": word,
		"suppressed": result.Suppressed, "retired": []any{}, "met": goldentest.Met(rank.Load())}
	if result.Retired {
		step["retired"] = []any{result.Request.Label}
	}
	if c.Handoff != 0 {
		step["handoff"] = c.Handoff
	}
	if result.Events != nil {
		step["kv"] = g.events(result.Events)
	}
	if len(result.Steps) > 0 {
		step["life"] = goldentest.Life(result.Steps)
	}
	return step
}

func (g *goldenRun) failure(cmd, id string, now float64, mid bool, err error) map[string]any {
	return map[string]any{"cmd": cmd, "at": now, "id": id, "mid_pass": mid, "error": goldentest.ErrorWord(err)}
}

// pass turns the records of a group pass into the recorded form.
func (g *goldenRun) pass(start float64, records []*engine.Pass, mid []any) (step map[string]any, effect bool, hint any) {
	step = map[string]any{"t": start, "end": float64(records[0].End)}
	var worst engine.Hint
	var ranks []any
	for i, p := range records {
		effect = effect || p.Effect || p.End > p.Start || len(p.Handoffs) > 0
		if !p.Idle && (p.Hint.Kind > worst.Kind || p.Hint.Kind == worst.Kind && p.Hint.Rounds > worst.Rounds) {
			worst = p.Hint
		}
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
		g.rank(fields, p, g.ranks[i])
	}
	if ranks != nil {
		step["ranks"] = ranks
	}
	if mid != nil {
		step["mid"] = mid
	}
	hint = map[engine.HintKind]any{engine.HintExhausted: "exhausted", engine.HintHandoff: "exhausted", engine.HintRetry: "retry",
		engine.HintCountdown: worst.Rounds}[worst.Kind]
	step["retry"] = hint
	return step, effect, hint
}

// rank adds the fields of one rank.
func (g *goldenRun) rank(f map[string]any, p *engine.Pass, s *Scheduler) {
	f["met"] = goldentest.Met(p.Load)
	put := func(name string, list []any) {
		if len(list) > 0 {
			f[name] = list
		}
	}
	var commit, admit, out, retract []any
	decoded := p.Decode.Requests > 0
	work := slices.Clone(p.Work)
	if decoded {
		slices.SortStableFunc(work, func(a, b engine.Work) int { return bytes.Compare(a.Request.ID[:], b.Request.ID[:]) })
	}
	for _, w := range work {
		if w.Tokens > 0 {
			commit = append(commit, w.Request.Label)
		}
	}
	for _, a := range p.Admissions {
		admit = append(admit, []any{a.Request.Label, a.Reused})
	}
	for _, o := range p.Outputs {
		var token any
		if o.HasToken {
			token = o.Token
		}
		out = append(out, []any{o.Request.Label, token, goldentest.Flag(o.Completed), goldentest.Flag(o.Rejected), nil})
	}
	for _, x := range p.Preemptions {
		retract = append(retract, []any{x.Request.Label, x.Blocks, []any{x.Before.Running, nil, x.Before.ActiveBlocks},
			[]any{x.After.Running, nil, x.After.ActiveBlocks}, x.Available, x.Required, float64(p.Start)})
	}
	put("commit", commit)
	put("admit", admit)
	put("out", out)
	put("retract", retract)
	put("kv", g.events(&p.Events))
	put("life", goldentest.Life(p.Handoffs))
	if p.Prefix.Total > 0 {
		f["hit"] = []any{p.Prefix.Reused, p.Prefix.Total}
	}
	if g.c.Input.Detail == "full" {
		g.detail(f, p, s)
	}
}

// detail adds what only full records have.
func (g *goldenRun) detail(f map[string]any, p *engine.Pass, s *Scheduler) {
	m := p.FPM
	f["fpm"] = []any{m.PrefillRequests, m.PrefillTokens, m.PrefillLengthVar, m.PrefillKVTokens, m.DecodeRequests,
		m.DecodeKVTokens, m.DecodeKVVar, m.QueuedPrefills, m.QueuedPrefillTokens, m.QueuedPrefillVar, m.QueuedDecodes,
		m.QueuedDecodeKVTokens, m.QueuedDecodeKVVar, m.Milliseconds}
	if p.Drafts.Forwards > 0 {
		f["da"] = []any{p.Drafts.Accepted, p.Drafts.Forwards}
	}
	f["ratio"] = s.ratio.now
	f["pool"] = []any{s.tokensOf(s.pool.Available()), s.tokensOf(s.pool.Evictable()), s.tokensOf(s.pool.Protected())}
	queues := map[string]any{"w": labels(s.waiting.list), "r": labels(s.running)}
	if len(s.ready) > 0 {
		queues["ready"] = labels(s.ready)
	}
	f["q"] = queues
	owners := []any{}
	for _, q := range slices.Concat(s.waiting.list, s.running) {
		if q.materialised > 0 {
			owners = append(owners, []any{q.req.Label, len(q.generated), q.materialised, s.tokensOf(len(q.pages)), q.cached})
		}
	}
	f["req"] = owners
	if s.roundsLeft > 0 {
		f["defer"] = s.roundsLeft
	}
	if g.c.Input.Tree {
		f["tree"] = tree(s)
	}
}
