package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"mockbench/cmd/mockbench/flags"
	"mockbench/transport/discovery"
	"mockbench/transport/modelcard"
)

// processCase is one recorded start of the reference's program.
type processCase struct {
	Name  string
	Input struct {
		Argv  []string
		Env   map[string]string
		Files map[string]string

		Signal string
		Second string `json:"second_signal"`
	}
	Expect processOutcome
}

type processOutcome struct {
	Class         string
	Status        int            `json:"exit_code"`
	StatusTERM    int            `json:"exit_code_after_sigterm"`
	Stdout        string         `json:"stdout"`
	Registrations []registration `json:"registrations"`
	Sources       int            `json:"kv_event_sources"`
	Notes         []string       `json:"warnings_shown"`
}

// registration is what is recorded of a worker's card.
type registration struct {
	Namespace   string     `json:"namespace"`
	Component   string     `json:"component"`
	Endpoint    string     `json:"endpoint"`
	DisplayName string     `json:"display_name"`
	Slug        string     `json:"slug"`
	ModelType   string     `json:"model_type"`
	WorkerType  string     `json:"worker_type"`
	Needs       [][]string `json:"needs"`
	BlockSize   int        `json:"kv_cache_block_size"`
	Context     int        `json:"context_length"`
	Runtime     any        `json:"runtime_config"`
	Router      any        `json:"router_config"`
}

// refused are starts that the reference accepts although the worker then does not do what was asked for.
var refused = map[string]string{
	"zmq_dup":         "--zmq-kv-events-ports",
	"zmq_replay_same": "--zmq-kv-events-ports",
	"cluster_shared":  "engine.native_host_offload.scope",
	"ep_unicode":      "--endpoint",
}

