package settings

import "testing"

func TestLineOf(t *testing.T) {
	const text = `{
  "engine": {
    "block_size": 8, "sglang": {
      "schedule_policy": "x"
    },
    "kv_cache_groups": [{"engine": 1},
      {"name": 2}]
  },
  "dp_size": 2,
  "dp_size": 0
}`
	for setting, want := range map[string]int{"engine": 2, "engine.block_size": 3, "engine.sglang.schedule_policy": 4,
		"engine.sglang.other": 3, "engine.kv_cache_groups.name": 7, "dp_size": 10, "dp": 0, "dynamo.reasoning": 0} {
		if got := lineOf([]byte(text), setting); got != want {
			t.Errorf("%s: line %d, want %d", setting, got, want)
		}
	}
	if got := lineOf([]byte("{\n\"a\": {\n\"b\": "), "a.b"); got != 3 {
		t.Errorf("a text that ends early: line %d", got)
	}
}
