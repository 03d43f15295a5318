package trace

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const good = `{"timestamp": 0, "input_length": 10, "output_length": 3, "hash_ids": [1]}`

func readText(t testing.TB, text string, o Options) (*Trace, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "trace.jsonl")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Read([]string{path}, o)
}

func zipped(t *testing.T, parts ...string) string {
	t.Helper()
	var b bytes.Buffer
	for _, p := range parts {
		z := gzip.NewWriter(&b)
		if _, err := z.Write([]byte(p)); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

func TestUnusualFiles(t *testing.T) {
	ids := strings.Repeat("7,", 5_000_000) + "7"
	for name, c := range map[string]struct {
		text     string
		requests int
	}{
		"byte-order mark":    {"\xef\xbb\xbf" + good, 1},
		"CRLF":               {good + "\r\n" + good + "\r\n\r\n", 2},
		"blank lines":        {"\n \t\n" + good + "\n\n" + good, 2},
		"no final newline":   {good + "\n" + good, 2},
		"gzip":               {zipped(t, good+"\n"+good+"\n"), 2},
		"gzip and padding":   {zipped(t, good+"\n", good+"\n") + strings.Repeat("\x00", 100), 2},
		"gzip in two parts":  {zipped(t, good+"\n", good+"\n"), 2},
		"a line of 10 MB":    {`{"output_length": 3, "hash_ids": [` + ids + `], "timestamp": 1}` + "\n" + good, 2},
		"escapes":            {`{"timestamp": 1, "output_length": 3, "hash_ids": [1], "session_id": "a\u0062\n\"\\"}`, 1},
		"nulls":              {`{"timestamp": 0, "input_length": null, "output_length": 3, "hash_ids": [1], "session_id": null, "delay": null}`, 1},
		"unknown fields":     {`{"x": {"y": [1, {"z": "}"}], "b": true}, "timestamp": 0, "output_length": 3, "hash_ids": [1]}`, 1},
		"exponents and zero": {`{"timestamp": -1.5e2, "output_length": 0, "hash_ids": [0]}`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			tr, err := readText(t, c.text, Options{Format: Mooncake, BlockSize: 64})
			if err != nil || tr.Requests() != c.requests {
				t.Fatalf("got %v, %v, want %d requests", tr, err, c.requests)
			}
		})
	}
	tr, err := readText(t, `{"timestamp": 1, "output_length": 3, "hash_ids": [1], "session_id": "a\u0062\n\"\\"}`, Options{Format: Mooncake})
	if err != nil || tr.Sessions[0].Name != "ab\n\"\\" {
		t.Errorf("got %+v, %v", tr, err)
	}
}

func TestMalformedLines(t *testing.T) {
	for text, reason := range map[string]string{
		`[1]`:                                 "expected '{'",
		`{`:                                   "the text ends",
		good + "}":                            "text after the end",
		`{"timestamp": 0 "output_length": 1}`: "expected '}'",
		`{"timestamp": 01, "output_length": 1, "hash_ids": [1]}`:                 "not a number",
		`{"timestamp": 1e999, "output_length": 1, "hash_ids": [1]}`:              "not a number",
		`{"timestamp": NaN, "output_length": 1, "hash_ids": [1]}`:                "expected a number",
		`{"output_length": 1.0, "hash_ids": [1]}`:                                "whole number",
		`{"output_length": -1, "hash_ids": [1]}`:                                 "whole number",
		`{"output_length": 99999999999, "hash_ids": [1]}`:                        "too large",
		`{"output_length": 1, "hash_ids": [18446744073709551616]}`:               "too large",
		`{"output_length": 1, "hash_ids": [1,]}`:                                 "whole number",
		`{"output_length": 1, "hash_ids": "1"}`:                                  "expected '['",
		`{"output_length": 1, "hash_ids": [1], "session_id": "a` + "\x01" + `"}`: "control character",
		`{"output_length": 1, "hash_ids": [1], "session_id": "a` + "\xff" + `"}`: "not UTF-8",
		`{"output_length": 1, "hash_ids": [1], "session_id": "\x"}`:              "invalid character",
		`{"output_length": 1, "hash_ids": [1], "session_id": "a}`:                "inside a string",
		`{"output_length": 1, "hash_ids": [1], "delay": -3, "session_id": "a"}`:  "delay",
		`{"output_length": 1, "hash_ids": [1], "priority": 1.5}`:                 "32 bits",
		`{"x": ` + strings.Repeat("[", 1000) + `}`:                               "too deeply",
		`{"x": tru}`: "a JSON value",
		`{"output_length": 1, "hash_ids": [1], "output_tokens": 1}`: "given twice",
		`{"hash_ids": [1]}`:    "output_length is missing",
		`{"output_length": 1}`: "hash_ids is missing",
		`{"output_length":1,"hash_ids":[],"input_length":1}`: "exceeds",
	} {
		_, err := readText(t, good+"\n"+text+"\n", Options{Format: Mooncake, BlockSize: 64})
		var wrong *LineError
		if !errors.As(err, &wrong) || wrong.Line != 2 || !strings.Contains(wrong.Reason, reason) {
			t.Errorf("%.60s: got %v, want a complaint about line 2: %s", text, err, reason)
		}
	}
}

func TestFilesThatAreNone(t *testing.T) {
	if _, err := Read([]string{t.TempDir()}, Options{Format: Mooncake}); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("got %v", err)
	}
	if _, err := Read(nil, Options{Format: Mooncake}); err == nil {
		t.Error("no file is accepted")
	}
	if _, err := readText(t, "\x1f\x8b\x00", Options{Format: Mooncake}); err == nil {
		t.Error("a broken gzip file is accepted")
	}
	for _, junk := range []string{"junk", "\x1fx", "\x00\x00j"} {
		if _, err := readText(t, zipped(t, good+"\n")+junk, Options{Format: Mooncake}); err == nil || !strings.Contains(err.Error(), "trace.jsonl:2: the compressed data are followed") {
			t.Errorf("%q behind the data: got %v", junk, err)
		}
	}
	whole := zipped(t, good+"\n")
	if _, err := readText(t, whole[:len(whole)-6], Options{Format: Mooncake}); err == nil || !strings.Contains(err.Error(), "unexpected EOF") {
		t.Errorf("a file that was cut off: got %v", err)
	}
}

