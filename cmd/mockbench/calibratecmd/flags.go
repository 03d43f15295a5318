// Package calibratecmd is the command "mockbench calibrate": it makes a table of pass times from measurements in a CSV
// file or from a running endpoint, and shows tables.
package calibratecmd

import (
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"mockbench/cmd/mockbench/flags"
)

// arguments are the values of the command line.
type arguments struct {
	csv string // file of measurements

	out, save, show string
	url, model      string
	keyVariable     string // environment variable with the endpoint's key
	isl, batch      []int
	osl, repeats    int
	timeout         time.Duration
	quiet, help     bool

	set *pflag.FlagSet
}

func newFlags() *arguments {
	a := &arguments{}
	f := flags.NewSet("mockbench calibrate")
	f.StringVarP(&a.out, "out", "o", "", "write the table of pass times to this `FILE`, which must end in .npz")
	f.StringVar(&a.url, "url", "", "measure the OpenAI-compatible endpoint at `URL`, such as http://localhost:8000")
	f.StringVar(&a.model, "model", "", "`NAME` of the model to measure")
	f.StringVar(&a.keyVariable, "api-key-env", "", "`NAME` of the environment variable with the endpoint's key")
	f.IntSliceVar(&a.isl, "isl", []int{128, 512, 2048, 4096}, "prompt lengths to measure, about so many `TOKENS,...`")
	f.IntSliceVar(&a.batch, "batch", []int{1, 4, 16}, "numbers of requests at a time to measure (`N,N,...`)")
	f.IntVar(&a.osl, "osl", 128, "`TOKENS` of an answer")
	f.IntVar(&a.repeats, "repeats", 3, "measure every combination `N` times, the median counts")
	f.DurationVar(&a.timeout, "timeout", 5*time.Minute, "`TIME` that one request may take")
	f.StringVar(&a.save, "save-csv", "", "write what was measured at the endpoint to this `FILE`")
	f.StringVar(&a.show, "show", "", "print the table of an NPZ file or a results directory at `PATH` and exit")
	f.BoolVar(&a.quiet, "quiet", false, "print errors only")
	f.BoolVarP(&a.help, "help", "h", false, "print this text and exit")
	a.set = f
	return a
}

// FlagSet returns the flags of the command, for completion and documentation.
func FlagSet() *pflag.FlagSet { return newFlags().set }

const usageLine = "usage: mockbench calibrate MEASUREMENTS.csv --out TABLE.npz\n" +
	"       mockbench calibrate --url URL --model NAME --out TABLE.npz [flags]\n" +
	"       mockbench calibrate --show TABLE.npz\n"

func helpText() string {
	return "Make a table of pass times, for --planner-profile-data, from measurements of a running engine.\n\n" + usageLine +
		"\nFlags:\n" + FlagSet().FlagUsages() + `
Columns of the CSV file, named in its first line, in any order: isl (prompt tokens of a request), batch (requests at a
time, 1), context (tokens of a request in the middle of its answer) or osl (tokens of the answer), ttft_ms, itl_ms. Times
are milliseconds; an empty cell was not measured. A row with ttft_ms says how long the prompts of the whole batch took
together.

Exit status: 0 done, 1 error, 2 wrong command line, 105 interrupted by a signal.
`
}

func usage(format string, args ...any) error {
	return &flags.UsageError{Text: fmt.Sprintf(format, args...)}
}

// parse reads and checks the command line.
func parse(args []string) (*arguments, error) {
	a := newFlags()
	if err := flags.ParseSet(a.set, args); err != nil {
		return nil, err
	}
	if a.help {
		return a, nil
	}
	switch rest := a.set.Args(); {
	case len(rest) > 1:
		return nil, usage("got %d files, must be one", len(rest))
	case len(rest) == 1:
		a.csv = rest[0]
	}
	return a, a.check()
}

func (a *arguments) check() error {
	ways := 0
	for _, given := range []bool{a.csv != "", a.set.Changed("url"), a.set.Changed("show")} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		return usage("exactly one of a CSV file, --url and --show is needed")
	}
	if a.set.Changed("show") {
		return nil
	}
	if !strings.HasSuffix(a.out, ".npz") {
		return usage("--out: got %s, must be a file whose name ends in .npz", strconv.Quote(a.out))
	}
	if a.csv != "" {
		for _, name := range []string{"model", "isl", "batch", "osl", "repeats", "timeout", "save-csv", "api-key-env"} {
			if a.set.Changed(name) {
				return usage("--%s is for measuring at --url, not for a CSV file", name)
			}
		}
		return nil
	}
	return a.checkEndpoint()
}

// mostRequests bounds the requests at a time, each of which has a connection.
const mostRequests = 4096

func (a *arguments) checkEndpoint() error {
	u, err := url.Parse(a.url)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return usage("--url: got %s, must be like http://localhost:8000", strconv.Quote(a.url))
	case a.model == "":
		return usage("--url: needs --model")
	case a.osl < 16:
		return usage("--osl: got %d, must be at least 16, fewer tokens give no decode time", a.osl)
	case a.repeats < 1:
		return usage("--repeats: got %d, must be at least 1", a.repeats)
	case a.timeout <= 0:
		return usage("--timeout: got %s, must be positive", a.timeout)
	}
	for _, list := range []struct {
		flag   string
		values []int
		most   int
	}{{"isl", a.isl, math.MaxInt32}, {"batch", a.batch, mostRequests}} {
		if len(list.values) == 0 {
			return usage("--%s: got nothing, must be numbers separated by commas", list.flag)
		}
		for _, n := range list.values {
			if n < 1 || n > list.most {
				return usage("--%s: got %d, must be between 1 and %d", list.flag, n, list.most)
			}
		}
	}
	return nil
}
