package settings_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"mockbench/cmd/mockbench/flags"
	"mockbench/cmd/mockbench/settings"
	"mockbench/profiles"
)

// oneLine checks an error that a person is to read.
func oneLine(t *testing.T, err error) {
	t.Helper()
	if text := err.Error(); text == "" || strings.ContainsAny(text, "\n\r") {
		t.Errorf("an error of no or more than one line: %q", text)
	}
}

// FuzzJSON reads engine configurations: what is wrong is said in one line, what is right has a canonical form that
// comes to the same.
func FuzzJSON(f *testing.F) {
	for _, text := range []string{
		"{}", `{"engine":{"backend":"sglang","block_size":16},"dp_size":2}`, `{"engine":{"num_gpu_blocks":18446744073709551615}}`,
		`{"engine":{"aic_nextn":2,"aic_nextn_accept_rates":"0.5, .25"}}`, `{"engine":{"block_size":8},"engine":{}}`,
		`{"engine":{"timing_model":{"type":"fixed","prefill_ms":1e0,"decode_ms":-0.0}}}`,
		`{"dynamo":{"reasoning":{"start_thinking_token_id":1,"end_thinking_token_id":2,"thinking_ratio":0.5,"x":[{}]}}}`,
		"{\"a\nb\":1}", "\xef\xbb\xbf{}", `{"engine":{"block_size":8,}}`, "{'a':1}", "[1,2]", `{"a":` + strings.Repeat("[", 100),
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := settings.CheckJSON("engine.json", text); err != nil {
			oneLine(t, err)
			return
		}
		o, err := profiles.ParseJSON("engine.json", text)
		if err != nil {
			t.Fatal(err)
		}
		l, err := profiles.Resolve(o)
		if err != nil {
			t.Fatal(err)
		}
		first, err := json.Marshal(l.Canonical())
		if err != nil {
			t.Fatal(err)
		}
		again, err := profiles.Resolve(l.Canonical())
		if err != nil {
			t.Fatalf("the canonical form %s is refused: %v", first, err)
		}
		if second, _ := json.Marshal(again.Canonical()); string(first) != string(second) {
			t.Errorf("canonical form: first %s, then %s", first, second)
		}
	})
}

// FuzzTOML reads profiles: what is wrong is said in one line.
func FuzzTOML(f *testing.F) {
	for _, name := range profiles.Names() {
		text, _, err := (profiles.Store{}).Read(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	for _, text := range []string{"", "workers = 0", "[engine]\nblock_size = 1e9", "engine.block_size = 16\n[engine]\nblock_size = 8", "a.\"b.c\" = 1",
		"workers = 2\n[[engine]]\n", "description = \"\"\"\na\nb\"\"\"", "x = 1979-05-27", "\xef\xbb\xbfworkers = 2", "\"a\\nb\" = 1"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := profiles.Parse("mine.toml", text)
		if err != nil {
			oneLine(t, err)
			return
		}
		if p.Workers < 1 || p.Launch == nil {
			t.Errorf("%d workers", p.Workers)
		}
	})
}

// listFlags are the flags whose value is a list or a structure.
var listFlags = []string{"--bootstrap-ports", "--zmq-kv-events-ports", "--zmq-replay-ports", "--ais-nextn-accept-rates", "--reasoning",
	"--router-conditional-disagg-config", "--ais-perf-config"}

// FuzzLists gives lists to flags: no value is taken for another flag's, what is wrong is said in one line that names
// the flag, and ports are as many as workers.
func FuzzLists(f *testing.F) {
	for i := range listFlags {
		for _, text := range []string{"", "9001", "9001,", " 9001 , 9_002", ",", "70000", "-1", "1,2,3", "0.5,1e-1", "nan", "{}", "null", "{x",
			`{"policy":"isl_bounding"}`, `{"start_thinking_token_id":1,"end_thinking_token_id":2,"thinking_ratio":1}`, "a\nb", "\xff"} {
			f.Add(i, text)
		}
	}
	f.Fuzz(func(t *testing.T, which int, text string) {
		name := listFlags[uint(which)%uint(len(listFlags))]
		if name == "--ais-perf-config" && !strings.HasPrefix(strings.TrimSpace(text), "{") {
			return // the name of a file
		}
		args := []string{"--router-mode", "kv", "--router-conditional-disagg", "--data-parallel-size", "1", name + "=" + text}
		switch name {
		case "--zmq-replay-ports":
			args = append(args, "--zmq-kv-events-ports=1")
		case "--ais-nextn-accept-rates":
			args = append(args, "--ais-nextn=2")
		}
		v, err := flags.Read(args, noEnv)
		if err != nil {
			t.Fatalf("a text that is given with = is taken as it is: %v", err)
		}
		s, err := settings.Resolve(v, noEnv, settings.NoDemo)
		if err != nil {
			oneLine(t, err)
			if usage := (*flags.UsageError)(nil); !errors.As(err, &usage) && name != "--ais-perf-config" &&
				!strings.Contains(err.Error(), name) && !strings.Contains(err.Error(), "conditional_disagg") && !strings.Contains(err.Error(), "accept_rates") {
				t.Errorf("the error does not name %s: %v", name, err)
			}
			return
		}
		for _, ports := range [][]int64{s.Ports.Bootstrap, s.Ports.ZMQEvents, s.Ports.ZMQReplay} {
			if len(ports) != 0 && len(ports) != s.Workers {
				t.Errorf("%d ports for %d workers", len(ports), s.Workers)
			}
		}
	})
}
