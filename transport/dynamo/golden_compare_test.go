package dynamo

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mockbench/transport/requestplane"
	"mockbench/transport/requestplane/planetest"
)

// compare expects the recorded messages. Random tokens need only be in their range.
func compare(t *testing.T, fill *strings.Replacer, codec requestplane.Codec, got []planetest.Message, want expectation) {
	t.Helper()
	if want.Cut && len(got) > len(want.Frames) {
		const tail = 3 // the final frame, the end of the answer and the sentinel
		head := len(want.Frames) - tail
		got = append(got[:head:head], got[len(got)-tail:]...)
	}
	for i := range max(len(got), len(want.Frames)) {
		switch {
		case i >= len(got):
			t.Fatalf("message %d is missing, want %v", i, want.Frames[i])
		case i >= len(want.Frames):
			t.Fatalf("message %d is too much: %q", i, got[i])
		case want.Frames[i].Header != nil:
			if h := fill.Replace(*want.Frames[i].Header); string(got[i].Header) != h {
				t.Errorf("message %d:\ngot  %s\nwant %s", i, got[i].Header, h)
			}
		default:
			var v any
			if err := codec.Unmarshal(got[i].Body, &v); err != nil {
				t.Fatalf("message %d: %v", i, err)
			}
			wanted, got := settled(t, want.Frames[i].Payload), settled(t, v)
			settleDetail(wanted, got)
			if d := cmp.Diff(wanted, got); d != "" {
				t.Errorf("message %d: -want +got\n%s", i, d)
			}
		}
	}
}

// settled gives a frame a form in which equal frames are equal: numbers of one type, random tokens by their range, and
// no count of cached tokens, which depends on what was asked before.
func settled(t *testing.T, v any) any {
	t.Helper()
	frame := plainJSON(t, v)
	data := frame
	for range 2 {
		m, _ := data.(map[string]any)
		data = m["data"]
	}
	if m, ok := data.(map[string]any); ok {
		settleTokens(m["token_ids"])
		if m["engine_data"] != nil {
			m["engine_data"] = "depends on the token" // the formula has cases of its own
		}
		if u, ok := m["completion_usage"].(map[string]any); ok {
			u["prompt_tokens_details"].(map[string]any)["cached_tokens"] = "any"
		}
	}
	return frame
}

// settleDetail makes two error texts equal that name the same check and differ in how they explain it.
func settleDetail(want, got any) {
	const check = "invalid extra_args.sglang_tito: "
	texts := func(v any) map[string]any {
		m, _ := v.(map[string]any)
		m, _ = m["data"].(map[string]any)
		m, _ = m["error"].(map[string]any)
		return m
	}
	w, g := texts(want), texts(got)
	for _, key := range []string{"message", "diagnostic"} {
		a, _ := w[key].(string)
		b, _ := g[key].(string)
		if strings.HasPrefix(a, check) && strings.HasPrefix(b, check) {
			w[key], g[key] = check, check
		}
	}
}

func settleTokens(v any) {
	list, _ := v.([]any)
	for i, id := range list {
		n, number := id.(float64)
		_, text := id.(string)
		if text || number && n >= 1000 && n < 2000 {
			list[i] = "random"
		}
	}
}
