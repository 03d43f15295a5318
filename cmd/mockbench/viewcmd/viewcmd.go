// Package viewcmd is the command "mockbench view": it opens a recording in the screen, or prints what it holds.
package viewcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"mockbench/cmd/mockbench/flags"
	"mockbench/engine"
	"mockbench/engine/report"
	"mockbench/ui"
	"mockbench/ui/recording"
	"mockbench/ui/theme"
)

// arguments are the values of the command line.
type arguments struct {
	noScreen, noMouse, noColor bool
	fps                        int
	exportDir                  string

	panel, size, svg, text string
	at                     time.Duration
	light                  bool

	help bool
}

func newFlags() (*pflag.FlagSet, *arguments) {
	a := &arguments{}
	f := flags.NewSet("mockbench view")
	f.SetOutput(io.Discard)
	f.BoolVar(&a.noScreen, "no-tui", false, "print what the recording holds; the default without a terminal")
	f.IntVar(&a.fps, "fps", 10, "frames a second, 1 to 60")
	f.BoolVar(&a.noColor, "no-color", false, "no colour; also NO_COLOR in the environment")
	f.BoolVar(&a.noMouse, "no-mouse", false, "leave the mouse to the terminal")
	f.StringVar(&a.exportDir, "export-dir", ".", "where x writes what is on the screen (`DIR`)")
	f.StringVar(&a.panel, "panel", "", "draw this panel (`NAME`) without a terminal: "+strings.Join(ui.Panels(), ", "))
	f.StringVar(&a.size, "size", "120x36", "cells of the drawing, `WxH`")
	f.DurationVar(&a.at, "at", 0, "recorded `time` of the drawing after the beginning, for example 30s")
	f.StringVar(&a.svg, "svg", "", "write the drawing as a picture to this `FILE`, - is stdout")
	f.StringVar(&a.text, "text", "", "write the drawing as text to this `FILE`, - is stdout; the default without --svg")
	f.BoolVar(&a.light, "light", false, "a picture on a light background")
	f.BoolVarP(&a.help, "help", "h", false, "print this text and exit")
	return f, a
}

// FlagSet returns the flags of the command, for completion and documentation.
func FlagSet() *pflag.FlagSet {
	f, _ := newFlags()
	return f
}

const usageLine = "usage: mockbench view FILE [flags]\n"

func helpText() string {
	return "Open a recording in the screen, with a time slider. Recordings are made with --record.\n\n" + usageLine +
		"\nFlags:\n" + FlagSet().FlagUsages() +
		"\nExit status: 0 done, also if the end of the recording is missing, 1 it cannot be read, 2 wrong command line.\n"
}

// Main runs the command and returns its exit status. args are those after the word view.
func Main(args []string, stdout, stderr io.Writer) int {
	f, a := newFlags()
	if err := flags.ParseSet(f, args); err != nil {
		return fail(stderr, err)
	}
	if a.help {
		io.WriteString(stdout, helpText())
		return 0
	}
	if err := a.check(f); err != nil {
		return fail(stderr, err)
	}
	return fail(stderr, Open(f.Arg(0), stdout, stderr, a.show))
}

func fail(w io.Writer, err error) int {
	if err == nil {
		return 0
	}
	return flags.Fail(w, "mockbench view", err)
}

