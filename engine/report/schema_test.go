package report

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"mockbench/engine"
)

// schema checks values against the parts of JSON Schema that the report's schema uses.
type schema struct{ defs map[string]any }

func loadSchema(t *testing.T) (schema, map[string]any) {
	t.Helper()
	data, err := os.ReadFile("../../docs/report.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	root := map[string]any{}
	if err := json.Unmarshal(data, &root); err != nil {
		t.Fatal(err)
	}
	return schema{root["$defs"].(map[string]any)}, root
}

// check returns what is wrong with a value, by path.
func (s schema) check(path string, rule map[string]any, value any) (wrong []string) {
	for key, arg := range rule {
		switch key {
		case "$schema", "title", "description", "$defs", "properties", "additionalProperties":
		case "$ref":
			wrong = append(wrong, s.check(path, s.defs[strings.TrimPrefix(arg.(string), "#/$defs/")].(map[string]any), value)...)
		case "allOf":
			for _, part := range arg.([]any) {
				wrong = append(wrong, s.check(path, part.(map[string]any), value)...)
			}
		case "type":
			if !hasType(arg, value) {
				wrong = append(wrong, fmt.Sprintf("%s: %v is no %v", path, value, arg))
			}
		case "const":
			if value != arg {
				wrong = append(wrong, fmt.Sprintf("%s: %v is not %v", path, value, arg))
			}
		case "enum":
			if !slices.Contains(arg.([]any), value) {
				wrong = append(wrong, fmt.Sprintf("%s: %v is none of %v", path, value, arg))
			}
		case "minimum":
			if x, ok := value.(float64); ok && x < arg.(float64) {
				wrong = append(wrong, fmt.Sprintf("%s: %v is below %v", path, value, arg))
			}
		case "required":
			for _, name := range arg.([]any) {
				if _, ok := value.(map[string]any)[name.(string)]; !ok {
					wrong = append(wrong, fmt.Sprintf("%s: %s is missing", path, name))
				}
			}
		case "items":
			for i, item := range value.([]any) {
				wrong = append(wrong, s.check(fmt.Sprintf("%s[%d]", path, i), arg.(map[string]any), item)...)
			}
		default:
			wrong = append(wrong, fmt.Sprintf("%s: the test does not know the schema key %s", path, key))
		}
	}
	if properties, ok := rule["properties"].(map[string]any); ok {
		for name, member := range value.(map[string]any) {
			if p, known := properties[name]; known {
				wrong = append(wrong, s.check(path+"."+name, p.(map[string]any), member)...)
			} else if rule["additionalProperties"] == false {
				wrong = append(wrong, fmt.Sprintf("%s: %s is not in the schema", path, name))
			}
		}
	}
	return wrong
}

func hasType(types, value any) bool {
	if list, ok := types.([]any); ok {
		return slices.ContainsFunc(list, func(one any) bool { return hasType(one, value) })
	}
	x, number := value.(float64)
	switch types {
	case "integer":
		return number && x == math.Trunc(x)
	case "number":
		return number
	case "null":
		return value == nil
	case "string":
		_, ok := value.(string)
		return ok
	case "boolean":
		_, ok := value.(bool)
		return ok
	case "array":
		_, ok := value.([]any)
		return ok
	case "object":
		_, ok := value.(map[string]any)
		return ok
	}
	return false
}

func violations(t *testing.T, r Report) []string {
	t.Helper()
	s, root := loadSchema(t)
	path := filepath.Join(t.TempDir(), "report.json")
	if err := WriteFile(path, nil, r); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		t.Fatal(err)
	}
	return s.check("report", root, value)
}

func TestReportsFollowTheSchema(t *testing.T) {
	cfg := config(64, 8192, 10, 2)
	limits := Options{Limits: Limits{TTFT: 50, ITL: 3}}
	slipped := NewCollector(Options{Workers: []string{"w0", "w1"}}).Report(Final{Now: 10, Wall: time.Second, Mode: "live",
		Slip: []time.Duration{time.Millisecond, 0}, Notes: []string{"a"}, Interrupted: true})
	for name, r := range map[string]Report{
		"complete":    drive(t, cfg, batch(10, 32, 5), forever, limits),
		"cut":         drive(t, cfg, batch(10, 32, 5), 5, limits),
		"no requests": drive(t, cfg, nil, forever, Options{}),
		"two workers": slipped,
	} {
		for _, v := range violations(t, r) {
			t.Errorf("%s: %s", name, v)
		}
	}
}

