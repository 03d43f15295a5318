package trace

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"mockbench/engine"
)

// FuzzRead reads arbitrary text as every form of trace. A trace that is accepted has what a replay relies on, and a
// stream of it gives the same requests.
func FuzzRead(f *testing.F) {
	for _, text := range []string{
		`{"timestamp": 0, "input_length": 5, "output_length": 3, "hash_ids": [1]}` + "\r\n" + `{"timestamp": 1, "output_length": 0, "hash_ids": [1, 2]}`,
		`{"session_id": "s", "timestamp": -1e300, "output_length": 2, "hash_ids": [7], "output_token_ids": [1, 2]}` + "\n" + `{"session_id": "s", "delay_ms": 3, "output_length": 0, "hash_ids": [7]}`,
		`{"schema":"dynamo.agentic_mooncake","version":2,"block_size":4,"hash_id_scope":"local","source":{"format":"x","digest":"y"}}` + "\n" +
			`{"request_id":"a","play_id":"p","session_id":"s","model":"m","input_length":3,"output_length":1,"hash_ids":[1],"not_before_ms":0,"dependencies":[]}`,
		`{"num_turns":1,"input_prompt_length":10,"assistant_response_length":[2],"tool_call_output_length":[3],"tool_call_latency":[0.5],"final_assistant_response_length":1}`,
		`{"id":"a","block_size":4,"hash_id_scope":"local","requests":[{"type":"n","t":0,"model":"w","in":6,"out":1,"hash_ids":[1]},{"type":"subagent","t":1,"agent_id":"g","status":"completed","requests":[{"type":"s","t":0.5,"model":"w","in":4,"out":1,"hash_ids":[9],"api_time":2}]},{"type":"n","t":3,"model":"w","in":6,"out":1,"hash_ids":[1,2]}]}`,
		`{"schema":"dynamo.request.trace.v1","event_type":"request_end","event_time_unix_ms":10,"request":{"request_id":"r","output_tokens":1,"request_received_ms":5,"total_time_ms":5,"replay":{"trace_block_size":4,"input_length":4,"input_sequence_hashes":[1]}}}`,
		"\xef\xbb\xbf{", "\x1f\x8b\x08",
	} {
		f.Add([]byte(text))
	}
	formats := []Format{Mooncake, MooncakeDelta, Agentic, Weka, Applied, Dynamo}
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "trace.jsonl")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, format := range formats {
			o := Options{Format: format, PrefixRatio: 0.5, PrefixGroups: 2}
			tr, err := Read([]string{path}, o)
			if err != nil {
				var line *LineError
				var wrong *engine.SettingError
				if errors.As(err, &line) && line.Line < 1 || errors.As(err, &wrong) && wrong.Setting == "" || err.Error() == "" {
					t.Errorf("%s: %#v", format, err)
				}
				continue
			}
			checkTrace(t, format, tr)
		}
		checkStream(t, path)
	})
}

func checkTrace(t *testing.T, format Format, tr *Trace) {
	t.Helper()
	if tr.Requests() == 0 || tr.BlockSize < 1 {
		t.Fatalf("%s: %d requests, blocks of %d tokens", format, tr.Requests(), tr.BlockSize)
	}
	check := func(u *Turn) {
		if u.Input < 1 || u.Output < 0 || u.Input > len(u.IDs)*tr.BlockSize {
			t.Fatalf("%s: a request of %d tokens in %d blocks of %d", format, u.Input, len(u.IDs), tr.BlockSize)
		}
		for _, id := range u.IDs {
			if int(id) >= tr.IDs {
				t.Fatalf("%s: id %d of %d", format, id, tr.IDs)
			}
		}
	}
	for i := range tr.Sessions {
		for k := range tr.Sessions[i].Turns {
			if format != MooncakeDelta || tr.Sessions[i].Turns[k].Input > 0 {
				check(&tr.Sessions[i].Turns[k])
			}
		}
	}
	if tr.Graph != nil {
		for i := range tr.Graph.Nodes {
			check(&tr.Graph.Nodes[i].Turn)
		}
	}
}

// checkStream compares a stream with the trace that was read as a whole.
func checkStream(t *testing.T, path string) {
	t.Helper()
	s := NewStream(path, 0, 1)
	var list []Request
	for until := 0.0; len(list) == 0 || !math.IsInf(until, 1); {
		batch, next, err := s.Next(1)
		if err != nil {
			return
		}
		for _, r := range batch {
			r.IDs = append([]uint32(nil), r.IDs...)
			list = append(list, r)
		}
		until = next
	}
	tr, err := s.ReadAll()
	if err != nil {
		t.Fatalf("a stream of %d requests cannot be read: %v", len(list), err)
	}
	if err := tr.Align(1); err != nil || !tr.List() || len(tr.Sessions) != len(list) {
		t.Fatalf("a stream of %d requests is a trace of %d sessions, %v", len(list), len(tr.Sessions), err)
	}
	for i, r := range list {
		u := &tr.Sessions[i].Turns[0]
		if r.Number != i || r.Arrival != tr.Sessions[i].Arrival || r.Input != u.Input || r.Output != u.Output || r.Plan != u.Plan ||
			len(r.IDs) != len(u.IDs) {
			t.Fatalf("request %d: %+v, want %+v", i, r, *u)
		}
		for k := range r.IDs {
			if r.IDs[k] != u.IDs[k] {
				t.Fatalf("request %d: ids %v, want %v", i, r.IDs, u.IDs)
			}
		}
	}
}
