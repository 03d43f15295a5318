package sweepcmd

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"mockbench/engine/report"
	"mockbench/engine/report/page"
)

// write writes the rows. A file on stdout sends the table to stderr.
func (s *sweep) write(rows []*result, stdout, stderr io.Writer) error {
	text := stdout
	if s.a.csv == "-" || s.a.jsonl == "-" || s.a.html == "-" {
		text = stderr
	}
	if !s.a.quiet {
		s.table(text, rows)
	}
	for _, out := range []struct {
		flag, path string
		write      func(w io.Writer) error
	}{
		{"csv", s.a.csv, func(w io.Writer) error { return writeCSV(w, rows) }},
		{"jsonl", s.a.jsonl, func(w io.Writer) error { return writeJSONL(w, rows) }},
		{"html", s.a.html, func(w io.Writer) error { return page.Write(w, s.page(rows)) }},
	} {
		if out.path == "" {
			continue
		}
		if err := report.WriteTo(out.path, stdout, out.write); err != nil {
			return fmt.Errorf("--%s: %w", out.flag, err)
		}
	}
	return nil
}

func writeJSONL(w io.Writer, rows []*result) error {
	for _, r := range rows {
		if _, err := fmt.Fprintf(w, "%s\n", r.text); err != nil {
			return err
		}
	}
	return nil
}

// writeCSV writes a head with the keys of all rows, in the order in which they first appear, and a line a row. What a row
// does not have, and null, is empty.
func writeCSV(w io.Writer, rows []*result) error {
	var head []string
	seen := map[string]bool{}
	for _, r := range rows {
		for _, key := range r.row.Keys() {
			if !seen[key] {
				seen[key], head = true, append(head, key)
			}
		}
	}
	c := csv.NewWriter(w)
	if err := c.Write(head); err != nil {
		return err
	}
	for _, r := range rows {
		line := make([]string, len(head))
		for i, key := range head {
			line[i] = cell(r, key)
		}
		if err := c.Write(line); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

// cell returns a value of a row as text.
func cell(r *result, key string) string {
	v, ok := r.row.Raw(key)
	if !ok || v == nil {
		return ""
	}
	if text, ok := v.(string); ok {
		return text
	}
	text, _ := json.Marshal(v) // it was read as JSON
	return string(text)
}

// figure returns a figure of a row for people.
func figure(r *result, key string) string {
	if x, ok := r.number(key); ok {
		return report.Decimal(x)
	}
	return "--"
}

// columns are the figures of the table: the objectives, and what a run amounts to.
func (s *sweep) columns() (keys []string) {
	for i := range s.objectives {
		keys = append(keys, key(&s.objectives[i].Limit))
	}
	for _, k := range []string{"completed_requests", "p99_ttft_ms", "p99_itl_ms", "output_throughput_tok_s", "gpu_hours"} {
		if !strings.Contains(" "+strings.Join(keys, " ")+" ", " "+k+" ") {
			keys = append(keys, k)
		}
	}
	return keys
}

// lines returns the head of the table and a line a row.
func (s *sweep) lines(rows []*result) (head []string, lines [][]string) {
	head = []string{"run"}
	for _, t := range s.targets {
		head = append(head, t.name)
	}
	keys := s.columns()
	head = append(append(head, "status"), keys...)
	for _, r := range rows {
		line := []string{cell(r, "run")}
		for _, t := range s.targets {
			line = append(line, cell(r, t.name))
		}
		line = append(line, r.word("status"))
		for _, k := range keys {
			line = append(line, figure(r, k))
		}
		lines = append(lines, line)
	}
	return head, lines
}

// most is how many rows the table on the screen shows besides those of the front.
const most = 40

// table writes the runs that no other beats, and all if they are few.
func (s *sweep) table(w io.Writer, rows []*result) {
	best := front(rows, s.objectives)
	head, lines := s.lines(rows)
	widths := make([]int, len(head))
	shown := [][]string{append([]string{""}, head...)}
	for i, line := range lines {
		mark := ""
		if best[rows[i].run] {
			mark = "*"
		}
		if mark != "" || len(rows) <= most {
			shown = append(shown, append([]string{mark}, line...))
		}
	}
	for _, line := range shown {
		for i, c := range line[1:] {
			widths[i] = max(widths[i], len(c))
		}
	}
	for _, line := range shown {
		fmt.Fprintf(w, "%-1s", line[0])
		for i, c := range line[1:] {
			fmt.Fprintf(w, "  %*s", widths[i], c)
		}
		fmt.Fprintln(w)
	}
	var names []string
	for _, o := range s.objectives {
		names = append(names, o.describe())
	}
	fmt.Fprintf(w, "\n* %d of %d runs are beaten by no other in %s\n", len(best), len(rows), strings.Join(names, " and "))
	if len(rows) < len(s.points) {
		fmt.Fprintf(w, "interrupted: %d of %d runs were done\n", len(rows), len(s.points))
	}
	told := map[string]bool{}
	for _, r := range rows {
		if reason := r.word("error"); reason != "" && !told[reason] && len(told) < 5 {
			told[reason] = true
			fmt.Fprintf(w, "run %d: %s\n", r.run, reason)
		}
	}
}

func (o *objective) describe() string {
	if o.sign > 0 {
		return "high " + o.Text
	}
	return "low " + o.Text
}
