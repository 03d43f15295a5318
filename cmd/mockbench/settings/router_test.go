package settings_test

import (
	"slices"
	"strings"
	"testing"
)

// Every number that a card advertises is refused outside its range, and only then: without a mode, or for values of kv in
// another mode, nobody looks.
func TestRangesOfRouterFlags(t *testing.T) {
	for _, c := range []struct {
		flag      string
		good, bad []string
		anyMode   bool
	}{
		{"--router-session-affinity-ttl-secs", []string{"1", "31536000"}, []string{"0", "-1", "31536001"}, true},
		{"--active-decode-blocks-threshold", []string{"0", "0.5", "1", "None"}, []string{"-0.1", "1.1", "nan"}, true},
		{"--active-prefill-tokens-threshold", []string{"0", "10", "None"}, []string{"-1"}, true},
		{"--active-prefill-tokens-threshold-frac", []string{"0", "1.5", "None"}, []string{"-0.1"}, true},
		{"--router-kv-overlap-score-credit", []string{"0", "2"}, []string{"-1", "inf"}, false},
		{"--router-kv-overlap-score-credit-decay", []string{"0", "2"}, []string{"-1", "nan"}, false},
		{"--router-kv-overlap-score-weight", []string{"0", "2"}, []string{"-1"}, false},
		{"--router-prefill-load-scale", []string{"0", "2"}, []string{"-1"}, false},
		{"--router-decode-active-request-weight", []string{"0", "2"}, []string{"-1"}, false},
		{"--router-host-cache-hit-weight", []string{"0", "1"}, []string{"-0.1", "1.1"}, false},
		{"--router-disk-cache-hit-weight", []string{"0", "1"}, []string{"-0.1", "1.1"}, false},
		{"--router-temperature", []string{"0", "0.7"}, []string{"-1"}, false},
		{"--router-queue-threshold", []string{"0", "2", "None"}, []string{"-1"}, false},
		{"--router-event-threads", []string{"1", "8"}, []string{"0", "-1"}, false},
		{"--shared-cache-multiplier", []string{"0", "1"}, []string{"-0.1", "1.1"}, false},
	} {
		other := "--router-mode round-robin "
		for _, v := range c.good {
			if _, _, err := resolve("--router-mode kv " + c.flag + "=" + v); err != nil {
				t.Errorf("%s=%s: %v", c.flag, v, err)
			}
		}
		for _, v := range c.bad {
			given := c.flag + "=" + v
			if _, _, err := resolve("--router-mode kv " + given); err == nil || !strings.Contains(err.Error(), c.flag[len("--"):]) &&
				!strings.Contains(err.Error(), "prefill-load-scale") {
				t.Errorf("%s: got %v", given, err)
			}
			if _, _, err := resolve(other + given); (err != nil) != c.anyMode {
				t.Errorf("%s with another mode: got %v", given, err)
			}
			if s, _, err := resolve(given); err != nil || s.Router != nil {
				t.Errorf("%s without a mode: got %v, %v", given, s, err)
			}
		}
	}
}

// Switches and words of the router reach the card.
func TestRouterFlagsReachTheCard(t *testing.T) {
	for line, want := range map[string]any{
		"--router-kv-events router_config.use_kv_events":               true,
		"--no-router-kv-events use_kv_events":                          false,
		"--no-kv-events use_kv_events":                                 false,
		"--router-replica-sync router_replica_sync":                    true,
		"--no-router-track-active-blocks router_track_active_blocks":   false,
		"--track-output-blocks router_track_output_blocks":             true,
		"--no-assume-kv-reuse router_assume_kv_reuse":                  false,
		"--no-router-track-prefill-tokens router_track_prefill_tokens": false,
		"--use-remote-indexer use_remote_indexer":                      true,
		"--enable-session-prefix-index enable_session_prefix_index":    true,
		"--router-prefill-load-model=ais router_prefill_load_model":    "aic",
		"--shared-cache-type=hicache shared_cache_type":                "hicache",
		"--router-queue-policy=wspt router_queue_policy":               "wspt",
	} {
		words := strings.Fields(line)
		s, _, err := resolve("--router-mode kv " + words[0])
		if err != nil {
			t.Errorf("%s: %v", words[0], err)
			continue
		}
		path := "kv_router_config." + strings.TrimPrefix(words[1], "router_config.")
		if got, ok := s.Router.Card().Get(path); !ok || got != want {
			t.Errorf("%s: %s is %v, want %v", words[0], path, got, want)
		}
	}
}

// Flags that a policy file replaces say so, by the spelling that was used.
func TestDeprecatedRouterFlags(t *testing.T) {
	for _, given := range []string{"--load-aware", "--no-load-aware", "--router-kv-overlap-score-credit=1", "--router-kv-overlap-score-credit-decay=0",
		"--router-kv-overlap-score-weight=1", "--kv-overlap-score-weight=1", "--router-prefill-load-scale=1", "--router-decode-active-request-weight=0",
		"--router-temperature=0", "--router-queue-threshold=1", "--router-prefill-policy=default", "--router-decode-policy=default",
		"--router-queue-policy=fcfs", "--shared-cache-multiplier=0.5"} {
		s, _, err := resolve("--router-mode kv " + given)
		if err != nil {
			t.Errorf("%s: %v", given, err)
			continue
		}
		name, _, _ := strings.Cut(given, "=")
		if !slices.ContainsFunc(s.Deprecations, func(note string) bool {
			return strings.HasPrefix(note, name+" is deprecated and will be removed in v1.7; use ")
		}) {
			t.Errorf("%s: notes are %q", given, s.Deprecations)
		}
	}
}
