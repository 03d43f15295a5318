package sweepcmd

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mockbench/profiles"
)

func TestParseValues(t *testing.T) {
	for spec, want := range map[string]string{
		"4096:65536:x2":  "4096 8192 16384 32768 65536",
		"1:4":            "1 2 3 4",
		"1:16:+5":        "1 6 11 16",
		"1:15:+5":        "1 6 11",
		"0.1:0.3:+0.1":   "0.1 0.2 0.30000000000000004",
		"kv,round_robin": "kv round_robin",
		"7":              "7",
	} {
		got, err := parseValues(spec)
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: got %q, %v", spec, got, err)
		}
	}
	for _, spec := range []string{"", "1,", "1,1", "4:1", "1:4:x1", "0:4:x2", "1:4:+0", "1:4:2", "1:4:x2:3", "a:b", "1:1e9:+1"} {
		if got, err := parseValues(spec); err == nil {
			t.Errorf("%q is read as %q", spec, got)
		}
	}
}

func TestTargets(t *testing.T) {
	for name, want := range map[string]target{
		"num_workers":                {flag: "num-workers"},
		"--router-mode":              {flag: "router-mode"},
		"engine.num_gpu_blocks":      {path: "engine.num_gpu_blocks"},
		"decode.engine.max_num_seqs": {pool: "decode", path: "engine.max_num_seqs"},
		"dp_size":                    {path: "dp_size"},
	} {
		want.name = name
		if got, err := findTarget("--vary", name); err != nil || got != want {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}

func row(t *testing.T, run int, text string) *result {
	t.Helper()
	r, err := readResult(run, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestFront(t *testing.T) {
	list, err := parseObjectives([]string{"p99(ttft_ms)", "max output_throughput_tok_s"})
	if err != nil {
		t.Fatal(err)
	}
	rows := []*result{
		row(t, 0, `{"status":"ok","completed_requests":1,"p99_ttft_ms":10,"output_throughput_tok_s":100}`),
		row(t, 1, `{"status":"ok","completed_requests":1,"p99_ttft_ms":20,"output_throughput_tok_s":200}`),
		row(t, 2, `{"status":"ok","completed_requests":1,"p99_ttft_ms":20,"output_throughput_tok_s":150}`),
		row(t, 3, `{"status":"failed","completed_requests":1,"p99_ttft_ms":1,"output_throughput_tok_s":900}`),
		row(t, 4, `{"status":"ok","completed_requests":0,"p99_ttft_ms":null,"output_throughput_tok_s":900}`),
		row(t, 5, `{"status":"ok","completed_requests":1,"p99_ttft_ms":10,"output_throughput_tok_s":100}`),
	}
	best := front(rows, list)
	var got []int
	for run := range best {
		got = append(got, run)
	}
	slices.Sort(got)
	if !slices.Equal(got, []int{0, 1, 5}) {
		t.Errorf("front is %v", got)
	}
}

// What a killed process wrote in part is cut off; whole lines stay, and the file goes on after them.
func TestJournalAfterAKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.journal")
	open := func() (*journal, map[int]*result) {
		t.Helper()
		j, done, err := openJournal(path, "digest", 9)
		if err != nil {
			t.Fatal(err)
		}
		return j, done
	}
	j, done := open()
	if len(done) != 0 {
		t.Fatal("a new journal holds runs")
	}
	if err := j.add(row(t, 4, `{"run":4,"status":"ok"}`)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := openJournal(path, "digest", 9); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a journal in use can be opened: %v", err)
	}
	j.close()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(whole) + 1 {
		if err := os.WriteFile(path, whole[:cut], 0o644); err != nil {
			t.Fatal(err)
		}
		j, done := open()
		if want := cut == len(whole); (done[4] != nil) != want {
			t.Fatalf("of %d bytes of %d: run 4 is there: %v", cut, len(whole), !want)
		}
		if err := j.add(row(t, 5, `{"run":5,"status":"ok"}`)); err != nil {
			t.Fatal(err)
		}
		j.close()
		j, done = open()
		j.close()
		if done[5] == nil {
			t.Fatalf("of %d bytes: what was added is lost", cut)
		}
	}
	if _, _, err := openJournal(path, "other", 9); err == nil || !strings.Contains(err.Error(), "another sweep") {
		t.Errorf("the journal of another sweep is taken: %v", err)
	}
}

func TestSettingValue(t *testing.T) {
	if v := settingValue("64"); v != profiles.Number("64") {
		t.Errorf("64 is %T", v)
	}
	if v := settingValue("lifo"); v != "lifo" {
		t.Errorf("lifo is %v", v)
	}
	if v := settingValue("true"); v != true {
		t.Errorf("true is %v", v)
	}
}
