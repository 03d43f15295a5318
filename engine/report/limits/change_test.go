package limits

import (
	"strings"
	"testing"
)

func TestRules(t *testing.T) {
	for _, c := range []struct {
		text string
		a, b run
		ok   bool
		says string
	}{
		{"ttft_ms.p99 +5%", run{100, 9}, run{105, 9}, true, "100 -> 105 (+5.0%) (9 samples)"},
		{"ttft_ms.p99 +5%", run{100, 9}, run{105.1, 9}, false, "+5.1%"},
		{"ttft_ms.p99 +5%", run{100, 9}, run{1, 9}, true, "-99.0%"},
		{"completed_requests -2", run{10, 0}, run{8, 0}, true, "10 -> 8"},
		{"completed_requests -2", run{10, 0}, run{7, 0}, false, "10 -> 7"},
		{"mean(itl) +-1%", run{-100, 1}, run{-102, 1}, false, "-2.0%"},
		{"mean(itl) +- 1%", run{-100, 1}, run{-99, 1}, true, ""},
		{"mean(itl) +0.5s", run{100, 1}, run{600, 1}, true, ""},
		{"mean(itl) +5%", run{0, 1}, run{0.1, 1}, false, "0 -> 0.1"},
		{"mean(itl) +5%", run{0, 1}, run{0, 1}, true, ""},
		{"p99(ttft) +5%", run{0, 0}, run{5, 1}, false, "first run: no samples (0 of 10 requests completed)"},
		{"p99(ttft) +5%", run{5, 1}, run{0, 0}, false, "second run: no samples"},
		{"p99(ttft) +5% optional", run{5, 1}, run{0, 0}, true, "second run: no samples"},
		{"prefix_cache_reused_ratio -0.1", run{5, 1}, run{5, 1}, false, "first run: this run has no such figure"},
		{"p99(ttft_ms) < 300", run{900, 1}, run{299, 1}, true, "299"},
		{"p99(ttft_ms) < 300", run{1, 1}, run{300, 1}, false, "300"},
	} {
		r, err := ParseRule(c.text, names)
		if err != nil {
			t.Fatal(err)
		}
		outcomes, ok := CheckRules([]Rule{r}, c.a, c.b)
		if ok != c.ok || !strings.Contains(outcomes[0].String(), c.says) {
			t.Errorf("%s of %+v and %+v: %s", c.text, c.a, c.b, outcomes[0])
		}
	}
}

func TestRulesRefused(t *testing.T) {
	for text, reason := range map[string]string{
		"p99(ttft_ms)":      "neither an operator nor a change",
		"p99(ttfb_ms) +5%":  "no metric",
		"p99(ttft_ms) +x%":  "no change",
		"p99(ttft_ms) -+5%": "no sign of a change",
		"p99(ttft_ms) +":    "no change",
		"p99(ttft_ms) < 5%": "not a number",
	} {
		if r, err := ParseRule(text, names); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%q: got %+v, %v, want a refusal about %s", text, r, err, reason)
		}
	}
}

func TestParseList(t *testing.T) {
	list, err := ParseList("ttft_p99<500ms, itl_p99<30ms", names)
	if err != nil || len(list) != 2 || list[1].Metric != "itl_ms" || list[1].Bound != 30 {
		t.Errorf("got %+v, %v", list, err)
	}
	if _, err := ParseList("ttft_p99<500ms,", names); err == nil {
		t.Error("an empty part is accepted")
	}
}

// A limit is lost when nothing that may still come can make it hold.
func TestLost(t *testing.T) {
	rising := names
	rising.Rising = []string{"completed_requests"}
	for _, c := range []struct {
		text            string
		run             run
		abortable, lost bool
	}{
		{"max(ttft_ms) < 300", run{300, 1}, true, true},
		{"max(ttft_ms) < 300", run{299, 1}, true, false},
		{"max(ttft_ms) < 300", run{0, 0}, true, false},
		{"max(ttft_ms) > 300", run{299, 1}, false, false},
		{"min(ttft_ms) >= 5", run{4, 1}, true, true},
		{"min(ttft_ms) == 5", run{4, 1}, true, true},
		{"min(ttft_ms) == 5", run{6, 1}, true, false},
		{"p99(ttft_ms) < 300", run{900, 1}, false, false},
		{"mean(ttft_ms) < 300", run{900, 1}, false, false},
		{"count(ttft_ms) <= 3", run{0, 4}, true, true},
		{"completed_requests == 3", run{4, 0}, true, true},
		{"completed_requests == 3", run{2, 0}, true, false},
		{"completed_requests >= 3", run{2, 0}, false, false},
	} {
		l, err := Parse(c.text, rising)
		if err != nil {
			t.Fatal(err)
		}
		if l.Abortable() != c.abortable || l.Lost(c.run) != c.lost {
			t.Errorf("%s at %+v: abortable %v, lost %v", c.text, c.run, l.Abortable(), l.Lost(c.run))
		}
		if _, any := FirstLost([]Limit{l}, c.run); any != c.lost {
			t.Errorf("%s is not found among the lost ones", c.text)
		}
	}
}