// TestGoldenCli starts the program with each recorded command line and compares what it registers, and how it ends.
func TestGoldenCli(t *testing.T) {
	root := filepath.Join("..", "..", "testdata", "golden")
	if set := os.Getenv("MOCKBENCH_GOLDEN"); set != "" {
		root = set
	}
	f, err := os.Open(filepath.Join(root, "cli", "process.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	count := 0
	for ; lines.Scan(); count++ {
		var c processCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		t.Run("process/"+c.Name, func(t *testing.T) { t.Parallel(); c.run(t) })
	}
	if count == 0 || lines.Err() != nil {
		t.Fatalf("%d cases, %v", count, lines.Err())
	}
}

// golden is one started program.
type golden struct {
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer // complete when it has ended
	kv             string       // root of file discovery
	ended          chan struct{}
}

func (c *processCase) run(t *testing.T) {
	p, fill := c.start(t)
	defer func() { _ = p.cmd.Process.Kill(); <-p.ended }()
	if name, ok := refused[c.Name]; ok {
		p.ends(t, 1)
		if !strings.Contains(p.stderr.String(), name) {
			t.Errorf("the refusal does not name %s: %s", name, &p.stderr)
		}
		return
	}
	switch c.Expect.Class {
	case "exit_ok", "usage_error", "config_error":
		p.ends(t, c.Expect.Status)
		if got := strings.TrimSpace(p.stdout.String()); got != c.Expect.Stdout {
			t.Errorf("stdout: got %q, want %q", got, c.Expect.Stdout)
		}
		last := p.stderr.String()[strings.LastIndexByte(strings.TrimSpace(p.stderr.String()), '\n')+1:]
		if c.Expect.Status != 0 && !strings.Contains(last, "error: ") {
			t.Errorf("the last line is no error: %q", last)
		}
	case "runs":
		c.compare(t, fill, p.registers(t, len(c.Expect.Registrations), c.Expect.Sources))
		c.signal(t, p, "SIGTERM")
		p.ends(t, c.Expect.StatusTERM)
	case "signal_exit":
		p.registers(t, 1, 1)
		c.signal(t, p, c.Input.Signal)
		if c.Input.Second == "" {
			p.ends(t, c.Expect.Status)
			break
		}
		c.signal(t, p, c.Input.Second)
		<-p.ended // the first signal may have ended it before the second came
		if status := p.status(); status != c.Expect.Status && status != 0 {
			t.Errorf("exit status %d, want %d or 0", status, c.Expect.Status)
		}
	default:
		t.Fatalf("unknown class %q", c.Expect.Class)
	}
	if left := files(t, p.kv); len(left) > 0 && !slices.Contains(refusedSignals, p.status()) {
		t.Errorf("discovery files are left: %q", left)
	}
	for _, note := range c.Expect.Notes {
		if !strings.Contains(p.stderr.String(), note) {
			t.Errorf("no note %q in %s", note, &p.stderr)
		}
	}
}

// refusedSignals are statuses of a process that died of a second signal: what it had no time for is left to leases.
var refusedSignals = []int{-int(syscall.SIGTERM), -int(syscall.SIGINT)}

var portFlag = regexp.MustCompile(`^--(bootstrap|zmq-kv-events|zmq-replay)-ports$`)

// start starts the program with ports that are free here in place of the recorded ones.
func (c *processCase) start(t *testing.T) (p *golden, fill *strings.Replacer) {
	t.Helper()
	dir := t.TempDir()
	_, data := discoveryCases[any](t, "blake3.json")
	model := filepath.Join(data, "model")
	fill = strings.NewReplacer("@DIR@", dir, "@MODEL@", model, "tmp_model", modelcard.Slug(model))
	for name, text := range c.Input.Files {
		data, err := bytesOfFile(fill.Replace(text))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ports := map[string]string{}
	free := func(text string) string {
		list := strings.Split(text, ",")
		for i, port := range list {
			if len(port) != 5 || port[0] != '2' {
				continue // not one of the recorded ports
			}
			if ports[port] == "" {
				ports[port] = freePort(t)
			}
			list[i] = ports[port]
		}
		return strings.Join(list, ",")
	}
	args := []string{"--no-tui"}
	for i, a := range c.Input.Argv {
		if i > 0 && portFlag.MatchString(c.Input.Argv[i-1]) {
			a = free(a)
		}
		args = append(args, fill.Replace(a))
	}
	if c.Expect.Class == "exit_ok" || c.Expect.Class == "usage_error" {
		args = args[1:] // as it was recorded
	}
	p = &golden{cmd: exec.Command("mockbench", args...), kv: t.TempDir(), ended: make(chan struct{})}
	p.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "DYN_FILE_KV=" + p.kv, "HF_HUB_OFFLINE=1"}
	for k, v := range c.Input.Env {
		if k == "DYN_SYSTEM_PORT" {
			v = freePort(t)
		}
		p.cmd.Env = append(p.cmd.Env, k+"="+v)
	}
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	return p, fill
}

func bytesOfFile(text string) ([]byte, error) {
	if digits, ok := strings.CutPrefix(text, "hex:"); ok {
		var data []byte
		_, err := fmt.Sscanf(digits, "%x", &data)
		return data, err
	}
	return []byte(text), nil
}

func (c *processCase) signal(t *testing.T, p *golden, name string) {
	t.Helper()
	s := map[string]os.Signal{"SIGTERM": syscall.SIGTERM, "SIGINT": syscall.SIGINT}[name]
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
}

// ends waits for the end and checks the status.
func (p *golden) ends(t *testing.T, want int) {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(60 * time.Second):
		t.Fatal("does not end")
	}
	if got := p.status(); got != want {
		t.Fatalf("exit status %d, want %d:\n%s", got, want, &p.stderr)
	}
}

// status is negative for a process that died of a signal.
func (p *golden) status() int {
	w, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && w.Signaled() {
		return -int(w.Signal())
	}
	return p.cmd.ProcessState.ExitCode()
}

// outcome is what is found in discovery.
type outcome struct {
	cards   []registration
	sources int
}

// registers waits until so many workers and sources of events are in discovery. Where none will be, it waits for a
// moment in which the program could fail.
func (p *golden) registers(t *testing.T, workers, sources int) (o outcome) {
	t.Helper()
	if workers == 0 {
		select {
		case <-p.ended:
			t.Fatalf("ended with status %d:\n%s", p.status(), &p.stderr)
		case <-time.After(time.Second):
		}
		return o
	}
	store, err := discovery.OpenFile(discovery.FileOptions{Root: p.kv})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close(t.Context())
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		o = outcome{}
		endpoints := 0
		for _, r := range records(t, store) {
			text, err := json.Marshal(r.Value)
			if err != nil {
				t.Fatal(err)
			}
			var v struct {
				registration
				Type string
				Card *registration `json:"card_json"`
			}
			if err := json.Unmarshal(text, &v); err != nil {
				t.Fatal(err)
			}
			switch {
			case v.Card != nil:
				v.Card.Namespace, v.Card.Component, v.Card.Endpoint = v.Namespace, v.Component, v.Endpoint
				o.cards = append(o.cards, *v.Card)
			case v.Type == "EventSource":
				o.sources++
			case v.Type == "Endpoint" && !strings.HasPrefix(v.Endpoint, "worker_kv_query"):
				endpoints++
			}
		}
		if len(o.cards) >= workers && endpoints >= workers && o.sources >= sources {
			return o
		}
		select {
		case <-p.ended:
			t.Fatalf("ended with status %d and %d workers:\n%s", p.status(), len(o.cards), &p.stderr)
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d workers and %d sources registered, want %d and %d", len(o.cards), o.sources, workers, sources)
		}
	}
}

// compare compares cards. Of the runtime configuration only some keys are recorded.
func (c *processCase) compare(t *testing.T, fill *strings.Replacer, got outcome) {
	t.Helper()
	if len(c.Expect.Registrations) == 0 {
		return
	}
	if got.sources != c.Expect.Sources {
		t.Errorf("%d sources of KV events, want %d", got.sources, c.Expect.Sources)
	}
	if len(got.cards) != len(c.Expect.Registrations) {
		t.Errorf("%d workers, want %d", len(got.cards), len(c.Expect.Registrations))
	}
	for _, want := range c.Expect.Registrations {
		text := fill.Replace(asText(want))
		if !slices.ContainsFunc(got.cards, func(g registration) bool {
			recorded, _ := want.Runtime.(map[string]any)
			have, _ := g.Runtime.(map[string]any)
			for key := range have {
				if _, ok := recorded[key]; !ok {
					delete(have, key)
				}
			}
			return asText(g) == text
		}) {
			t.Errorf("no worker like\n%s, there are\n%s", text, asText(got.cards))
		}
	}
}

func asText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// files lists the discovery files below a folder.
func files(t *testing.T, root string) (list []string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(root, "v1", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		if !strings.HasPrefix(filepath.Base(name), ".") {
			list = append(list, name)
		}
	}
	return list
}

// The version of the reference is part of the recorded cases.
func TestVersion(t *testing.T) {
	if flags.VersionText != "Dynamo Mocker 1.6.1\n" {
		t.Error(flags.VersionText)
	}
}
