package modelcard

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mockbench/engine"
)

func goldenDir() string {
	if root := os.Getenv("MOCKBENCH_GOLDEN"); root != "" {
		return filepath.Join(root, "discovery")
	}
	return filepath.Join("..", "..", "testdata", "golden", "discovery")
}

// cases reads one file of recorded cases; a file that is not there has none.
func cases[T any](t *testing.T, name string) []T {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(goldenDir(), name))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	var list []T
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return list
}

func TestGoldenDiscoverySlug(t *testing.T) {
	for _, c := range cases[struct {
		Name   string
		Input  struct{ Name string }
		Expect struct{ Slug string }
	}](t, "slug.json") {
		t.Run(c.Name, func(t *testing.T) {
			if got := Slug(c.Input.Name); got != c.Expect.Slug {
				t.Errorf("%q: got %q, want %q", c.Input.Name, got, c.Expect.Slug)
			}
		})
	}
}

func TestGoldenDiscoveryBlake3(t *testing.T) {
	for _, c := range cases[struct {
		Name   string
		Input  struct{ Text string }
		Expect struct {
			Checksum string
			Size     int64
		}
	}](t, "blake3.json") {
		t.Run(c.Name, func(t *testing.T) {
			sum, size, err := Checksum(strings.NewReader(c.Input.Text))
			if err != nil || sum != c.Expect.Checksum || size != c.Expect.Size {
				t.Errorf("%q: got %s of %d, %v", c.Input.Text, sum, size, err)
			}
		})
	}
}

// TestGoldenDiscoveryCard makes the card of each recorded registration from its flags and compares it whole.
func TestGoldenDiscoveryCard(t *testing.T) {
	for _, c := range cases[struct {
		Name  string
		Input struct {
			Flags string
			Env   map[string]string
		}
		Expect struct {
			Records []struct {
				Bucket string
				Value  struct {
					Card json.RawMessage `json:"card_json"`
				}
			}
		}
	}](t, "registration.json") {
		t.Run(c.Name, func(t *testing.T) {
			o, fill := options(t, c.Input.Flags, c.Input.Env)
			card, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(card)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range c.Expect.Records {
				if r.Bucket != "v1/mdc" {
					continue
				}
				if want := fill.Replace(string(r.Value.Card)); canonical(t, got) != canonical(t, []byte(want)) {
					t.Errorf("got  %s\nwant %s", canonical(t, got), canonical(t, []byte(want)))
				}
			}
		})
	}
}

