package calibratecmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"mockbench/engine"
	"mockbench/engine/live"
	"mockbench/profiles/calibration"
	"mockbench/profiles/profiledata"
)

// run runs the command in a folder of its own.
func run(t *testing.T, want int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	if got := Main(args, &out, &err); got != want {
		t.Fatalf("%v: status %d, want %d\n%s%s", args, got, want, &out, &err)
	}
	return out.String(), err.String()
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// reproduces checks that a written table says what was measured, up to an error in percent.
func reproduces(t *testing.T, table, measurements string, percent float64) {
	t.Helper()
	grid, err := profiledata.Load(table)
	if err != nil {
		t.Fatal(err)
	}
	samples, _, err := readCSV(measurements)
	if err != nil {
		t.Fatal(err)
	}
	within := func(what string, s calibration.Sample, got, want float64) {
		if math.Abs(got-want) > (percent/100+1e-9)*want {
			t.Errorf("%s of %+v: the table says %v, measured were %v", what, s, got, want)
		}
	}
	for _, s := range samples {
		if s.TTFTMS > 0 {
			within("TTFT", s, grid.Prefill(s.Batch, int(math.Round(s.ISL)), 0), s.TTFTMS)
		}
		if s.ITLMS > 0 {
			tokens := int(math.Round(float64(s.Batch) * s.Context))
			within("ITL", s, grid.Decode(s.Batch, tokens, int(math.Round(s.Context)), 0), s.ITLMS)
		}
	}
}

// reported returns the largest error that the command printed for prefill and decode.
func reported(t *testing.T, stdout string) float64 {
	t.Helper()
	worst := -1.0
	for line := range strings.Lines(stdout) {
		f := strings.Fields(line)
		if len(f) > 4 && (strings.HasSuffix(f[2], "sizes") || strings.HasSuffix(f[2], "places")) {
			x, err := strconv.ParseFloat(strings.TrimSuffix(f[len(f)-1], "%"), 64)
			if err != nil {
				t.Fatal(err)
			}
			worst = max(worst, x)
		}
	}
	if worst < 0 {
		t.Fatalf("no errors are reported in:\n%s", stdout)
	}
	return worst + 0.01 // as printed
}

// Two measurements of one place differ by a tenth, so that the table cannot be right about both.
const measurements = `# measured at night
isl,batch,osl,ttft_ms,itl_ms,gpu
128,1,64,18,5.8,x
512,1,64,24,5.9,x
2048,1,64,49,6.1,x
2048,1,64,54,6.7,x
2048,16,64,,12.1,x
512,64,64,,10.4,x
`

func TestFromFile(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "m.csv", measurements)
	stdout, stderr := run(t, 0, "m.csv", "--out", "m.npz")
	if !strings.Contains(stderr, "columns without a meaning here: gpu") {
		t.Errorf("no warning about a column: %s", stderr)
	}
	worst := reported(t, stdout)
	if worst < 4 || worst > 6 {
		t.Errorf("reported error %v %%, want about 5", worst)
	}
	reproduces(t, "m.npz", "m.csv", worst)

	shown, _ := run(t, 0, "--show", "m.npz")
	for _, want := range []string{"prefill: ", " tokens in use", "new tokens"} {
		if !strings.Contains(shown, want) {
			t.Errorf("no %q in:\n%s", want, shown)
		}
	}
	if files, err := filepath.Glob("*"); err != nil || len(files) != 2 {
		t.Errorf("files %v", files)
	}
}

func TestWrongFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct{ text, want string }{
		{"", "is empty"},
		{"isl,batch\n1,1\n", "no column ttft_ms"},
		{"isl,isl,ttft_ms,itl_ms\n", "column isl: there are two"},
		{"isl,ttft_ms,itl_ms\n100,x,3\n", `m.csv:2: column ttft_ms: got "x"`},
		{"isl,ttft_ms,itl_ms\n100,-1,3\n", `m.csv:2: column ttft_ms: got "-1"`},
		{"isl,ttft_ms,itl_ms\n100,NaN,3\n", `m.csv:2: column ttft_ms: got "NaN"`},
		{"isl,ttft_ms,itl_ms\n,4,3\n", `m.csv:2: column isl: got ""`},
		{"isl,batch,ttft_ms,itl_ms\n9,1.5,4,3\n", `m.csv:2: column batch: got "1.5", must be a whole number`},
		{"isl,ttft_ms,itl_ms\n1,2,3\n1,2\n", "m.csv:3: wrong number of fields"},
		{"isl,ttft_ms,itl_ms\n1,2,\"3\n", "m.csv:"},
		{"isl,ttft_ms,itl_ms\n100,5,3\n200,,3\n", "TTFT must be measured for at least 2"},
		{strings.Repeat("isl", 6<<20), "m.csv: is longer than 16 MiB"},
		{"isl,ttft_ms,itl_ms\n100,5,3\n200,6,\n", "ITL must be measured for at least 2"},
	} {
		write(t, "m.csv", c.text)
		_, stderr := run(t, 1, "m.csv", "--out", "m.npz")
		if !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("got %q, want %q", stderr, c.want)
		}
		if _, err := os.Stat("m.npz"); err == nil {
			t.Error("a table was written")
		}
	}
}

func TestWrongCommandLines(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, line := range []string{"", "m.csv", "m.csv --out m.txt", "m.csv n.csv --out m.npz", "m.csv --out m.npz --isl 5",
		"m.csv --show m.npz", "--url localhost:1 --model m --out m.npz", "--url http://localhost --out m.npz",
		"--url http://localhost --model m --out m.npz --batch 0", "--url http://localhost --model m --out m.npz --osl 3",
		"--nonsense"} {
		run(t, 2, strings.Fields(line)...)
	}
	if _, stderr := run(t, 1, "--show", "none.npz"); !strings.Contains(stderr, "none.npz: no such file") {
		t.Errorf("got %q", stderr)
	}
}

