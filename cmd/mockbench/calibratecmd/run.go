package calibratecmd

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"mockbench/cmd/mockbench/flags"
	"mockbench/engine/report"
	"mockbench/profiles/calibration"
	"mockbench/profiles/profiledata"
)

const exitInterrupted = 105

// Main runs the command and returns its exit status. args are those after the word calibrate.
func Main(args []string, stdout, stderr io.Writer) int {
	a, err := parse(args)
	if err != nil {
		return flags.Fail(stderr, "mockbench calibrate", err)
	}
	if a.help {
		io.WriteString(stdout, helpText())
		return 0
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if a.show != "" {
		err = show(stdout, a.show)
	} else {
		err = a.calibrate(ctx, stdout, stderr)
	}
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "interrupted, nothing was written")
		return exitInterrupted
	case err != nil:
		return flags.Fail(stderr, "mockbench calibrate", err)
	}
	return 0
}

// calibrate gets measurements, makes the table and writes it.
func (a *arguments) calibrate(ctx context.Context, stdout, stderr io.Writer) error {
	if a.quiet {
		stdout = io.Discard
	}
	for _, path := range []string{a.out, a.save} {
		if path == "" {
			continue
		}
		if err := report.CheckFile(path); err != nil {
			return err
		}
	}
	samples, err := a.samples(ctx, stdout, stderr)
	if err != nil {
		return err
	}
	table, quality, err := calibration.Fit(samples)
	if err != nil {
		return fmt.Errorf("%s%s: %w", a.csv, a.url, err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if a.save != "" {
		if err := report.WriteTo(a.save, stdout, func(w io.Writer) error { return writeCSV(w, samples) }); err != nil {
			return err
		}
	}
	err = report.WriteTo(a.out, stdout, func(w io.Writer) error { return profiledata.WriteNPZ(w, table) })
	if err != nil {
		return err
	}
	printQuality(stdout, quality)
	for _, s := range samples {
		if s.ITLMS > 0 && s.ITLMS < 1 {
			fmt.Fprintln(stderr, "warning: some decode steps took less than 1 ms, engines with such a table take 1 ms for them")
			break
		}
	}
	fmt.Fprintf(stdout, "wrote %s: prefill at %d sizes up to %.0f tokens, decode at %d x %d places\n", a.out,
		len(table.PrefillTokens), last(table.PrefillTokens), table.DecodeShape[0], table.DecodeShape[1])
	return nil
}

// samples reads or takes the measurements.
func (a *arguments) samples(ctx context.Context, stdout, stderr io.Writer) ([]calibration.Sample, error) {
	if a.csv != "" {
		samples, ignored, err := readCSV(a.csv)
		if err == nil && len(ignored) > 0 {
			fmt.Fprintf(stderr, "warning: %s: columns without a meaning here: %s\n", a.csv, strings.Join(ignored, ", "))
		}
		return samples, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableKeepAlives = true // on a used connection acknowledgements are held back, and small chunks with them
	e := &endpoint{url: strings.TrimRight(a.url, "/"), model: a.model, client: &http.Client{Transport: transport}}
	if a.keyVariable != "" {
		if e.key = os.Getenv(a.keyVariable); e.key == "" {
			return nil, fmt.Errorf("--api-key-env: the environment variable %s is not set", a.keyVariable)
		}
	}
	m := &measurement{endpoint: e, osl: a.osl, repeats: a.repeats, timeout: a.timeout, progress: stdout}
	return m.run(ctx, a.isl, a.batch)
}
