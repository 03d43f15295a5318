package settings

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mockbench/cmd/mockbench/flags"
	"mockbench/profiles"
)

func settingsOf(t *testing.T, args []string) *Settings {
	t.Helper()
	none := func(string) (string, bool) { return "", false }
	v, err := flags.Read(args, none)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Resolve(v, none, NoDemo)
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return s
}

// A command line that is made from settings gives the same settings.
func TestCommandLineGivesTheSettings(t *testing.T) {
	for _, line := range []string{
		"", "--num-workers 3", "--engine-type sglang --block-size 16 --sglang-schedule-policy lpm --sglang-chunked-prefill-size 4096",
		"--no-enable-prefix-caching --speedup-ratio 2.5 --max-model-len 5000", "--disaggregation-mode decode",
		"--num-host-blocks 64 --kv-bytes-per-token 512 --host-offload-h2d-bandwidth-gbps 0", "--kv-transfer-bandwidth 0",
		"--ais-nextn 2 --ais-nextn-accept-rates 0.5,0.25 --ais-mtp-seed 7", "--prefill-workers 2 --decode-workers 1",
		"--profile disagg --num-workers 2", "--profile disagg --decode-workers 4", "--profile trtllm --engine-type vllm --block-size 16",
		"--profile demo --slo ttft_ms=300,e2e_ms=5000.5", "--slo itl_ms=25",
		"--profile demo --num-gpu-blocks-override 512", "--profile mtp --ais-nextn 1 --ais-nextn-accept-rates 0.5", "--profile sglang-retraction --startup-time 0.5",
		`--reasoning {"start_thinking_token_id":3,"end_thinking_token_id":4,"thinking_ratio":0.5}`,
	} {
		s := settingsOf(t, strings.Fields(line))
		now := s.AsProfile()
		var base *profiles.Profile
		if s.Profile != "" {
			p, _, err := (profiles.Store{}).Open(s.Profile)
			if err != nil {
				t.Fatal(err)
			}
			base = p
		}
		args, rest := CommandLine(base, now)
		if len(rest) > 0 {
			t.Errorf("%s: no flags for %q", line, rest)
			continue
		}
		again := settingsOf(t, args).AsProfile()
		want, err := now.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := again.Encode(); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q differs: %v %s", line, args, err, cmp.Diff(string(want), string(got)))
		}
		if n := len(strings.Fields(line)); len(args) > n {
			t.Errorf("%s: %q says more than needed", line, args)
		}
	}
}

func TestSettingsWithoutFlagAreNamed(t *testing.T) {
	p, _, err := (profiles.Store{}).Open("g2-sizing")
	if err != nil {
		t.Fatal(err)
	}
	_, rest := CommandLine(nil, p)
	if want := []string{"engine.kv_cache_bytes_per_token", "load"}; !slices.Equal(rest, want) {
		t.Errorf("got %q, want %q", rest, want)
	}
}

func TestChangesOfALoadAreNamed(t *testing.T) {
	base, _, err := (profiles.Store{}).Open("routing-ab")
	if err != nil {
		t.Fatal(err)
	}
	load := *base.Load
	load.Rate, load.Router.Temperature, load.Routing = 3, 0.5, "random"
	now := *base
	now.Load = &load
	args, rest := CommandLine(base, &now)
	if want := []string{"load.rate", "load.routing", "load.router.router_temperature"}; len(args) != 2 || !slices.Equal(rest, want) {
		t.Errorf("got %q, and no flag for %q, want %q", args, rest, want)
	}
}

func TestShell(t *testing.T) {
	if got, want := Shell([]string{"--a", "b c", "", "it's", "--x={1}", "0.8,0.6"}), `--a 'b c' '' 'it'\''s' '--x={1}' 0.8,0.6`; got != want {
		t.Errorf("got %s", got)
	}
}
