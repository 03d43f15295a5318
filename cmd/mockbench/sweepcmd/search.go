package sweepcmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	"mockbench/engine/report"
	"mockbench/engine/report/limits"
	"mockbench/engine/spawn"
)

// search looks for the first of some values with which a load keeps its objectives.
type search struct {
	a        *tuning
	target   target
	values   []string   // the one that is wanted most first
	commands [][]string // of mockbench replay, by value; all have been checked
	warnings []string
	limits   []limits.Limit
	jobs     int
	began    time.Time
	tell     func(line string) // progress; nil for none

	mu       sync.Mutex
	done     map[int]*result // by index of the value
	best     int             // index of the result, -1 if there is none
	surprise string          // two values that contradict the assumption; empty if none do
}

// mostScanned is how many values are tried one by one where halving would not do.
const mostScanned = 1000

// find halves the range until one value keeps the objectives and the one before does not; then it looks around.
func (s *search) find(ctx context.Context) error {
	low, high := -1, len(s.values)-1 // low fails, high holds
	if err := s.try(ctx, high); err != nil {
		return err
	}
	if !s.holds(high) {
		if err := s.try(ctx, 0, high/4, high/2, high*3/4); err != nil {
			return err
		}
		return s.settle(ctx)
	}
	for high-low > 1 && ctx.Err() == nil {
		middle := (low + high) / 2
		if err := s.try(ctx, middle); err != nil {
			return err
		}
		if s.holds(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	var around []int
	for d := 1; d <= s.a.verify; d++ {
		around = append(around, high-d, high+d)
	}
	if err := s.try(ctx, around...); err != nil {
		return err
	}
	return s.settle(ctx)
}

// settle takes the result from what was tried. Where a value fails that should be easier than one that holds, all values
// that are wanted more than the result are tried.
func (s *search) settle(ctx context.Context) error {
	s.conclude()
	if s.surprise == "" {
		return nil
	}
	var better []int
	for i := range s.best {
		if s.done[i] == nil && len(better) < mostScanned {
			better = append(better, i)
		}
	}
	err := s.try(ctx, better...)
	s.conclude()
	return err
}

func (s *search) conclude() {
	s.best = -1
	for i := range s.values {
		switch {
		case s.done[i] == nil:
		case s.holds(i) && s.best < 0:
			s.best = i
		case !s.holds(i) && s.best >= 0 && s.surprise == "":
			s.surprise = fmt.Sprintf("%s keeps the objectives and %s does not", s.values[s.best], s.values[i])
		}
	}
}

func (s *search) holds(i int) bool { return s.done[i] != nil && s.done[i].word("status") == statusOK }

// try runs the values at some indices that were not tried yet; others are passed over.
func (s *search) try(ctx context.Context, indices ...int) error {
	indices = slices.DeleteFunc(indices, func(i int) bool { return i < 0 || i >= len(s.values) || s.done[i] != nil })
	slices.Sort(indices)
	indices = slices.Compact(indices)
	var group sync.WaitGroup
	var failure error
	slots := make(chan struct{}, s.jobs)
	for _, i := range indices {
		slots <- struct{}{}
		group.Add(1)
		spawn.Go("tune", func() {
			defer group.Done()
			defer func() { <-slots }()
			if err := s.one(ctx, i, max(1, s.jobs/len(indices))); err != nil {
				s.mu.Lock()
				failure = err
				s.mu.Unlock()
			}
		})
	}
	group.Wait()
	return failure
}

// one tries a value.
func (s *search) one(ctx context.Context, i, cores int) error {
	if ctx.Err() != nil {
		return nil
	}
	out, failure := runReplay(ctx, s.commands[i], cores)
	if ctx.Err() != nil || failure == nil && out.Interrupted {
		return nil
	}
	r, err := newResult(i, []target{s.target}, []string{s.values[i]}, out, failure)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done[i] = r
	if s.tell != nil {
		s.tell(fmt.Sprintf("%s=%s: %s", s.target.name, s.values[i], r.word("status")))
	}
	return nil
}

// steady returns the index of the value that is wanted most of those from which on no value that was tried fails, -1 if
// the last one fails.
func (s *search) steady() int {
	steady := -1
	for i := len(s.values) - 1; i >= 0 && (s.done[i] == nil || s.holds(i)); i-- {
		if s.done[i] != nil {
			steady = i
		}
	}
	return steady
}

func byNumber(a, b string) int {
	x, _ := strconv.ParseFloat(a, 64)
	y, _ := strconv.ParseFloat(b, 64)
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// tried returns the outcomes in the order of the values, from the smallest.
func (s *search) tried() (rows []*result) {
	for _, r := range s.done {
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b *result) int { return byNumber(s.values[a.run], s.values[b.run]) })
	return rows
}

// write tells the result. JSON on stdout sends the table to stderr.
func (s *search) write(stdout, stderr io.Writer) error {
	text := stdout
	if s.a.json == "-" {
		text = stderr
	}
	if !s.a.quiet {
		s.table(text)
	}
	if s.a.json == "" {
		return nil
	}
	if err := report.WriteTo(s.a.json, stdout, s.json); err != nil {
		return fmt.Errorf("--json: %w", err)
	}
	return nil
}

func (s *search) table(w io.Writer) {
	keys := []string{}
	for i := range s.limits {
		keys = append(keys, key(&s.limits[i]))
	}
	for _, k := range []string{"completed_requests", "gpu_hours"} {
		if !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	rows := [][]string{append([]string{s.target.name, "status"}, keys...)}
	for _, r := range s.tried() {
		row := []string{s.values[r.run], r.word("status")}
		for _, k := range keys {
			row = append(row, figure(r, k))
		}
		rows = append(rows, row)
	}
	for _, row := range rows {
		for i, c := range row {
			width := 0
			for _, other := range rows {
				width = max(width, len(other[i]))
			}
			fmt.Fprintf(w, "%*s  ", width, c)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "\n%d of %d values were tried in %.1f s\n", len(s.done), len(s.values), time.Since(s.began).Seconds())
	if s.surprise != "" {
		fmt.Fprintf(w, "not monotone: %s; all better values were tried\n", s.surprise)
		if i := s.steady(); i >= 0 {
			fmt.Fprintf(w, "%s and all easier values that were tried keep the objectives\n", s.values[i])
		}
	}
	if s.best < 0 {
		fmt.Fprintf(w, "no value of %s from %s to %s keeps the objectives\n", s.target.name, s.values[0],
			s.values[len(s.values)-1])
		return
	}
	fmt.Fprintf(w, "%s=%s\n%s\n", s.target.name, s.values[s.best], s.commandLine())
}

func (s *search) json(w io.Writer) error {
	out := struct {
		Name    string            `json:"name"`
		Value   json.RawMessage   `json:"value"` // null if none keeps the objectives
		Command *string           `json:"command"`
		Broken  string            `json:"not_monotone,omitempty"`
		Runs    []json.RawMessage `json:"runs"`
	}{Name: s.target.name, Value: json.RawMessage("null"), Broken: s.surprise, Runs: []json.RawMessage{}}
	if s.best >= 0 {
		command := s.commandLine()
		out.Value, out.Command = json.RawMessage(s.values[s.best]), &command
	}
	for _, r := range s.tried() {
		out.Runs = append(out.Runs, r.text)
	}
	data, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(data, '\n'))
	return err
}
