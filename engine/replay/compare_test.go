package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"mockbench/engine/trace"
)

// plain returns a value as JSON gives it back.
func plain(t testing.TB, v any) any {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	decode(t, data, &out)
	return out
}

// same compares values; numbers with the tolerance of the recordings.
func same(got, want any) bool {
	switch w := want.(type) {
	case float64:
		g, ok := got.(float64)
		return ok && math.Abs(g-w) <= 1e-9*max(1, math.Abs(w))
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return false
		}
		for i := range w {
			if !same(g[i], w[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok || len(g) != len(w) {
			return false
		}
		for k := range w {
			if x, has := g[k]; !has || !same(x, w[k]) {
				return false
			}
		}
		return true
	}
	return got == want
}

// realTime are figures that depend on the machine.
var realTime = []string{"wall_time_ms", "processed_tokens_per_s", "processed_output_tokens_per_s"}

func compareRun(t *testing.T, c *recorded, r *Result, byRow []int) {
	t.Helper()
	compareSummary(t, c, r)
	records := make([]map[string]any, 0)
	for _, f := range r.Offline.Records() {
		records = append(records, plain(t, f).(map[string]any))
	}
	if len(c.Expect.Per) > 0 {
		if c.Expect.Per[0] == '[' {
			compareRows(t, c, records)
		} else {
			compareColumns(t, c, records, byRow)
		}
	}
	compareRecords(t, c, records)
}

func compareSummary(t *testing.T, c *recorded, r *Result) {
	t.Helper()
	got := plain(t, r.Offline.Summary(r.Fleet)).(map[string]any)
	for _, key := range realTime {
		delete(got, key)
	}
	for key, want := range c.Expect.Summary {
		if key == "agentic_model_projection" {
			continue // a label of the caller
		}
		value, ok := got[key]
		if key == "agentic_graph" && c.Input.Args.Format == string(trace.Weka) {
			withoutWekaDigests(value)
			withoutWekaDigests(want)
		}
		if !ok {
			t.Errorf("summary: %s is missing", key)
		} else if !same(value, want) {
			t.Errorf("summary: %s is %v, want %v", key, value, want)
		}
		delete(got, key)
	}
	for key := range got {
		t.Errorf("summary: %s is too much", key)
	}
}

// withoutWekaDigests takes out the digests of a graph that was read from a Weka trace. How the reference makes them, and
// the block ids that go into the second one, is not known; ours tell traces apart all the same.
func withoutWekaDigests(graph any) {
	g := graph.(map[string]any)
	delete(g, "graph_digest")
	delete(g["source"].(map[string]any), "digest")
}

// number returns the number of a record's request, from 0.
func number(t *testing.T, record map[string]any) int {
	t.Helper()
	var n int
	if _, err := fmt.Sscanf(record["uuid"].(string)[24:], "%x", &n); err != nil {
		t.Fatal(err)
	}
	return n - 1
}

// rowsOf returns the row of each request in its file.
func rowsOf(t *testing.T, path string) []int {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var sessions [][]int
	index := map[string]int{}
	for row, line := range slices.Collect(bytes.Lines(bytes.TrimSpace(data))) {
		var r struct {
			Session *string `json:"session_id"`
		}
		decode(t, line, &r)
		at, known := 0, false
		if r.Session != nil {
			at, known = index[*r.Session], true
			if _, seen := index[*r.Session]; !seen {
				index[*r.Session], known = len(sessions), false
			}
		}
		if known {
			sessions[at] = append(sessions[at], row)
		} else {
			sessions = append(sessions, []int{row})
		}
	}
	return slices.Concat(sessions...)
}

// compareColumns compares columns of values, one a request in the order of the trace, or of the rows of its file.
func compareColumns(t *testing.T, c *recorded, records []map[string]any, byRow []int) {
	t.Helper()
	var columns map[string]any
	decode(t, c.Expect.Per, &columns)
	place := func(r map[string]any) int { return number(t, r) }
	if byRow != nil {
		place = func(r map[string]any) int { return byRow[number(t, r)] }
	}
	slices.SortFunc(records, func(a, b map[string]any) int { return place(a) - place(b) })
	if rows, ok := columns["row"].([]any); ok {
		for i := range rows {
			if i >= len(records) || place(records[i]) != int(rows[i].(float64)) {
				t.Fatalf("records are of other requests than those of rows %v", rows)
			}
		}
		delete(columns, "row")
	}
	for key, want := range columns {
		all, constant := want.(map[string]any)
		switch {
		case key == "first_route":
			compareRoutes(t, all["rows"].([]any), records)
			continue
		case !constant && len(want.([]any)) != len(records):
			t.Errorf("%d records, want %d", len(records), len(want.([]any)))
			return
		}
		wrong := 0
		for i, r := range records {
			w := all["all"]
			if !constant {
				w = want.([]any)[i]
			}
			value := r[key]
			if key == "first_route_queue_wait_ms" {
				value = r["routing_history"].([]any)[0].(map[string]any)["queue_wait_ms"]
			}
			if !same(value, w) {
				if wrong++; wrong <= 3 {
					t.Errorf("%s of request %d is %v, want %v", key, number(t, r), value, w)
				}
			}
		}
	}
}

func compareRoutes(t *testing.T, rows []any, records []map[string]any) {
	t.Helper()
	wrong := 0
	for i, r := range records {
		first := r["routing_history"].([]any)[0].(map[string]any)
		queued := 0.0
		if first["outcome"] == "queued" {
			queued = 1
		}
		got := []any{first["scheduler_id"], first["selected_overlap_blocks"], first["best_available_overlap_blocks"], queued}
		if !same(got, rows[i]) {
			if wrong++; wrong <= 3 {
				t.Errorf("first route of request %d is %v, want %v", i, got, rows[i])
			}
		}
	}
}

// rowKey tells the requests of a case apart.
func rowKey(r map[string]any) string {
	return fmt.Sprint(r["session_id"], r["request_id"], r["turn_index"], r["input_length"], r["arrival_time_ms"])
}

// compareRows compares parts of records in the order of the report.
func compareRows(t *testing.T, c *recorded, records []map[string]any) {
	t.Helper()
	var rows []map[string]any
	decode(t, c.Expect.Per, &rows)
	if len(rows) != len(records) {
		t.Fatalf("%d records, want %d", len(records), len(rows))
	}
	order := func(a, b map[string]any) int {
		return strings.Compare(rowKey(a), rowKey(b))
	}
	slices.SortStableFunc(rows, order)
	slices.SortStableFunc(records, order)
	for i, row := range rows {
		for key, want := range row {
			if !same(records[i][key], want) {
				t.Errorf("record %d: %s is %v, want %v", i, key, records[i][key], want)
			}
		}
	}
}

// compareRecords compares whole records.
func compareRecords(t *testing.T, c *recorded, records []map[string]any) {
	t.Helper()
	if c.Expect.Records == nil {
		return
	}
	slices.SortStableFunc(records, func(a, b map[string]any) int {
		x, y := a["arrival_time_ms"].(float64), b["arrival_time_ms"].(float64)
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return strings.Compare(fmt.Sprint(a["session_id"]), fmt.Sprint(b["session_id"]))
	})
	for i, want := range c.Expect.Records {
		records[i]["uuid"] = "*"
		if !same(records[i], want) {
			t.Errorf("record %d:\n got %v\nwant %v", i, records[i], want)
		}
	}
}