// TestWrongGraphs names file and line of what is wrong with requests that depend on one another.
func TestWrongGraphs(t *testing.T) {
	const header = `{"schema":"dynamo.agentic_mooncake","version":2,"block_size":64,"hash_id_scope":"local","source":{"format":"t","digest":"d"}}` + "\r\n"
	node := func(id, needs string) string {
		return `{` + id + `"play_id":"p","session_id":"s","model":"m","input_length":64,"output_length":3,"hash_ids":[1],"not_before_ms":0,"dependencies":[` +
			needs + "]}\r\n"
	}
	need := func(id, delay string) string {
		return `{` + id + `"trigger":"completion","relation":"sequence","delay_ms":` + delay + `}`
	}
	a, b := node(`"request_id":"a",`, ""), `"request_id":"b",`
	for name, c := range map[string]struct{ text, reason string }{
		"negative delay":    {a + node(b, need(`"request_id":"a",`, "-1")), "trace.jsonl:3: delay_ms must be finite and not negative, got -1"},
		"no id":             {a + node("", ""), "trace.jsonl:3: request_id is missing"},
		"blank id":          {a + node(`"request_id":" ",`, ""), "trace.jsonl:3: request_id must not be blank"},
		"id used twice":     {a + a, "trace.jsonl:3: request_id a was used before"},
		"unnamed request":   {a + node(b, need("", "1")), "trace.jsonl:3: a dependency has no request_id"},
		"unknown request":   {a + node(b, need(`"request_id":"z",`, "1")), "trace.jsonl:3: request b depends on request z, which does not exist"},
		"depends on itself": {a + node(b, need(b, "1")), "trace.jsonl:3: request b depends on itself"},
		"circle": {node(`"request_id":"a",`, need(b, "1")) + node(b, need(`"request_id":"a",`, "1")),
			"trace.jsonl: 2 requests wait for one another in a circle: a, b"},
	} {
		if _, err := readText(t, "\xef\xbb\xbf"+header+c.text, Options{Format: Agentic}); err == nil || !strings.HasSuffix(err.Error(), c.reason) {
			t.Errorf("%s: got %v, want %s", name, err, c.reason)
		}
	}
	tr, err := readText(t, "\xef\xbb\xbf"+header+a+node(b, need(`"request_id":"a",`, "1")), Options{Format: Agentic})
	if err != nil || tr.Requests() != 2 {
		t.Errorf("byte-order mark and CRLF: %v, %v", tr, err)
	}
}

// FuzzTrace reads anything in every format: an error or a trace whose turns fit their ids, never a panic.
func FuzzTrace(f *testing.F) {
	formats := []Format{Mooncake, MooncakeDelta, Agentic, Applied, Dynamo}
	for _, seed := range []string{good, good + "\r\n" + good, "\xef\xbb\xbf" + good,
		`{"timestamp": 5, "output_length": 3, "hash_ids": [1], "session_id": "s"}` + "\n" + `{"delay": 2, "output_length": 3, "hash_ids": [1], "session_id": "s"}`,
		`{"schema":"dynamo.agentic_mooncake","version":2,"block_size":64,"hash_id_scope":"local","source":{"format":"t","digest":"d"}}` + "\n" +
			`{"request_id":"a","play_id":"p","session_id":"s","model":"m","input_length":64,"output_length":3,"hash_ids":[1],"not_before_ms":0}`,
		`{"num_turns":1,"input_prompt_length":9,"assistant_response_length":[1],"tool_call_output_length":[2],"tool_call_latency":[0.5],"final_assistant_response_length":3}`,
		`{"event":{"schema":"dynamo.request.trace.v1","event_type":"request_end","event_time_unix_ms":9,"request":{"request_id":"r","output_tokens":3,"replay":{"trace_block_size":64,"input_length":6,"input_sequence_hashes":[1]}}}}`,
	} {
		for i := range formats {
			f.Add(uint8(i), seed)
		}
	}
	f.Fuzz(func(t *testing.T, format uint8, text string) {
		if len(text) > 1<<12 || strings.Contains(text, "00000") {
			return // numbers as large as they come make prompts that nobody can hold
		}
		tr, err := readText(t, text, Options{Format: formats[int(format)%len(formats)], BlockSize: 64, PrefixRatio: 0.5, PrefixGroups: 2})
		if err != nil {
			return
		}
		if tr.Requests() == 0 {
			t.Fatal("a trace without requests")
		}
		if tr.Graph != nil {
			tr.Digest()
			return
		}
		for _, s := range tr.Sessions {
			for _, u := range s.Turns {
				if u.Input > len(u.IDs)*tr.BlockSize || u.Input < 1 || u.Delay < 0 {
					t.Fatalf("turn %+v", u)
				}
			}
		}
	})
}