// The check itself must notice what is wrong.
func TestSchemaNoticesMistakes(t *testing.T) {
	s, root := loadSchema(t)
	for _, broken := range []string{`{}`, `{"schema_version":2,"generator":1,"mode":"x","interrupted":0,"notes":null,"summary":{},"workers":[{}]}`} {
		var value any
		if err := json.Unmarshal([]byte(broken), &value); err != nil {
			t.Fatal(err)
		}
		if properties := value.(map[string]any); len(properties) > 0 {
			properties["notes"] = []any{}
		}
		if got := s.check("report", root, value); len(got) < 7 {
			t.Errorf("%s: only %q", broken, got)
		}
	}
}

func TestNothingIsWrittenWhereNothingCanBe(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "report.json")
	if err := os.Mkdir(path, 0o777); err != nil { // a folder cannot be replaced by a file
		t.Fatal(err)
	}
	if err := WriteFile(path, nil, Report{}); err == nil {
		t.Error("no error")
	}
	if err := CheckFile(path); err == nil {
		t.Error("no error before the run")
	}
	if err := CheckFile(filepath.Join(dir, "other.json")); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("folder holds %v, %v", left, err)
	}
}

// A report must not take the place of what stands at its path: a device would be gone for all programs.
func TestWhatIsNoRegularFileIsWrittenInPlace(t *testing.T) {
	dir := t.TempDir()
	file, link, pipe := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "pipe")
	if err := os.Symlink("file", link); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(link, nil, Report{Mode: "live"}); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(file); err != nil || !strings.Contains(string(data), `"mode": "live"`) {
		t.Errorf("behind the link stands %q, %v", data, err)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := CheckFile(pipe); err != nil {
		t.Error(err)
	}
	if err := WriteFile(pipe, nil, Report{Mode: "live"}); err != nil {
		t.Fatal(err)
	}
	for path, kind := range map[string]os.FileMode{link: os.ModeSymlink, pipe: os.ModeNamedPipe} {
		if info, err := os.Lstat(path); err != nil || info.Mode().Type() != kind {
			t.Errorf("%s is no %v any more: %v, %v", path, kind, info, err)
		}
	}
}

func TestDashIsStandardOutput(t *testing.T) {
	var out strings.Builder
	if err := WriteFile("-", &out, Report{Mode: "live"}); err != nil || !strings.Contains(out.String(), `"mode": "live"`) {
		t.Errorf("wrote %q, %v", out.String(), err)
	}
}

func TestSummaryFitsItsWidth(t *testing.T) {
	r := drive(t, config(64, 8192, 10, 2), batch(10, 32, 5), forever, Options{Limits: Limits{TTFT: 50, ITL: 3}})
	r.Workers = append(r.Workers, r.Workers...)
	r.Summary.TTFT.Max = 12_345_678.9
	r.Summary.TPOT.Mean = math.NaN()
	for _, width := range []int{80, 120} {
		out := text(t, r, width)
		for line := range strings.Lines(out) {
			if len(line)-1 > width {
				t.Errorf("line of %d cells at width %d: %s", len(line)-1, width, line)
			}
		}
		if strings.Contains(out, "NaN") || !strings.Contains(out, " 12,345,679 ") {
			t.Errorf("summary at width %d:\n%s", width, out)
		}
	}
}

func TestProgressLine(t *testing.T) {
	c := NewCollector(Options{Workers: []string{"w0"}})
	var w Window
	if got := c.Line(&w, 0, 0); strings.Count(got, none) != 3 || strings.ContainsAny(got, "\n\x1b") {
		t.Errorf("at the start: %q", got)
	}
	c.workers[0].Pass(&engine.Pass{End: 100, Load: engine.Load{ActiveBlocks: 3, TotalBlocks: 4}, Outputs: []engine.Output{
		{Request: &engine.Request{}, HasToken: true, Completed: true}}})
	if got := c.Line(&w, 5000, 7); !strings.Contains(got, "1/7 requests") || !strings.Contains(got, "KV 75%") ||
		!strings.Contains(got, "TTFT p50 100 p99 100 ms") {
		t.Errorf("after a request: %q", got)
	}
}

func TestNotes(t *testing.T) {
	cfg := engine.DefaultConfig(engine.VLLM)
	if got := Notes(cfg); len(got) != 1 || !strings.Contains(got[0], "KV pool") {
		t.Errorf("polynomial: %q", got)
	}
	cfg.Timing.Type, cfg.Nextn = "fixed", 2
	if got := Notes(cfg); len(got) != 2 || !strings.Contains(got[1], "draft tokens") {
		t.Errorf("fixed with drafts: %q", got)
	}
}