// workerServer is an OpenAI endpoint in front of one simulated worker: a word of the prompt is a token.
func workerServer(t *testing.T, c engine.TimingConfig) *httptest.Server {
	t.Helper()
	cfg := engine.DefaultConfig(engine.VLLM)
	cfg.Timing = c
	w, err := live.Start(t.Context(), live.Options{Name: "w0", Engine: cfg, Ranks: 1, Clock: live.NewClock(1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	s := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		var q chatRequest
		if err := json.NewDecoder(in.Body).Decode(&q); err != nil || q.Model != "m" {
			http.Error(out, "no such model", http.StatusNotFound)
			return
		}
		tokens := make([]uint32, len(strings.Fields(q.Messages[0].Content)))
		for i := range tokens {
			tokens[i] = uint32(i) + uint32(len(q.Messages[0].Content))<<10
		}
		stream, err := w.Submit(live.Request{Prompt: tokens, MaxOutput: q.MaxTokens, Rank: -1})
		if err != nil {
			http.Error(out, err.Error(), http.StatusInternalServerError)
			return
		}
		defer stream.Cancel()
		var buffer []live.Token
		for count, end := 0, live.Open; end == live.Open; {
			if buffer, end, err = stream.Take(in.Context(), buffer[:0]); err != nil {
				return
			}
			for range buffer {
				count++
				fmt.Fprintf(out, "data: {\"choices\":[{\"delta\":{\"content\":\"word%d\"}}]}\n\n", count)
			}
			if end != live.Open {
				fmt.Fprintf(out, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":%d}}\n\ndata: [DONE]\n\n", len(tokens), count)
			}
			out.(http.Flusher).Flush()
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// How late a worker and this test are is the machine's business, so that times are only bounded from below, and widely.
func TestFromEndpoint(t *testing.T) {
	t.Chdir(t.TempDir())
	s := workerServer(t, engine.TimingConfig{Type: "fixed", PrefillMS: 30, DecodeMS: 4})
	stdout, _ := run(t, 0, "--url", s.URL+"/", "--model", "m", "--isl", "50,400", "--batch", "1,3", "--osl", "40", "--repeats", "3",
		"--out", "m.npz", "--save-csv", "m.csv")
	reproduces(t, "m.npz", "m.csv", reported(t, stdout))
	samples, _, err := readCSV("m.csv")
	if err != nil || len(samples) != 4 {
		t.Fatalf("%d rows, %v", len(samples), err)
	}
	for _, s := range samples {
		if (s.TTFTMS > 0) != (s.Batch == 1) || s.Batch == 1 && s.TTFTMS < 10 {
			t.Errorf("TTFT of %+v", s)
		}
		if want := s.ISL + 20; s.ITLMS > 0 && math.Abs(s.Context-want) > 20 {
			t.Errorf("context of %+v, want about %v", s, want)
		}
	}
}

// Three requests whose first tokens come one after the other: a step counts from the last first token on, while all
// decode, even if chunks hold two tokens.
func TestSteadyStep(t *testing.T) {
	now := time.Now()
	var answers []*answer
	for i := range 3 {
		a := &answer{sent: now.Add(time.Duration(i) * time.Millisecond), prompt: 100, output: 80}
		at := time.Duration(10+30*i) * time.Millisecond
		for len(a.chunks) < 40 {
			a.chunks = append(a.chunks, at)
			if at += 8 * time.Millisecond; len(a.chunks) == 2 {
				at += 10 * time.Millisecond * time.Duration(2-i) // the prompts of the others
			}
		}
		answers = append(answers, a)
	}
	ms, context, ok := steadyStep(answers)
	if !ok || math.Abs(ms-4) > 1e-9 {
		t.Errorf("got %v ms, want 4", ms)
	}
	if context < 120 || context > 180 {
		t.Errorf("context %v, want that of the middle", context)
	}
	if _, _, ok := steadyStep([]*answer{{sent: now, chunks: answers[0].chunks[:5], prompt: 1, output: 5}}); ok {
		t.Error("five chunks are enough")
	}
}

func TestEndpointErrors(t *testing.T) {
	t.Chdir(t.TempDir())
	for body, want := range map[string]string{
		"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]\n\n": "has no usage",
		"data: [DONE]\n\n": "has no text",
		"data: {\"error\":{\"message\":\"too\\nlong\"}}\n\n": "holds an error",
		"data: hello\n\n":                     "not a stream of chat completion chunks",
		"data: " + strings.Repeat("a", 2<<20): "a line of more than 1 MiB",
		"status":                              "status 400 Bad Request: no room",
	} {
		s := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
			if body == "status" {
				http.Error(out, "no\nroom", http.StatusBadRequest)
				return
			}
			fmt.Fprint(out, body)
		}))
		_, stderr := run(t, 1, "--url", s.URL, "--model", "m", "--out", "m.npz")
		s.Close()
		if !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("got %q, want %q", stderr, want)
		}
		if files, err := filepath.Glob("*"); err != nil || len(files) != 0 {
			t.Errorf("files %v are left", files)
		}
	}
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, in *http.Request) {
		if _, err := io.Copy(io.Discard, in.Body); err == nil {
			<-in.Context().Done()
		}
	}))
	defer silent.Close()
	_, stderr := run(t, 1, "--url", silent.URL, "--model", "m", "--out", "m.npz", "--timeout", "50ms")
	if !strings.Contains(stderr, "--timeout: got 50ms") {
		t.Errorf("no answer: got %q", stderr)
	}
	s := workerServer(t, engine.TimingConfig{Type: "polynomial"})
	if _, stderr := run(t, 1, "--url", s.URL, "--model", "other", "--out", "m.npz"); !strings.Contains(stderr, "no such model") {
		t.Errorf("got %q", stderr)
	}
}
