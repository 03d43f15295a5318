// Package app wires the program: settings in, workers, transports, load, screen or headless run, exit status out.
package app

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"mockbench/cmd/mockbench/flags"
	"mockbench/cmd/mockbench/logs"
	"mockbench/cmd/mockbench/settings"
	"mockbench/engine/report"
	"mockbench/ui"
)

// Exit statuses; flags.ExitCodes says what they mean.
const (
	exitOK      = 0
	exitError   = 1
	exitLimits  = 99
	exitAborted = 105
	exitHangup  = 129
)

// Main runs the program and returns its exit status. commands are for the help.
func Main(args []string, commands []flags.Command) int {
	signal.Ignore(syscall.SIGPIPE) // a reader that has gone shows as a failed write
	s, err := read(args, os.Stdout, commands)
	if s == nil || err != nil {
		return fail(os.Stderr, err)
	}
	p := &program{s: s}
	if err := p.chooseScreen(); err != nil {
		return fail(os.Stderr, err)
	}
	if err := p.checkReport(); err != nil {
		return fail(os.Stderr, err)
	}
	if err := p.checkRecord(); err != nil {
		return fail(os.Stderr, err)
	}
	if err := p.openLog(); err != nil {
		return fail(os.Stderr, err)
	}
	defer p.closeLog()
	if err := s.LoadTiming(); err != nil {
		return fail(os.Stderr, err)
	}
	p.notes()
	return p.run()
}

// read turns the command line into settings; they are nil if it asked only for a text, which has been written.
func read(args []string, out io.Writer, commands []flags.Command) (*settings.Settings, error) {
	v, err := flags.Read(args, os.LookupEnv)
	if err != nil {
		return nil, err
	}
	switch v.Exit {
	case flags.ExitHelp:
		flags.Help(out, commands)
		return nil, nil
	case flags.ExitVersion:
		fmt.Fprint(out, flags.VersionText)
		return nil, nil
	}
	s, err := Resolve(v)
	if err != nil {
		return nil, err
	}
	return s, settings.Refuse(v, s)
}

// fail reports an error in one line and returns the exit status of its class.
func fail(w io.Writer, err error) int {
	if err == nil {
		return exitOK
	}
	return flags.Fail(w, "mockbench", err)
}

// program is one run.
type program struct {
	s      *settings.Settings
	screen bool
	saved  atomic.Pointer[saved]
	shown  atomic.Bool // the screen is up and owns the signals
	why    string      // why there is no screen, if that was not asked for

	log     *logs.Log
	level   slog.Level
	ring    ui.Log // what the screen shows of the log
	logFile *os.File
	stderr  *logs.Outlet // for all that is written while the workers run, which a reader that stalls must not hold up
}

// patience is how long the end of the program waits for a reader of stderr.
const patience = time.Second

// chooseScreen decides between screen and headless run.
func (p *program) chooseScreen() error {
	p.why = noScreen()
	switch {
	case p.s.Screen.Off:
		p.why = ""
	case p.why == "":
		p.screen = true
	case p.s.Screen.Force:
		return &flags.UsageError{Text: "--tui: " + p.why}
	}
	return nil
}

// checkReport says before the run that its report could not be written.
func (p *program) checkReport() error {
	for _, f := range [][2]string{{"--report", p.s.Report}, {"--junit", p.s.Verdict.JUnit}, {"--html", p.s.Verdict.HTML}} {
		if f[1] == "" {
			continue
		}
		if err := report.CheckFile(f[1]); err != nil {
			return fmt.Errorf("%s: %w", f[0], err)
		}
	}
	return nil
}

// noScreen says why no screen can be drawn; empty if it can.
func noScreen() string {
	switch t, _ := os.LookupEnv("TERM"); {
	case !isTerminal(os.Stdin):
		return "stdin is not a terminal"
	case !isTerminal(os.Stdout):
		return "stdout is not a terminal"
	case t == "":
		return "TERM is not set"
	case !ui.Available(os.Stdin, os.Stdout):
		return fmt.Sprintf("a terminal of type %s cannot show it", t)
	}
	return ""
}

func (p *program) openLog() error {
	text, _ := os.LookupEnv("DYN_LOG")
	filter, unknown := logs.ParseFilter(text)
	if p.s.Screen.Quiet {
		filter.Level = max(filter.Level, slog.LevelWarn)
	}
	p.level = filter.Level
	p.stderr = logs.NewOutlet(os.Stderr)
	var out []io.Writer
	if p.screen {
		out = append(out, &p.ring)
	} else {
		out = append(out, p.stderr)
	}
	if path := p.s.Screen.LogFile; path != "" {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return fmt.Errorf("--log-file: %w", err)
		}
		p.logFile = f
		out = append(out, f)
	}
	p.log = logs.New(logs.Options{Filter: filter, JSON: jsonLog(), Color: p.colorLog(), Local: os.Getenv("DYN_LOG_USE_LOCAL_TZ") == "1"}, out...)
	for _, word := range unknown {
		p.logger("config").Warn("unknown word in DYN_LOG has no effect", "word", word)
	}
	return nil
}

func jsonLog() bool {
	return os.Getenv("DYN_LOGGING_CONSOLE_FORMAT") == "jsonl" || os.Getenv("DYN_LOGGING_JSONL") == "1"
}

// colorLog reports whether log lines on stderr have colours.
func (p *program) colorLog() bool {
	return !p.screen && p.logFile == nil && !p.noColor() && os.Getenv("DYN_SDK_DISABLE_ANSI_LOGGING") != "1" && isTerminal(os.Stderr)
}

func (p *program) noColor() bool { return p.s.Screen.NoColor || os.Getenv("NO_COLOR") != "" }

// flush writes what the log has held back.
func (p *program) flush() {
	p.log.Flush()
	p.stderr.Flush(patience)
}

func (p *program) closeLog() {
	p.flush()
	if p.logFile != nil {
		p.logFile.Close()
	}
}

// logger returns the logger of a part of the program.
func (p *program) logger(part string) *slog.Logger { return p.log.Logger("mockbench::" + part) }

// notes tells what about the settings deserves a word.
func (p *program) notes() {
	log := p.logger("config")
	for _, text := range p.s.Deprecations {
		if p.screen {
			log.Warn(text)
		} else {
			fmt.Fprintf(p.stderr, "FutureWarning: %s\n", text)
		}
	}
	for _, text := range p.s.Warnings {
		log.Warn(text)
	}
	if noDelay(p.s) && len(p.s.Verdict.Limits) > 0 {
		log.Warn("a speed-up ratio of 0 waits for nothing: latencies and --fail-on depend on this machine too; mockbench replay is exact")
	}
	if p.s.Alone {
		log.Info("no frontend could find these workers: they run under the load of the profile demo; --discovery-backend lets them serve")
	}
	if p.why != "" {
		log.Info("no screen: " + p.why)
	}
}
