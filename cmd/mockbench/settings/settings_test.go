package settings_test

import (
	"slices"
	"strings"
	"testing"

	"mockbench/cmd/mockbench/flags"
	"mockbench/cmd/mockbench/settings"
)

func noEnv(string) (string, bool) { return "", false }

func resolve(line string) (*settings.Settings, *flags.Values, error) {
	v, err := flags.Read(strings.Fields(line), noEnv)
	if err != nil {
		return nil, nil, err
	}
	s, err := settings.Resolve(v, noEnv, settings.Demo)
	return s, v, err
}

func TestWhatACommandLineMeans(t *testing.T) {
	for _, c := range []struct {
		line    string
		load    bool
		workers int
		blocks  int
	}{
		{"", true, 4, 896},
		{"--no-tui --duration 3s", true, 4, 896},
		{"--profile demo --num-workers 2 --num-gpu-blocks-override 64", true, 2, 64},
		{"--profile demo --discovery-backend file", false, 4, 896},
		{"--discovery-backend file", false, 1, 16384},
		{"--model-name x", false, 1, 16384},
	} {
		s, _, err := resolve(c.line)
		if err != nil {
			t.Errorf("%q: %v", c.line, err)
			continue
		}
		if (s.Load != nil) != c.load || s.Workers != c.workers || s.Launch.Engine.NumGPUBlocks != c.blocks {
			t.Errorf("%q: load %v, %d workers, %d blocks", c.line, s.Load != nil, s.Workers, s.Launch.Engine.NumGPUBlocks)
		}
	}
}

func TestPorts(t *testing.T) {
	for line, want := range map[string]string{
		"--num-workers 2 --data-parallel-size 4 --zmq-kv-events-ports 5557,5558":       "port 5558 is used twice",
		"--zmq-kv-events-ports 5557 --zmq-replay-ports 5557":                           "--zmq-kv-events-ports of worker 0 rank 0 and by --zmq-replay-ports",
		"--data-parallel-size 2 --zmq-kv-events-ports 65535":                           "got port 65536",
		"--num-workers 2 --data-parallel-size 2 --zmq-kv-events-ports 0,0":             "",
		"--num-workers 2 --data-parallel-size 2 --zmq-kv-events-ports 5557,5559":       "",
		"--num-workers 2 --zmq-kv-events-ports 5557,5558 --zmq-replay-ports 5559,5560": "",
	} {
		s, _, err := resolve(line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		err = s.CheckPorts()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", line, err, want)
		}
	}
}

// What an engine can do is not always what a live worker can.
func TestLiveLimits(t *testing.T) {
	for line, want := range map[string]string{
		"--discovery-backend mem --block-size 4294967295":                       "",
		"--discovery-backend mem --block-size 4294967296":                       "engine.block_size: got 4294967296",
		"--discovery-backend mem --max-num-seqs 18446744073709551615":           "engine.max_num_seqs: got no limit",
		"--discovery-backend mem --max-num-batched-tokens 18446744073709551615": "engine.max_num_batched_tokens: got no limit",
		"--discovery-backend mem --data-parallel-size 10000":                    "",
		"--discovery-backend mem --data-parallel-size 10001":                    "--data-parallel-size: got 1 workers with 10001 ranks",
		"--discovery-backend mem --num-workers 100 --data-parallel-size 101":    "--num-workers, --data-parallel-size: got 100 workers",
		"--discovery-backend mem --num-workers 10001":                           "got 10001 workers with 1 ranks",
		"--discovery-backend mem --data-parallel-size 2147483648":               "must be at most 10000 ranks",
	} {
		if _, _, err := resolve(line); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", line, err, want)
		}
	}
}

func TestRefusals(t *testing.T) {
	for line, want := range map[string]string{
		"--model-name x":                                        "",
		"--discovery-backend kubernetes":                        "",
		"--discovery-backend file --disaggregation-mode decode": "",
		"--discovery-backend file --is-prefill-worker":          "",
		"--profile demo --disaggregation-mode prefill":          "engine.worker_type: got prefill",
		"--discovery-backend file --response-plane quic":        "",
		"--discovery-backend file --event-plane nats":           "",
		"--discovery-backend file --disaggregation-mode agg":    "",
		"--discovery-backend mem --ais-system h100_sxm":         "",
	} {
		s, v, err := resolve(line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		err = settings.Refuse(v, s)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", line, err, want)
		}
	}
}

func TestWarnings(t *testing.T) {
	for line, want := range map[string]string{
		"--ais-system h100_sxm":  "--ais-system has no effect without --ais-perf-model",
		"--bootstrap-ports 9000": "no effect with role aggregated",
		"--bootstrap-ports 9000 --disaggregation-mode prefill --engine-type trtllm": "no effect with engine trtllm",
		"--zmq-kv-events-ports 1 --no-enable-prefix-caching":                        "publishes no KV events",
		"--profile demo --event-plane nats":                                         "no effect on a built-in load",
	} {
		s, _, err := resolve(line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if all := strings.Join(s.Warnings, "\n"); !strings.Contains(all, want) {
			t.Errorf("%s: warnings %q lack %q", line, all, want)
		}
	}
}

// The demonstration tells whoever has a backend in the environment that it does not register anywhere.
func TestDemonstrationIgnoresTheBackendOfTheEnvironment(t *testing.T) {
	env := func(name string) (string, bool) { return "file", name == "DYN_DISCOVERY_BACKEND" }
	for line, want := range map[string]int{"": 1, "--num-workers 2": 0} {
		v, err := flags.Read(strings.Fields(line), env)
		if err != nil {
			t.Fatal(err)
		}
		s, err := settings.Resolve(v, env, settings.Demo)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Warnings) != want || want == 1 && !strings.Contains(s.Warnings[0], "DYN_DISCOVERY_BACKEND=file has no effect") {
			t.Errorf("%q: got warnings %q", line, s.Warnings)
		}
	}
}

// A deprecated flag says what to use, by the spelling that was given.
func TestDeprecatedFlagsNameTheirReplacement(t *testing.T) {
	count := 0
	for _, f := range flags.All() {
		if f.ReplacedBy == "" {
			continue
		}
		for _, name := range slices.Concat([]string{f.Name}, f.Aliases, f.Off) {
			line := "--router-mode round-robin " + name
			switch {
			case len(f.Allowed) > 0:
				line += " " + f.Allowed[0]
			case f.Kind != flags.Switch:
				line += " 2"
			}
			s, _, err := resolve(line)
			if err != nil {
				t.Errorf("%s: %v", line, err)
				continue
			}
			count++
			if all := strings.Join(s.Deprecations, "\n"); !strings.Contains(all, name+" is deprecated") || !strings.Contains(all, f.ReplacedBy) {
				t.Errorf("%s: %q does not name %s and %s", line, all, name, f.ReplacedBy)
			}
		}
	}
	if count < 15 {
		t.Errorf("only %d deprecated spellings", count)
	}
}
