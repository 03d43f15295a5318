package flags_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mockbench/cmd/mockbench/flags"
)

func noEnv(string) (string, bool) { return "", false }

func read(t *testing.T, args ...string) *flags.Values {
	t.Helper()
	v, err := flags.Read(args, noEnv)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestForms(t *testing.T) {
	v := read(t, "--block-size=16", "--num-w", "2", "--max-num-batched-tokens", " 8_192 ", "--speedup-ratio", "-.5",
		"--stagger-delay", "-1", "--no-enable-prefix-caching", "--block-size", "0032", "--model-name", "-a b")
	for name, want := range map[string]int64{"--block-size": 32, "--num-workers": 2, "--max-num-batched-tokens": 8192} {
		if got := v.Get(name).Int.Int64(); got != want {
			t.Errorf("%s = %d, want %d", name, got, want)
		}
	}
	if v.Get("--speedup-ratio").Float != -.5 || v.Get("--stagger-delay").Float != -1 {
		t.Error("negative decimals are values")
	}
	if v.On("--enable-prefix-caching") || !v.On("--enable-chunked-prefill") {
		t.Error("the off spelling switches off, the default of the other stays on")
	}
	if v.Text("--model-name") != "-a b" {
		t.Error("a word with a space in it is a value")
	}
}

func TestOwnFlagsDoNotBreakAbbreviations(t *testing.T) {
	v := read(t, "--request", "tcp", "--prof", "demo")
	if v.Get("--request-plane").Source != flags.FromFlag || v.Text("--profile") != "demo" {
		t.Error("--request means --request-plane although --requests exists; --prof means --profile")
	}
}

func TestUsageErrors(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"--num-worker2 1", "did you mean --num-workers?"},
		{"--blocksize 1", "did you mean --block-size?"},
		{"--max 1", "--max-model-len, --max-num-seqs, --max-num-batched-tokens"},
		{"--block-size 1.5", `--block-size: got "1.5", must be a whole number`},
		{"--block-size", "--block-size needs a value"},
		{"--speedup-ratio -1e5", "--speedup-ratio needs a value"},
		{"--ais-perf-model=true", "takes no value"},
		{"--enable-prefix-caching true", "unexpected argument true"},
		{"--router-mode round_robin", "did you mean round-robin?"},
		{"--ais-system a --aic-system b", "cannot be combined"},
		{"--request 5", `--request-plane: got "5", allowed: nats, tcp; --request is short for it as in the reference, if --requests is meant`},
		{"--no-enable", "--no-enable is ambiguous, it could be any of: --no-enable-prefix-caching, --no-enable-chunked-prefill"},
		{"--no-t", "--no-track-active-blocks, --no-track-output-blocks"},
		{"--num-workers=", `--num-workers: got "", must be a whole number`},
		{"--quiet=1", "--quiet takes no value"},
		{"-block-size 1", "unknown flag -block-size (did you mean --block-size?)"},
		{"-- x", "unexpected argument x"},
	} {
		_, err := flags.Read(strings.Fields(c.line), noEnv)
		var usage *flags.UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want a usage error with %q", c.line, err, c.want)
		}
	}
}

func TestHelpAndVersionEndTheReading(t *testing.T) {
	if v := read(t, "--no-such", "--version", "--block-size", "x"); v.Exit != flags.ExitVersion {
		t.Error("--version wins over unknown flags and over everything after it")
	}
	if v := read(t, "-h"); v.Exit != flags.ExitHelp {
		t.Error("-h asks for help")
	}
}

func TestEnvironment(t *testing.T) {
	vars := map[string]string{"DYN_DISCOVERY_BACKEND": "file", "DYN_ROUTER_USE_KV_EVENTS": "maybe", "DYN_REQUEST_PLANE": "nats"}
	lookup := func(name string) (string, bool) { s, ok := vars[name]; return s, ok }
	v, err := flags.Read([]string{"--request-plane", "tcp"}, lookup)
	if err != nil {
		t.Fatal(err)
	}
	if v.Text("--discovery-backend") != "file" || v.On("--router-kv-events") || v.Text("--request-plane") != "tcp" {
		t.Error("the environment gives defaults, an unknown word is off, the command line wins")
	}
	vars["DYN_ROUTER_EVENT_THREADS"] = "x"
	if _, err := flags.Read(nil, lookup); err == nil || errors.As(err, new(*flags.UsageError)) {
		t.Errorf("a bad number in the environment is no usage error: %v", err)
	}
}

func TestHelpNamesEveryFlag(t *testing.T) {
	var b bytes.Buffer
	flags.Help(&b, nil)
	for _, f := range flags.All() {
		if !f.Hidden && !strings.Contains(b.String(), f.Name) {
			t.Errorf("help does not name %s", f.Name)
		}
	}
	for _, line := range strings.Split(b.String(), "\n") {
		if strings.HasPrefix(line, "        ") && len(line) > 100 {
			t.Errorf("line longer than 100: %s", line)
		}
	}
}

// Every spelling that the help of the reference names is a flag here, and none of our own.
func TestEveryFlagOfTheReference(t *testing.T) {
	text, err := os.ReadFile("testdata/reference-flags.txt")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]*flags.Flag{}
	for _, f := range flags.All() {
		for _, name := range slices.Concat([]string{f.Name}, f.Aliases, f.Off) {
			known[name] = f
		}
	}
	for _, name := range strings.Fields(string(text)) {
		if f := known[name]; f == nil || f.Ours {
			t.Errorf("%s is no flag of the reference here", name)
		}
	}
}

func TestManualPage(t *testing.T) {
	var b bytes.Buffer
	flags.Man(&b, []flags.Command{{Name: "config", Args: "show|check", Summary: "Shows it"}, {Name: "__complete", Hidden: true, Summary: "x"}})
	page := b.String()
	for _, f := range flags.All() {
		if name := strings.ReplaceAll(f.Name, "-", `\-`); !f.Hidden && !strings.Contains(page, name) {
			t.Errorf("the page does not name %s", f.Name)
		}
	}
	for _, part := range []string{".TH MOCKBENCH 1", ".SH NAME", ".SH FLAGS", ".SH EXIT STATUS", ".B config show|check"} {
		if !strings.Contains(page, part) {
			t.Errorf("no %q", part)
		}
	}
	if strings.Contains(page, "__complete") {
		t.Error("a hidden command is shown")
	}
	for i, line := range strings.Split(page, "\n") {
		if strings.HasPrefix(line, ".") && !regexp.MustCompile(`^\.(TH|SH|SS|TP|B|BR|RI|I|br|PP|nf|fi|IP)( |$)`).MatchString(line) {
			t.Errorf("line %d is read as a request: %s", i+1, line)
		}
	}
	if groff, err := exec.LookPath("groff"); err == nil {
		cmd := exec.Command(groff, "-man", "-Tutf8", "-ww", "-z")
		cmd.Stdin = &b
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("groff: %v: %s", err, out)
		}
	}
}