// options turns recorded flags and variables into options, with the model files of the recording.
func options(t *testing.T, flags string, env map[string]string) (Options, *strings.Replacer) {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join(goldenDir(), "model"))
	if err != nil {
		t.Fatal(err)
	}
	args := strings.Fields(strings.ReplaceAll(flags, "Gen X", "Gen_X"))
	value := func(flag string) string {
		if i := slices.Index(args, flag); i >= 0 {
			return args[i+1]
		}
		return ""
	}
	backend := engine.Backend(value("--engine-type"))
	if backend == "" {
		backend = engine.VLLM
	}
	o := Options{Name: value("--model-name"), Engine: engine.DefaultConfig(backend), Ranks: 1, LocalIndexer: true,
		SGLangGenerate: slices.Contains(args, "--sglang-generate"), StableRoutingID: env["DYN_STABLE_ROUTING_ID"]}
	number := func(flag string, into func(int)) {
		if text := value(flag); text != "" {
			var n int
			if err := json.Unmarshal([]byte(text), &n); err != nil {
				t.Fatal(err)
			}
			into(n)
		}
	}
	number("--max-model-len", func(n int) { o.Engine.MaxModelLen = n })
	number("--max-num-seqs", func(n int) { o.Engine.MaxNumSeqs = uint64(n) })
	number("--max-num-batched-tokens", func(n int) { o.Engine.MaxNumBatchedTokens = uint64(n) })
	number("--num-gpu-blocks-override", func(n int) { o.Engine.NumGPUBlocks = n })
	number("--data-parallel-size", func(n int) { o.Ranks = n })
	number("--block-size", func(n int) { o.Engine.BlockSize = n })
	switch value("--disaggregation-mode") {
	case "prefill":
		o.Engine.Role = engine.PrefillRole
	case "decode":
		o.Engine.Role = engine.DecodeRole
	}
	number("--bootstrap-ports", func(n int) {
		host := env["DYN_HTTP_RPC_HOST"]
		if host == "" {
			host = "127.0.0.1"
		}
		o.Bootstrap = &Bootstrap{Host: host, Port: n}
	})
	if env["DYN_TOPOLOGY_ENABLED"] != "" {
		mount := t.TempDir()
		for name, text := range map[string]string{"zone": "us-east-1a\n", "rack": "r1", ".hidden": "x", "blank": " "} {
			if err := os.WriteFile(filepath.Join(mount, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		set := maps.Clone(env)
		set["DYN_TOPOLOGY_MOUNT_PATH"] = mount
		if o.Topology, err = ReadTopology(func(k string) string { return set[k] }); err != nil {
			t.Fatal(err)
		}
	}
	model := value("--model-path")
	snapshot := ""
	switch {
	case model == "${MODEL_DIR}":
		o.Model = Model{Dir: dir, Source: dir}
	case strings.HasPrefix(model, "$"):
		snapshot = hub(t, "acme/tiny-llm", dir).Dir
		o.Model = Model{Dir: snapshot, Source: snapshot}
	default:
		o.Model = hub(t, model, dir)
	}
	if env["DYN_SYSTEM_PORT"] != "" && env["DYN_SELF_HOST_METADATA"] == "" {
		name := o.Name
		if name == "" {
			name = o.Model.Source
		}
		o.SelfHost = "http://192.0.2.2:8116/v1/metadata/dynamo/backend/generate/" + Slug(name) + "/_base/"
	}
	return o, strings.NewReplacer("${MODEL_DIR}", dir, "${SNAPSHOT_DIR}", snapshot, "${SLUG_OF_MODEL_DIR}", Slug(dir),
		"${SYSTEM_HOSTPORT}", "192.0.2.2:8116")
}

// hub puts the recorded model into a hub cache and finds it there.
func hub(t *testing.T, id, dir string) Model {
	t.Helper()
	home := t.TempDir()
	repo := filepath.Join(home, "hub", "models--"+strings.ReplaceAll(id, "/", "--"))
	if err := os.MkdirAll(filepath.Join(repo, "refs"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(repo, "refs", "main"), []byte("abc\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(repo, "snapshots", "abc"), os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"chat_template.jinja": "{{ messages }}\n", "special_tokens_map.json": "{\"x\":1}\n",
		"vocab.txt": "v\n"} {
		if err := os.WriteFile(filepath.Join(repo, "snapshots", "abc", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m, err := Resolve(id, func(k string) string { return map[string]string{"HF_HOME": home}[k] })
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// canonical sorts object keys, and the lists whose order is free.
func canonical(t *testing.T, data []byte) string {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v map[string]any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	sortList := func(list any) {
		if l, ok := list.([]any); ok {
			slices.SortFunc(l, func(a, b any) int {
				x, _ := json.Marshal(a)
				y, _ := json.Marshal(b)
				return bytes.Compare(x, y)
			})
		}
	}
	sortList(v["extra_files"])
	if runtime, ok := v["runtime_config"].(map[string]any); ok {
		sortList(runtime["taints"])
	}
	out, _ := json.Marshal(v)
	return string(out)
}

func TestGoldenDiscoverySum(t *testing.T) {
	for _, c := range cases[struct {
		Name  string
		Input struct {
			CardJSON json.RawMessage `json:"card_json"`
		}
		Expect struct{ Mdcsum string }
	}](t, "mdcsum.json") {
		t.Run(c.Name, func(t *testing.T) {
			if got, err := Sum(c.Input.CardJSON); err != nil || got != c.Expect.Mdcsum {
				t.Errorf("got %s, %v, want %s", got, err, c.Expect.Mdcsum)
			}
		})
	}
}

func TestGoldenDiscoveryExtraFiles(t *testing.T) {
	for _, c := range cases[struct {
		Name   string
		Input  struct{ Directory []string }
		Expect map[string]json.RawMessage
	}](t, "extra-files.json") {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, name := range c.Input.Directory {
			text, err := os.ReadFile(filepath.Join(goldenDir(), "model", name))
			if err != nil {
				text = []byte("{}")
			}
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		card, err := New(Options{Model: Model{Dir: dir, Source: dir}, Engine: engine.DefaultConfig(engine.VLLM), Ranks: 1,
			SelfHost: "http://h/"})
		if err != nil {
			t.Fatal(err)
		}
		var got, want []string
		for _, f := range card.ExtraFiles {
			got = append(got, path.Base(f.Path))
		}
		if err := json.Unmarshal(c.Expect["extra_files"], &want); err != nil {
			t.Fatalf("%v in %s", err, c.Expect)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("got %v\nwant %v", got, want)
		}
	}
}
