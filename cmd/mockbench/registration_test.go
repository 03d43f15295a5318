package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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

// freePort returns a port that is free, as are those of three more ranks behind it. It lies below those that systems
// give to connections, so that nobody gets it by chance.
func freePort(t *testing.T) string {
	t.Helper()
	for range 100 {
		port := 10_000 + 4*rand.IntN(5_500)
		free := true
		for p := port; p < port+4 && free; p++ {
			l, err := net.Listen("tcp4", fmt.Sprintf(":%d", p))
			if free = err == nil; free {
				l.Close()
			}
		}
		if free {
			return strconv.Itoa(port)
		}
	}
	t.Fatal("no free ports found")
	return ""
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
			fill := strings.NewReplacer("${MODEL_DIR}", model, "${SNAPSHOT_DIR}", snapshot,
				"${SLUG_OF_MODEL_DIR}", modelcard.Slug(model))
			args := words(c.Input.Flags)
			for i := range args {
				if args[i] = fill.Replace(args[i]); i > 0 && args[i-1] == "--zmq-kv-events-ports" {
					args[i] = freePort(t)
				}
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

// TestDifferentModelAtTheSameEndpoint starts a second process with another model: it is refused, and the first stays.
func TestDifferentModelAtTheSameEndpoint(t *testing.T) {
	root := t.TempDir()
	store, err := discovery.OpenFile(discovery.FileOptions{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close(t.Context())
	e := discovery.Endpoint{Namespace: "dynamo", Component: "backend", Name: "generate"}
	if err := discovery.Publish(t.Context(), store, discovery.Model{Endpoint: e, ID: 1, Card: []byte(`{"display_name":"first"}`)}); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("mockbench", "--no-tui", "--model-name", "second")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "DYN_DISCOVERY_BACKEND=file", "DYN_FILE_KV=" + root}
	out, err := cmd.CombinedOutput()
	if err == nil || cmd.ProcessState.ExitCode() != 1 || !bytes.Contains(out, []byte(`the different model "first" is registered`)) {
		t.Errorf("got %v, %s", err, out)
	}
	if list := records(t, store); len(list) != 1 {
		t.Errorf("%d records are left, want the one that was there", len(list))
	}
}
