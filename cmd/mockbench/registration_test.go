package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mockbench/transport/discovery"
	"mockbench/transport/embeddednats"
	"mockbench/transport/modelcard"
)

// record is one recorded discovery record.
type record struct {
	Bucket, Key string
	Value       any
}

// discoveryCases reads one file of recorded discovery cases; a file that is not there has none.
func discoveryCases[T any](t *testing.T, name string) (list []T, dir string) {
	t.Helper()
	root := filepath.Join("..", "..", "testdata", "golden")
	if set := os.Getenv("MOCKBENCH_GOLDEN"); set != "" {
		root = set
	}
	dir, err := filepath.Abs(filepath.Join(root, "discovery"))
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, name))
	if errors.Is(err, os.ErrNotExist) {
		return nil, dir
	}
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&list); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return list, dir
}

// words splits recorded flags as a shell does, quotes included.
func words(flags string) (list []string) {
	for _, w := range regexp.MustCompile(`'[^']*'|\S+`).FindAllString(flags, -1) {
		list = append(list, strings.Trim(w, "'"))
	}
	return list
}

// registered runs the program with recorded flags and variables until it has as many records as expected. It reports
// false if the program does not know a feature: then it says so by name, ends with status 1 and leaves no record.
func registered(t *testing.T, args []string, env map[string]string, expected int) (list []record, known bool) {
	t.Helper()
	root := t.TempDir()
	cmd := exec.Command("mockbench", append([]string{"--no-tui"}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "DYN_DISCOVERY_BACKEND=file", "DYN_FILE_KV=" + root}
	for k, v := range env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer func() {
		_ = cmd.Process.Signal(os.Interrupt)
		select {
		case <-ended:
		case <-time.After(30 * time.Second):
			_ = cmd.Process.Kill()
		}
	}()
	store, err := discovery.OpenFile(discovery.FileOptions{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close(t.Context())
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		list = records(t, store)
		switch {
		case len(list) >= expected:
			time.Sleep(50 * time.Millisecond) // for records that must not come
			return records(t, store), true
		case time.Now().After(deadline):
			t.Fatalf("%d records of %d", len(list), expected)
		}
		select {
		case err := <-ended:
			ended <- err
			text := said.String()
			if cmd.ProcessState.ExitCode() == 1 && strings.Contains(text, "not supported by this build") && len(list) == 0 {
				return nil, false
			}
			t.Fatalf("ended with %v and %d records:\n%s", err, len(list), text)
		default:
		}
	}
}

func records(t *testing.T, s discovery.Store) (list []record) {
	t.Helper()
	for _, bucket := range discovery.Buckets {
		all, err := s.List(t.Context(), bucket)
		if err != nil {
			t.Fatal(err)
		}
		for key, text := range all {
			d := json.NewDecoder(bytes.NewReader(text))
			d.UseNumber()
			r := record{Bucket: bucket, Key: key}
			if err := d.Decode(&r.Value); err != nil {
				t.Fatalf("%s: %v in %s", key, err, text)
			}
			list = append(list, r)
		}
	}
	return list
}

// values are what placeholders stood for: the same everywhere, but for publishers and ports of one record.
type values map[string]string

var placeholder = regexp.MustCompile(`\$\{([A-Z_]+)\}`)

// text compares a text that may hold placeholders.
func (v values) text(want, got string) bool {
	var pattern strings.Builder
	var names []string
	at := 0
	for _, m := range placeholder.FindAllStringSubmatchIndex(want, -1) {
		pattern.WriteString(regexp.QuoteMeta(want[at:m[0]]) + `([^/]+?)`)
		names = append(names, want[m[2]:m[3]])
		at = m[1]
	}
	m := regexp.MustCompile("^" + pattern.String() + regexp.QuoteMeta(want[at:]) + "$").FindStringSubmatch(got)
	if m == nil {
		return false
	}
	for i, name := range names {
		if known, ok := v[name]; ok && known != m[i+1] {
			return false
		}
		v[name] = m[i+1]
		if id, isHex := strings.CutSuffix(name, "_HEX"); isHex {
			n, err := strconv.ParseUint(m[i+1], 16, 64)
			decimal := strconv.FormatUint(n, 10)
			if known, ok := v[id+"_ID"]; err != nil || ok && known != decimal {
				return false
			}
			v[id+"_ID"] = decimal
		}
	}
	return true
}

// same compares a value and says where it differs.
func (v values) same(path string, want, got any) error {
	switch w := want.(type) {
	case map[string]any:
		g, _ := got.(map[string]any)
		for name := range g {
			if _, ok := w[name]; !ok {
				return fmt.Errorf("%s.%s is there and must not be", path, name)
			}
		}
		for name := range w {
			if _, ok := g[name]; !ok {
				return fmt.Errorf("%s.%s is missing", path, name)
			}
			if err := v.same(path+"."+name, w[name], g[name]); err != nil {
				return err
			}
		}
		return nil
	case []any:
		g, _ := got.([]any)
		if strings.HasSuffix(path, ".taints") || strings.HasSuffix(path, ".extra_files") {
			sortValues(w)
			sortValues(g)
		}
		if len(w) != len(g) {
			return fmt.Errorf("%s has %d elements, want %d", path, len(g), len(w))
		}
		for i := range w {
			if err := v.same(fmt.Sprintf("%s[%d]", path, i), w[i], g[i]); err != nil {
				return err
			}
		}
		return nil
	case json.Number:
		g, _ := got.(json.Number)
		x, xerr := w.Float64()
		y, yerr := g.Float64()
		if xerr == nil && yerr == nil && x == y {
			return nil
		}
	case string:
		if v.text(w, fmt.Sprint(got)) {
			return nil
		}
	default:
		if want == got {
			return nil
		}
	}
	return fmt.Errorf("%s is %v, want %v", path, got, want)
}

func sortValues(list []any) {
	file := func(v any) string {
		text, _ := json.Marshal(v)
		return string(text[bytes.LastIndexByte(text, '/')+1:])
	}
	slices.SortFunc(list, func(a, b any) int { return strings.Compare(file(a), file(b)) })
}

// compareRecords pairs every expected record with one that is there.
func compareRecords(t *testing.T, want, got []record) {
	t.Helper()
	all := values{}
	for _, w := range want {
		found := slices.IndexFunc(got, func(g record) bool {
			return g.Bucket == w.Bucket && values{}.text(w.Key, g.Key)
		})
		if found < 0 {
			t.Errorf("no record %s %s", w.Bucket, w.Key)
			continue
		}
		g := got[found]
		got = slices.Delete(got, found, found+1)
		for _, name := range []string{"PUBLISHER_ID", "PUBLISHER_HEX", "ZMQ_HOSTPORT"} {
			delete(all, name)
		}
		if !all.text(w.Key, g.Key) {
			t.Errorf("key %s, want %s with %v", g.Key, w.Key, all)
		}
		if err := all.same(w.Key, w.Value, g.Value); err != nil {
			t.Error(err)
		}
	}
	for _, g := range got {
		t.Errorf("record %s %s must not be there", g.Bucket, g.Key)
	}
}

// recordedHub makes a hub cache that holds the recorded model as acme/tiny-llm, with the additional files of the
// recording.
func recordedHub(t *testing.T, model string) (home, snapshot string) {
	t.Helper()
	home = t.TempDir()
	repo := filepath.Join(home, "hub", "models--acme--tiny-llm")
	snapshot = filepath.Join(repo, "snapshots", "abc")
	if err := os.CopyFS(snapshot, os.DirFS(model)); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(repo, "refs"), 0o700); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{"refs/main": "abc", "snapshots/abc/chat_template.jinja": "{{ messages }}\n",
		"snapshots/abc/special_tokens_map.json": "{\"x\":1}\n", "snapshots/abc/vocab.txt": "v\n"} {
		if err := os.WriteFile(filepath.Join(repo, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return home, snapshot
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// TestGoldenDiscoveryRegistration runs the program with each recorded command line: it writes the records that the
// reference wrote, and no other.
func TestGoldenDiscoveryRegistration(t *testing.T) {
	type c struct {
		Name  string
		Input struct {
			Flags string
			Env   map[string]string
		}
		Expect struct{ Records []record }
	}
	cases, dir := discoveryCases[c](t, "registration.json")
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			model := filepath.Join(dir, "model")
			home, snapshot := recordedHub(t, model)
			fill := strings.NewReplacer("${MODEL_DIR}", model, "${SNAPSHOT_DIR}", snapshot, "8114", freePort(t),
				"${SLUG_OF_MODEL_DIR}", modelcard.Slug(model))
			args := words(c.Input.Flags)
			for i := range args {
				args[i] = fill.Replace(args[i])
			}
			env := map[string]string{}
			for k, v := range c.Input.Env {
				env[k] = v
			}
			if env["HF_HOME"] != "" {
				env["HF_HOME"] = home
			}
			if env["DYN_SYSTEM_PORT"] != "" {
				env["DYN_SYSTEM_PORT"] = freePort(t)
			}
			if env["DYN_TOPOLOGY_MOUNT_PATH"] != "" {
				env["DYN_TOPOLOGY_MOUNT_PATH"] = topology(t)
			}
			if strings.Contains(c.Input.Flags, " nats") {
				b, err := embeddednats.Start(embeddednats.Options{})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(b.Close)
				env["NATS_SERVER"] = b.URL()
			}
			var want []record
			text, err := json.Marshal(c.Expect.Records)
			if err != nil {
				t.Fatal(err)
			}
			d := json.NewDecoder(strings.NewReader(strings.NewReplacer("${MODEL_DIR}", model, "${SNAPSHOT_DIR}", snapshot,
				"${SLUG_OF_MODEL_DIR}", modelcard.Slug(model)).Replace(string(text))))
			d.UseNumber()
			if err := d.Decode(&want); err != nil {
				t.Fatal(err)
			}
			if got, known := registered(t, args, env, len(want)); known {
				compareRecords(t, want, got)
			}
		})
	}
}

// topology makes the folder of a recorded topology.
func topology(t *testing.T) string {
	t.Helper()
	mount := t.TempDir()
	for domain, value := range map[string]string{"zone": "us-east-1a\n", "rack": "r1"} {
		if err := os.WriteFile(filepath.Join(mount, domain), []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return mount
}

// TestGoldenDiscoveryRouterConfig compares the router configuration in the card with the one that the same flags gave.
func TestGoldenDiscoveryRouterConfig(t *testing.T) {
	type c struct {
		Name   string
		Input  struct{ Flags string }
		Expect struct {
			Router any    `json:"router_config"`
			Error  string `json:"error_contains"`
		}
	}
	cases, dir := discoveryCases[c](t, "router-config.json")
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			args, env := words(c.Input.Flags), map[string]string{}
			if list, ok := strings.CutPrefix(c.Input.Flags, "(env "); ok {
				args = nil
				for _, pair := range words(strings.TrimSuffix(list, ")")) {
					name, value, _ := strings.Cut(pair, "=")
					env[name] = value
				}
			}
			args = append(args, "--model-path", filepath.Join(dir, "model"), "--model-name", "mock")
			if c.Expect.Error != "" || c.Expect.Router == nil {
				out, err := exec.Command("mockbench", append([]string{"--no-tui"}, args...)...).CombinedOutput()
				if err == nil || !bytes.HasPrefix(out, []byte("error: ")) {
					t.Errorf("got %v, %s, want a refusal", err, out)
				}
				return
			}
			list, known := registered(t, args, env, 8)
			if !known {
				t.Error("the flags of routing are not known")
			}
			for _, r := range list {
				if card, ok := r.Value.(map[string]any)["card_json"].(map[string]any); ok {
					if err := (values{}).same("router_config", c.Expect.Router, card["router_config"]); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
}
