package modelcard_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"mockbench/engine"
	"mockbench/transport/modelcard"
)

func ExampleNewRuntime() {
	c := engine.DefaultConfig(engine.VLLM)
	c.Role = engine.PrefillRole
	r := modelcard.NewRuntime(modelcard.Options{Engine: c, Ranks: 2, LocalIndexer: true,
		Bootstrap: &modelcard.Bootstrap{Host: "192.0.2.10", Port: 8998}})
	fmt.Println(r.TotalKVBlocks, "blocks on each of", r.Ranks, "ranks, KV events:", r.KVEvents)
	fmt.Println(r.Bootstrap.Host, r.Bootstrap.Port)
	// Output:
	// 16384 blocks on each of 2 ranks, KV events: true
	// 192.0.2.10 8998
}

func ExamplePrefetch() {
	nowhere := func(string) string { return filepath.Join(os.TempDir(), "no", "such", "cache") }
	path, err := modelcard.Prefetch(".", nowhere)
	fmt.Println(path, err)
	path, err = modelcard.Prefetch("org/model", nowhere)
	fmt.Println(path, err != nil)
	// Output:
	// . <nil>
	// org/model true
}

func TestPrefetch(t *testing.T) {
	cache := t.TempDir()
	getenv := func(name string) string { return map[string]string{"HF_HUB_CACHE": cache}[name] }
	snapshot := filepath.Join(cache, "models--org--model", "snapshots", "abc")
	refs := filepath.Join(cache, "models--org--model", "refs")
	for _, dir := range []string{snapshot, refs} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(refs, "main"), []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := modelcard.Prefetch("org/model", getenv); got != snapshot || err != nil {
		t.Errorf("a model in the cache: got %s, %v", got, err)
	}
	file := filepath.Join(refs, "main")
	if got, err := modelcard.Prefetch(file, getenv); got != file || err != nil {
		t.Errorf("an existing file: got %s, %v", got, err)
	}
	for _, path := range []string{"org/other", "/no/such/folder", ""} {
		if got, err := modelcard.Prefetch(path, getenv); got != path || err == nil {
			t.Errorf("%q: got %q, %v", path, got, err)
		}
	}
}