// check returns a *flags.UsageError for the first thing that is wrong.
func (a *arguments) check(f *pflag.FlagSet) error {
	usage := func(format string, v ...any) error { return &flags.UsageError{Text: fmt.Sprintf(format, v...)} }
	switch {
	case f.NArg() == 0:
		return usage("a recording is missing: mockbench view FILE")
	case f.NArg() > 1:
		return usage("one recording at a time, got %d", f.NArg())
	case a.fps < 1 || a.fps > 60:
		return usage("--fps: must be 1 to 60, got %d", a.fps)
	case a.panel != "" && !slices.Contains(ui.Panels(), a.panel):
		return usage("--panel: must be one of %s, got %s", strings.Join(ui.Panels(), ", "), a.panel)
	case a.panel == "" && (a.svg != "" || a.text != "" || f.Changed("size") || f.Changed("at") || a.light):
		return usage("--size, --at, --svg, --text and --light draw a panel: --panel is missing")
	case a.at < 0:
		return usage("--at: must not be negative, got %v", a.at)
	case a.svg == "-" && a.text == "-":
		return usage("--svg and --text cannot both go to stdout")
	}
	if _, _, err := a.cells(); err != nil {
		return usage("--size: must be WxH, 80x24 to 500x200, got %s", a.size)
	}
	if a.exportDir != "." {
		if err := report.CheckFile(filepath.Join(a.exportDir, "mockbench")); err != nil {
			return fmt.Errorf("--export-dir: %w", err)
		}
	}
	return nil
}

var errSize = errors.New("wrong size")

func (a *arguments) cells() (w, h int, err error) {
	if n, err := fmt.Sscanf(a.size, "%dx%d", &w, &h); n != 2 || err != nil || fmt.Sprintf("%dx%d", w, h) != a.size {
		return 0, 0, errSize
	}
	if w < 80 || h < 24 || w > 500 || h > 200 {
		return 0, 0, errSize
	}
	return w, h, nil
}

// Open opens a recording for f and warns of what of it cannot be read.
func Open(path string, stdout, stderr io.Writer, f func(r *recording.Recording, stdout io.Writer) error) error {
	r, err := recording.Open(path)
	if err != nil {
		return err
	}
	defer r.Close()
	if r.Torn != "" {
		fmt.Fprintf(stderr, "warning: %s: %s\n", path, r.Torn)
	}
	return f(r, stdout)
}

func (a *arguments) show(r *recording.Recording, stdout io.Writer) error {
	switch {
	case a.panel != "":
		return a.draw(r, stdout)
	case a.noScreen || !ui.Available(os.Stdin, os.Stdout):
		return summary(r, stdout)
	}
	o := Options(r)
	o.FPS, o.NoMouse, o.ExportDir = a.fps, a.noMouse, a.exportDir
	if a.noColor {
		none := theme.NoColor
		o.Colors = &none
	}
	return Watch(o)
}

// Options returns the options of a screen that shows a recording.
func Options(r *recording.Recording) ui.Options {
	h := &r.Header
	o := ui.Options{Model: h.Model, Backend: h.Backend, Tape: r}
	if r.End != nil && len(r.End.Report) > 0 {
		o.Report = func(w io.Writer) error {
			_, err := w.Write(append(slices.Clip(r.End.Report), '\n'))
			return err
		}
	}
	return o
}

// Watch shows a screen until the user quits.
func Watch(o ui.Options) error {
	err := ui.Run(context.Background(), o)
	if errors.Is(err, ui.ErrQuit) || errors.Is(err, ui.ErrSignal) {
		return nil
	}
	return err
}

// draw draws one panel without a terminal.
func (a *arguments) draw(r *recording.Recording, stdout io.Writer) error {
	w, h, err := a.cells()
	if err != nil {
		return err
	}
	th := theme.New(theme.Colors256, a.light, true)
	g, err := ui.Show(Options(r), th, a.panel, engine.Time(a.at.Seconds()*1000), w, h)
	if err != nil {
		return err
	}
	write := func(path, text string) error {
		return report.WriteTo(path, stdout, func(w io.Writer) error { _, err := io.WriteString(w, text); return err })
	}
	if a.svg != "" {
		if err := write(a.svg, ui.Picture(g, a.light)); err != nil {
			return fmt.Errorf("--svg: %w", err)
		}
	}
	if a.text == "" && a.svg == "" {
		a.text = "-"
	}
	if a.text != "" {
		if err := write(a.text, g.String()+"\n"); err != nil {
			return fmt.Errorf("--text: %w", err)
		}
	}
	return nil
}
