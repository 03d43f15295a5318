package mocker_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mockbench/cmd/mocker"
	"mockbench/engine/goldentest"
	"mockbench/profiles"
)

type runtimeCase struct {
	Name  string
	Input struct {
		Config json.RawMessage
		Env    map[string]string
	}
	Expect struct {
		Class     string
		BlockSize int            `json:"kv_cache_block_size"`
		Runtime   map[string]any `json:"runtime_config"`
	}
}

// TestGoldenCliRuntimeConfig compares the runtime configurations of recorded engine configurations.
func TestGoldenCliRuntimeConfig(t *testing.T) {
	file, err := os.Open(filepath.Join(goldentest.Dir(t, "cli"), "runtime_config.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	count := 0
	for lines := bufio.NewScanner(file); lines.Scan(); count++ {
		var c runtimeCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		t.Run(c.Name, func(t *testing.T) { runtimeConfig(t, &c) })
	}
	if count == 0 {
		t.Fatal("no case")
	}
}

func runtimeConfig(t *testing.T, c *runtimeCase) {
	for name, value := range c.Input.Env {
		t.Setenv(name, value)
	}
	l, err := profiles.Normalize(c.Input.Config)
	if err != nil {
		t.Fatal(err)
	}
	size, r, err := mocker.RuntimeConfig(l)
	if (err != nil) != (c.Expect.Class == "config_error") {
		t.Fatalf("got %v, want %s", err, c.Expect.Class)
	}
	if err != nil {
		return
	}
	if size != c.Expect.BlockSize {
		t.Errorf("%d tokens a block, want %d", size, c.Expect.BlockSize)
	}
	want := c.Expect.Runtime
	endpoint := map[string]any{"bootstrap_host": want["bootstrap_host"], "bootstrap_port": want["bootstrap_port"]}
	data := want["runtime_data"].(map[string]any)
	for name, text := range data { // recorded as text
		data[name] = text == "true"
	}
	for name, value := range want {
		empty, isMap := value.(map[string]any)
		if value == nil || isMap && len(empty) == 0 {
			delete(want, name) // left out
		}
	}
	delete(want, "bootstrap_host")
	delete(want, "bootstrap_port")
	if endpoint["bootstrap_port"] != nil {
		want["disaggregated_endpoint"] = endpoint
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if got["disaggregated_endpoint"] != nil && want["disaggregated_endpoint"] == nil {
		t.Errorf("advertises %v", got["disaggregated_endpoint"])
	}
	for name := range want {
		if d := cmp.Diff(want[name], got[name]); d != "" {
			t.Errorf("%s:\n%s", name, d)
		}
	}
}
