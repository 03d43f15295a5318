package sweepcmd

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"mockbench/cmd/mockbench/replaycmd"
	"mockbench/engine/spawn"
)

// pool does the runs of a sweep on some goroutines.
type pool struct {
	*sweep
	journal *journal
	tell    func(line string) // progress; nil for none

	mu      sync.Mutex
	done    map[int]*result
	next    int // run
	failure error
	fresh   int // runs that were done by this process
	began   time.Time
	told    time.Time
}

// run does the runs that are not done, until the context ends. The error is one of the journal: a run that fails is a
// row all the same.
func (p *pool) run(ctx context.Context, jobs int) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	p.began, p.told = time.Now(), time.Now()
	if len(p.done) > 0 && p.tell != nil {
		p.tell(fmt.Sprintf("%d of %d runs are in the journal", len(p.done), len(p.points)))
	}
	var group sync.WaitGroup
	for range min(jobs, len(p.points)) {
		group.Add(1)
		spawn.Go("sweep", func() {
			defer group.Done()
			for i, ok := p.take(ctx); ok; i, ok = p.take(ctx) {
				if err := p.one(ctx, i); err != nil {
					p.mu.Lock()
					p.failure = err
					p.mu.Unlock()
					stop()
				}
			}
		})
	}
	group.Wait()
	return p.failure
}

// take returns the next run that is not done.
func (p *pool) take(ctx context.Context) (run int, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.next < len(p.points) && p.done[p.next] != nil {
		p.next++
	}
	if ctx.Err() != nil || p.next == len(p.points) {
		return 0, false
	}
	p.next++
	return p.next - 1, true
}

// one does a run and notes it, unless it was cut short.
func (p *pool) one(ctx context.Context, i int) error {
	out, failure := runReplay(ctx, p.commands[i], 1)
	if ctx.Err() != nil || failure == nil && out.Interrupted {
		return nil
	}
	r, err := newResult(i, p.targets, p.points[i], out, failure)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.journal.add(r); err != nil {
		return fmt.Errorf("--journal: %w", err)
	}
	p.done[i] = r
	p.fresh++
	if p.tell != nil && (time.Since(p.told) >= p.a.progress || len(p.done) == len(p.points)) {
		p.told = time.Now()
		left := time.Since(p.began) / time.Duration(p.fresh) * time.Duration(len(p.points)-len(p.done))
		p.tell(fmt.Sprintf("%d of %d runs, about %s to go", len(p.done), len(p.points), left.Round(time.Second)))
	}
	return nil
}

// runReplay does a replay on so many cores.
func runReplay(ctx context.Context, args []string, cores int) (*replaycmd.Result, error) {
	p, err := replaycmd.NewPlan(args)
	if err != nil {
		return nil, err
	}
	return p.Run(ctx, cores)
}

// rows returns the outcomes in the order of the runs.
func (p *pool) rows() (rows []*result) {
	for _, r := range p.done {
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b *result) int { return a.run - b.run })
	return rows
}
