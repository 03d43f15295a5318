package settings_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mockbench/cmd/mockbench/flags"
	"mockbench/cmd/mockbench/settings"
	"mockbench/engine"
	"mockbench/profiles"
	"mockbench/profiles/kvbytes"
)

// goldenCase is one recorded case; number texts are kept, so that 64-bit values survive.
type goldenCase struct {
	Name   string
	Input  map[string]any
	Expect map[string]any
	text   []byte // the line itself, for what depends on the order of keys
}

// golden reads the cases of one file of the command line area, gzipped or not.
func golden(t *testing.T, file string) []goldenCase {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "testdata", "golden")
	if env := os.Getenv("MOCKBENCH_GOLDEN"); env != "" {
		dir = env
	}
	path := filepath.Join(dir, "cli", file)
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		data = unzip(t, path+".gz")
	} else if err != nil {
		t.Fatal(err)
	}
	var cases []goldenCase
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c goldenCase
		d := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		d.UseNumber()
		if err := d.Decode(&c); err != nil {
			t.Fatal(err)
		}
		c.text = slices.Clone(lines.Bytes())
		cases = append(cases, c)
	}
	if len(cases) == 0 {
		t.Fatalf("%s holds no case", path)
	}
	return cases
}

func unzip(t *testing.T, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestGoldenCli(t *testing.T) {
	for file, check := range map[string]func(*testing.T, goldenCase){
		"reasoning_tokens": reasoningTokens, "runtime_config": runtimeConfig, "profile_convert": profileConvert,
		"port_list": portList, "stagger": stagger, "launch_plan": launchPlan, "kv_bytes": kvBytes,
		"normalize": normalize, "worker_overrides": overrides, "cli_parse": parse,
		"ais_config": parse,
	} {
		for _, c := range golden(t, file+".jsonl") {
			t.Run(file+"/"+c.Name, func(t *testing.T) { check(t, c) })
		}
	}
}

func portList(t *testing.T, c goldenCase) {
	text, _ := c.Input["text"].(string)
	ports, err := settings.PortList("--bootstrap-ports", text)
	if strings.ContainsAny(text, "１２") {
		t.Logf("digits of other scripts are refused on purpose: %v", err)
		return
	}
	if rejected(t, c, err) {
		return
	}
	same(t, "ports", nonNil(ports), c.Expect["ports"])
}

func stagger(t *testing.T, c goldenCase) {
	d, err := settings.StaggerDelay(toInt(c.Input["num_workers"]), toFloat(c.Input["stagger_delay"]))
	if rejected(t, c, err) {
		return
	}
	if want := toFloat(c.Expect["delay_s"]); d != want {
		t.Errorf("got %v, want %v", d, want)
	}
}

func launchPlan(t *testing.T, c goldenCase) {
	n := toInt(c.Input["num_workers"])
	d, err := settings.StaggerDelay(n, toFloat(c.Input["stagger_delay"]))
	if err != nil {
		t.Fatal(err)
	}
	offsets := make([]float64, n)
	var at time.Duration
	for i := range n {
		offsets[i] = at.Seconds()
		at += settings.Pause(i, n, time.Duration(d*float64(time.Second)))
	}
	near := func(name string, got, want float64) {
		if math.Abs(got-want) > 1e-6 {
			t.Errorf("%s: got %v s, want %v s", name, got, want)
		}
	}
	for i, want := range c.Expect["first_launch_offsets_s"].([]any) {
		near(fmt.Sprint("worker ", i), offsets[i], toFloat(want))
	}
	for i, want := range c.Expect["offset_of_worker_index"].(map[string]any) {
		near("worker "+i, offsets[toInt(json.Number(i))], toFloat(want))
	}
	near("last", offsets[n-1], toFloat(c.Expect["last_offset_s"]))
}

func kvBytes(t *testing.T, c goldenCase) {
	config, err := json.Marshal(c.Input["config_json"])
	if err != nil {
		t.Fatal(err)
	}
	l, err := kvbytes.Parse(config, c.Input["kv_cache_dtype"].(string))
	want := c.Expect["kv_bytes_per_token"]
	if want == nil {
		if err == nil {
			t.Errorf("got %d, want unknown", l.Bytes)
		}
		return
	}
	if err != nil || l.Bytes != int64(toInt(want)) {
		t.Errorf("got %v (%v), want %v", l, err, want)
	}
}

func normalize(t *testing.T, c goldenCase) {
	if strings.HasSuffix(c.Name, "_array_form") {
		t.Log("lists in place of objects are refused on purpose")
		return
	}
	o, err := profiles.ParseJSON("config", []byte(c.Input["config_text"].(string)))
	var l *profiles.Launch
	if err == nil {
		l, err = profiles.Resolve(o)
	}
	if refusedByName(t, err) || rejected(t, c, err) {
		return
	}
	same(t, "config", l.Canonical(), c.Expect["config"])
	again, err := profiles.Resolve(l.Canonical())
	if err != nil {
		t.Fatal(err)
	}
	same(t, "config, resolved again", again.Canonical(), c.Expect["config"])
}

func overrides(t *testing.T, c goldenCase) {
	base := toObject(t, c.Input["base"])
	var o settings.Overrides
	for key, v := range c.Input["overrides"].(map[string]any) {
		n, _ := v.(json.Number)
		switch key {
		case "bootstrap_port":
			o.BootstrapPort = n
		case "zmq_kv_events_port":
			o.ZMQKVEventsPort = n
		case "zmq_replay_port":
			o.ZMQReplayPort = n
		case "kv_bytes_per_token":
			o.KVBytesPerToken = n
		case "ais_mtp_seed":
			o.MTPSeed = n
		}
	}
	l, err := o.Apply(base)
	if rejected(t, c, err) {
		return
	}
	same(t, "config", l.Canonical(), c.Expect["config"])
}

// parse runs everything before the first use of the network.
func parse(t *testing.T, c goldenCase) {
	if c.Name == "accept.int_arabic_digits" || strings.HasSuffix(c.Name, "_array_form") || c.Name == "range.reasoning_array" {
		t.Log("quirk of the reference's libraries, refused on purpose")
		return
	}
	dir := t.TempDir()
	writeFiles(t, dir, c.text)
	var args []string
	for _, a := range c.Input["argv"].([]any) {
		args = append(args, strings.ReplaceAll(a.(string), "@DIR@", dir))
	}
	env := map[string]string{"DYN_HTTP_RPC_HOST": "192.0.2.10"}
	if given, ok := c.Input["env"].(map[string]any); ok {
		for k, v := range given {
			env[k] = strings.ReplaceAll(v.(string), "@DIR@", dir)
		}
	}
	lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	v, err := flags.Read(args, lookup)
	if err == nil && v.Exit != flags.ExitNone {
		if c.Expect["class"] != "exit_ok" {
			t.Errorf("prints and exits, want %v", c.Expect["class"])
		}
		return
	}
	var s *settings.Settings
	if err == nil {
		s, err = settings.Resolve(v, lookup, settings.NoDemo)
	}
	if c.Name == "conflict.perf_config_not_installed" && err == nil {
		t.Setenv("MOCKBENCH_AIS_DATA", dir) // which holds none
		err = s.LoadTiming()
	}
	if refusedByName(t, err) || rejected(t, c, err) {
		return
	}
	if config, ok := c.Expect["config"]; ok { // a case of AIS descriptors, which says nothing of the rest
		same(t, "config", s.Launch.Canonical(), config)
		return
	}
	accepted(t, dir, c, v, s)
}

func accepted(t *testing.T, dir string, c goldenCase, v *flags.Values, s *settings.Settings) {
	same(t, "engine_config", s.Launch.Canonical(), replaceDir(c.Expect["engine_config"], dir))
	if got, want := s.Stagger.Seconds(), toFloat(c.Expect["stagger_delay_effective"]); got != want && !math.IsInf(want, 1) {
		t.Errorf("stagger: got %v, want %v", got, want)
	}
	args := c.Expect["args"].(map[string]any)
	emptyNamespace := c.Input["env"] != nil && c.Input["env"].(map[string]any)["DYN_NAMESPACE"] == ""
	if got := s.Pools[0].Endpoint; got != args["endpoint"] && !emptyNamespace {
		t.Errorf("endpoint: got %s, want %s", got, args["endpoint"])
	}
	for name, got := range map[string]any{"num_workers": s.Workers, "discovery_backend": s.Planes.Discovery,
		"request_plane": s.Planes.Request, "response_plane": s.Planes.Response, "kv_cache_dtype": v.Text("--kv-cache-dtype"),
		"bootstrap_ports_list": nonNil(s.Ports.Bootstrap), "zmq_kv_events_ports_list": nonNil(s.Ports.ZMQEvents),
		"zmq_replay_ports_list": nonNil(s.Ports.ZMQReplay)} {
		same(t, name, got, args[name])
	}
	for i, w := range c.Expect["workers"].([]any) {
		l, err := s.Worker(i)
		if err != nil {
			t.Fatal(err)
		}
		want := w.(map[string]any)
		same(t, fmt.Sprint("seed of worker ", i), l.Engine.MTPSeed, want["aic_mtp_seed"])
		same(t, fmt.Sprint("bootstrap port of worker ", i), l.Dynamo.BootstrapPort, want["bootstrap_port"])
		same(t, fmt.Sprint("event port of worker ", i), l.Dynamo.ZMQKVEventsPort, want["zmq_kv_events_port"])
		same(t, fmt.Sprint("replay port of worker ", i), l.Dynamo.ZMQReplayPort, want["zmq_replay_port"])
	}
	for _, w := range c.Expect["warnings"].([]any) {
		if text := w.(map[string]any)["text"].(string); !slices.Contains(s.Deprecations, text) {
			t.Errorf("no note %q among %q", text, s.Deprecations)
		}
	}
	router(t, dir, s.Router, c.Expect["advertised_router"])
}

func router(t *testing.T, dir string, got *settings.Router, want any) {
	if want == nil {
		if got != nil {
			t.Errorf("advertises %s, want nothing", got.Mode)
		}
		return
	}
	w := replaceDir(want, dir).(map[string]any)
	if got == nil || got.Mode != w["mode"] {
		t.Fatalf("router: got %v, want mode %v", got, w["mode"])
	}
	same(t, "router", got.Common, w["router"])
	if w["kv"] == nil {
		return
	}
	kv := got.KV.Clone()
	kv.Delete("skip_initial_worker_wait") // only in the card
	same(t, "router kv", kv, w["kv"])
}

// rejected compares the class of an error with the expected one; it is true if there is nothing more to compare.
func rejected(t *testing.T, c goldenCase, err error) bool {
	t.Helper()
	got := "accept"
	var usage *flags.UsageError
	switch {
	case errors.As(err, &usage):
		got = "usage_error"
	case err != nil:
		got = "config_error"
	}
	want := c.Expect["class"]
	if want == nil {
		want = "accept"
	}
	if got != want {
		t.Errorf("class: got %s (%v), want %s", got, err, want)
		return true
	}
	if err != nil {
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("more than one line: %v", err)
		}
		checkGist(t, c, err)
		checkReason(t, c, err)
	}
	return err != nil
}

// checkGist checks that the error names one of the settings that are wrong.
func checkGist(t *testing.T, c goldenCase, err error) {
	t.Helper()
	gist, ok := c.Expect["gist"].(map[string]any)
	if !ok {
		return
	}
	var names []string
	for _, list := range []string{"flags", "fields", "argv_flags"} {
		if words, ok := gist[list].([]any); ok {
			for _, w := range words {
				names = append(names, w.(string))
			}
		}
	}
	for _, n := range names {
		parts := strings.Split(n, ".")
		if strings.Contains(err.Error(), n) || strings.Contains(err.Error(), parts[len(parts)-1]) {
			return
		}
	}
	if len(names) > 0 {
		t.Errorf("%q names none of %v", err, names)
	}
}

// refusedByName reports settings that are recognised and refused because this build cannot do them.
func refusedByName(t *testing.T, err error) bool {
	var s *engine.SettingError
	if errors.As(err, &s) && s.Kind == engine.KindUnsupported && strings.Contains(s.Allowed, "not supported by this build") {
		t.Logf("refused by name: %v", err)
		return true
	}
	return false
}
