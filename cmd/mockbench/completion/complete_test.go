package completion_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"mockbench/cmd/mockbench/completion"
	"mockbench/cmd/mockbench/flags"
)

func commands() []flags.Command {
	return []flags.Command{
		{Name: "show", Words: []string{"all", "one"}, WorkerFlags: true},
		{Name: "replay", Flags: func() *pflag.FlagSet {
			f := pflag.NewFlagSet("replay", pflag.ContinueOnError)
			f.String("trace-format", "", "`form` of the trace")
			f.Bool("table", false, "print a table")
			return f
		}},
		{Name: "__complete", Hidden: true},
		{Name: "help"},
	}
}

func TestComplete(t *testing.T) {
	for _, c := range []struct {
		line string // words parted by spaces; the last is at the cursor
		want string // candidates parted by spaces
		kind completion.Kind
	}{
		{"re", "replay", ""},
		{"__c", "", ""},
		{"help sh", "show", ""},
		{"--block-s", "--block-size", ""},
		{"--num-workers 2 --block-s", "--block-size", ""},
		{"--enable-chunked", "--enable-chunked-prefill", ""},
		{"--no-enable-c", "--no-enable-chunked-prefill", ""},
		{"--engine-type ", "vllm sglang trtllm", ""},
		{"--engine-type=s", "--engine-type=sglang", ""},
		{"--engine-type = s", "sglang", ""}, // as bash splits it
		{"--engine-type =", "vllm sglang trtllm", ""},
		{"--discovery-backend f", "file", ""},
		{"--router-mode k", "kv", ""},
		{"--profile de", "demo", completion.Files},
		{"--profile=de", "--profile=demo", completion.Files},
		{"--extra-engine-args x", "", completion.Files},
		{"--model-path ", "", completion.Dirs},
		{"--block-size ", "", ""},
		{"--quiet=x", "", ""},
		{"--router-temp", "", ""}, // deprecated
		{"--sglang-page", "", ""}, // deprecated
		{"replay --t", "--trace-format --table", ""},
		{"replay x", "", completion.Files},
		{"replay --block", "", ""},
		{"show ", "all one", ""},
		{"show all --block-s", "--block-size", ""},
		{"show all --engine-type v", "vllm", ""},
		{`--engine-type ""`, "vllm sglang trtllm", ""},
	} {
		list, kind := completion.Complete(commands(), strings.Split(c.line, " "))
		var got []string
		for _, candidate := range list {
			got = append(got, candidate.Text)
		}
		slices.Sort(got)
		want := strings.Fields(c.want)
		slices.Sort(want)
		if !slices.Equal(got, want) || kind != c.kind {
			t.Errorf("%q: got %q %q, want %q %q", c.line, got, kind, want, c.kind)
		}
	}
	if list, _ := completion.Complete(commands(), nil); len(list) < 100 {
		t.Errorf("an empty line offers %d words, want commands and flags", len(list))
	}
}

// Every flag that the reader knows is offered unless it is on its way out, and so is every word of a closed list.
func TestEveryFlagIsOffered(t *testing.T) {
	for _, f := range flags.All() {
		list, _ := completion.Complete(commands(), []string{f.Name})
		offered := slices.ContainsFunc(list, func(c completion.Candidate) bool { return c.Text == f.Name })
		if offered == (f.Hidden || f.ReplacedBy != "") {
			t.Errorf("%s: offered %v", f.Name, offered)
		}
		if list, _ := completion.Complete(commands(), []string{f.Name, ""}); len(list) < len(f.Allowed) {
			t.Errorf("%s: %d values offered of %d", f.Name, len(list), len(f.Allowed))
		}
	}
}

// The test answers as the program does when it runs under its name.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "mockbench" {
		os.Exit(completion.Answer(commands)(os.Args[2:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// workFolder returns a folder with the program and some files to complete.
func workFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, filepath.Join(dir, "mockbench"))
	}
	if err == nil {
		err = os.Mkdir(filepath.Join(dir, "model"), 0o700)
	}
	for _, name := range []string{"engine.json", "with space.json"} {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), nil, 0o600)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func script(t *testing.T, shell string) string {
	t.Helper()
	var out bytes.Buffer
	if status := completion.Main([]string{shell}, &out, io.Discard); status != 0 {
		t.Fatalf("%s: status %d", shell, status)
	}
	return out.String()
}

// TestBash loads the script into bash and completes command lines as the shell does, which parts words at "=" too.
func TestBash(t *testing.T) {
	dir := workFolder(t)
	for _, c := range []struct{ line, want string }{
		{"mockbench re", "replay"},
		{"mockbench --engine-type s", "sglang"},
		{"mockbench --engine-type = s", "sglang"},
		{"mockbench --engine-type =", "vllm\nsglang\ntrtllm"},
		{"mockbench --extra-engine-args eng", "engine.json"},
		{"mockbench --extra-engine-args = eng", "engine.json"},
		{"mockbench --extra-engine-args with", "with space.json"},
		{"mockbench --model-path m", "model"},
		{"mockbench --num-work", "--num-workers"},
		{"mockbench --block-size 1", ""},
	} {
		words := strings.Split(c.line, " ")
		cmd := exec.Command("bash", "--norc", "--noprofile", "-c", script(t, "bash")+`
complete -p mockbench >/dev/null || exit 1
COMP_WORDS=("$@") COMP_CWORD=`+strconv.Itoa(len(words)-1)+`
_mockbench
printf '%s\n' "${COMPREPLY[@]}"`)
		cmd.Args = append(append(cmd.Args, "bash"), words...)
		cmd.Dir = dir
		cmd.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if got := strings.TrimSpace(string(out)); got != c.want {
			t.Errorf("%s: got %q, want %q", c.line, got, c.want)
		}
	}
}

// TestScripts checks the scripts of shells that may not be installed: each asks the program, knows files and folders,
// and registers itself. A shell that is installed reads its script.
func TestScripts(t *testing.T) {
	registers := map[string]string{"bash": "complete -F _mockbench mockbench", "zsh": "compdef _mockbench mockbench",
		"fish": "complete -c mockbench", "powershell": "Register-ArgumentCompleter -Native -CommandName mockbench"}
	for _, shell := range completion.Shells {
		text := script(t, shell)
		for _, part := range []string{"__complete", ":files", ":dirs", registers[shell]} {
			if !strings.Contains(text, part) {
				t.Errorf("%s: no %q", shell, part)
			}
		}
		if path, err := exec.LookPath(shell); err == nil && shell != "powershell" {
			cmd := exec.Command(path, "-n")
			cmd.Stdin = strings.NewReader(text)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v: %s", shell, err, out)
			}
		}
	}
}

func TestWrongShell(t *testing.T) {
	for _, args := range [][]string{nil, {"tcsh"}, {"bash", "zsh"}, {"../scripts.go"}} {
		var stderr bytes.Buffer
		if status := completion.Main(args, io.Discard, &stderr); status != 2 || !strings.Contains(stderr.String(), "bash, zsh, fish, powershell") {
			t.Errorf("%v: status %d, %s", args, status, &stderr)
		}
	}
}
