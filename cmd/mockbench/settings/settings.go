// Package settings turns a command line, the environment and a profile into the checked settings of a run.
package settings

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"mockbench/cmd/mockbench/flags"
	"mockbench/engine"
	"mockbench/engine/report"
	"mockbench/engine/report/limits"
	"mockbench/engine/router"
	"mockbench/profiles"
)

// Settings are everything a run needs to know.
type Settings struct {
	Model   Model
	Pools   []Pool           // one, or the prefill workers and then the decode workers
	Workers int              // of all pools
	Launch  *profiles.Launch // of the first pool; those of the pools differ in the role alone
	Base    *profiles.Object // what Launch was resolved from
	Stagger time.Duration    // between worker starts
	Ports   Ports
	Planes  Planes
	Router  *Router           // what the model card advertises, nil if nothing
	Load    *profiles.Load    // built-in load, nil if requests come from a frontend
	Alone   bool              // the load is there because nobody could find the workers
	Profile string            // name of the profile, empty if none
	From    *profiles.Profile // of that name, as it was read
	File    string            // of --extra-engine-args, empty if none

	Seed           uint64
	Duration       time.Duration // of the run, 0 is no limit
	Requests       uint64        // of the run, 0 is no limit
	AB             router.Policy // of a second fleet under the same load, empty for none
	Report         string        // file, "-" for stdout, empty for none
	SLO            report.Limits // of latencies
	Verdict        Verdict
	Record         string // file, empty for none
	SGLangGenerate bool   // the card offers SGLang's own interface

	Quirks bool // the reference's behaviour where it harms its users
	Screen Screen

	Origins Origins // of the settings of Launch and, by name of the flag, of those that another flag or the profile gave

	// Deprecations are notes that the reference prints too; Warnings are our own. One sentence each.
	Deprecations []string
	Warnings     []string
}

// Verdict is what a run has to keep, and how its outcome is told besides the report.
type Verdict struct {
	Limits []limits.Limit
	Abort  bool   // end the run when one of them is lost
	JUnit  string // file, "-" for stdout, empty for none
	HTML   string // the same
	Line   bool   // one line instead of the summary
}

// Model is what is served.
type Model struct {
	Path string // directory or hub id, empty for the built-in model
	Name string // in API answers, empty for the path

	NoName bool // the name was given, as the empty text
}

// Planes are the transports.
type Planes struct {
	Discovery, Request, Response string
	Event                        string // resolved: never empty
	DiscoveryGiven               bool   // by flag or environment; else Discovery is only the reference's default
	Reregister, ReregisterGiven  bool   // a worker that discovery has lost comes back by itself
	EmbeddedNATS                 bool   // run a NATS server in the process
}

// Screen is how the run is shown.
type Screen struct {
	Force, Off    bool // --tui, --no-tui
	FPS           int
	NoColor       bool
	NoMouse       bool
	Progress      time.Duration // between progress lines
	ProgressGiven bool
	Quiet         bool
	LogFile       string
	ExportDir     string
}

// ProfileError is a profile that cannot be used.
type ProfileError struct{ Err error }

func (e *ProfileError) Error() string { return e.Err.Error() }
func (e *ProfileError) Unwrap() error { return e.Err }

// ExitStatus is the status of a run that ends with this error.
func (e *ProfileError) ExitStatus() int { return 104 }

// Bare says when a command line without a profile means the demonstration, with the flags on top, and not a worker with
// all defaults as in the reference.
type Bare int

// When it does: never, if it has no flag of the reference, or if it has none that only matters to who finds the worker.
// The last is for a process whose workers nobody else can find.
const (
	NoDemo Bare = iota
	Demo
	Alone
)

// Resolve checks the values of a command line and returns the settings of the run. Errors are *flags.UsageError,
// *ProfileError, or any other error for a wrong setting; all are one line.
func Resolve(v *flags.Values, lookup func(string) (string, bool), bare Bare) (*Settings, error) {
	r := resolver{v: v, lookup: lookup, bare: bare, s: &Settings{Origins: Origins{}}}
	for _, step := range []func() error{
		r.run, r.screen, r.deprecations, r.profile, r.pools, r.slo, r.verdict, r.planes, r.ports, r.launch, r.stagger, r.router, r.strict,
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return r.s, nil
}

// resolver fills in settings step by step.
type resolver struct {
	v      *flags.Values
	lookup func(string) (string, bool)
	bare   Bare
	s      *Settings
	from   *profiles.Profile // nil if none
	file   []byte            // text of --extra-engine-args
}

func (r *resolver) warn(format string, args ...any) {
	r.s.Warnings = append(r.s.Warnings, fmt.Sprintf(format, args...))
}

// given reports whether a flag was on the command line.
func (r *resolver) given(name string) bool { return r.v.Get(name).Source == flags.FromFlag }

// wrongFlag is the error for a value that its type allows and its setting does not.
func wrongFlag(name, given, allowed string) error {
	return &engine.SettingError{Setting: name, Kind: engine.KindRange, Given: given, Allowed: allowed}
}

// wrongWord is the error for a word that is not in a closed list.
func wrongWord(name, given string, allowed []string) error {
	return &engine.SettingError{Setting: name, Kind: engine.KindUnknown, Given: strconv.Quote(given), Allowed: "allowed: " + strings.Join(allowed, ", ")}
}

// conflict is the error for two settings that exclude each other.
func conflict(name, format string, args ...any) error {
	return &engine.SettingError{Setting: name, Kind: engine.KindConflict, Allowed: fmt.Sprintf(format, args...)}
}

// needs is the error for a setting without the one it belongs to.
func needs(name, format string, args ...any) error {
	return &engine.SettingError{Setting: name, Kind: engine.KindMissing, Allowed: "needs " + fmt.Sprintf(format, args...)}
}

// unsupported is the error for a setting that is known and has no place here.
func unsupported(name, given, allowed string) error {
	return &engine.SettingError{Setting: name, Kind: engine.KindUnsupported, Given: given, Allowed: allowed}
}

func (r *resolver) run() (err error) {
	s := r.s
	s.SGLangGenerate = r.v.On("--sglang-generate")
	s.Quirks, s.Report = r.v.On("--reference-quirks"), r.v.Text("--report")
	s.Record = r.v.Text("--record")
	if s.Duration, err = r.span("--duration"); err != nil {
		return err
	}
	if s.Requests, err = r.count("--requests", 1, 1<<62); err != nil {
		return err
	}
	s.AB = router.Policy(strings.ReplaceAll(r.v.Text("--ab"), "_", "-"))
	s.Seed, err = r.count("--seed", 0, 1<<64-1)
	return err
}

// verdict reads the limits; which figures there are depends on the pools.
func (r *resolver) verdict() error {
	d := &r.s.Verdict
	d.Abort, d.Line, d.JUnit, d.HTML = r.v.On("--abort-on-fail"), r.v.On("--line"), r.v.Text("--junit"), r.v.Text("--html")
	for _, text := range r.v.All("--fail-on") {
		l, err := limits.Parse(text, report.LiveNames(r.s.Split(), r.s.SLO != report.Limits{}))
		if err != nil {
			return &flags.UsageError{Text: "--fail-on: " + err.Error(), Kind: flags.WrongType}
		}
		d.Limits = append(d.Limits, l)
	}
	if d.Abort && !slices.ContainsFunc(d.Limits, limits.Limit.Abortable) {
		return needs("--abort-on-fail", "--fail-on with an upper bound of a maximum or a count, or a lower one of a minimum: "+
			"nothing else is known before the end")
	}
	return nil
}

func (r *resolver) screen() (err error) {
	s := &r.s.Screen
	s.Force, s.Off, s.Quiet = r.v.On("--tui"), r.v.On("--no-tui"), r.v.On("--quiet")
	s.NoColor, s.NoMouse = r.v.On("--no-color"), r.v.On("--no-mouse")
	s.LogFile, s.ProgressGiven, s.ExportDir = r.v.Text("--log-file"), r.given("--progress"), r.v.Text("--export-dir")
	if s.Force && s.Off {
		return &flags.UsageError{Text: "--tui and --no-tui exclude each other", Kind: flags.Conflict}
	}
	fps, err := r.count("--fps", 1, 60)
	if err != nil {
		return err
	}
	s.FPS = int(fps)
	s.Progress, err = r.span("--progress")
	return err
}

// span reads a time: a number of seconds, or a number with a unit.
func (r *resolver) span(name string) (time.Duration, error) {
	given := r.v.Get(name)
	if given.Source == flags.FromDefault {
		return 0, nil
	}
	d, err := time.ParseDuration(given.Text)
	if err != nil {
		d, err = time.ParseDuration(given.Text + "s")
	}
	if err != nil || d < 0 {
		return 0, &flags.UsageError{Text: fmt.Sprintf("%s: got %q, must be a time such as 30s, 2m or 1.5 (seconds)", name, given.Text)}
	}
	if d == 0 && name == "--duration" {
		return 0, &flags.UsageError{Text: "--duration: got 0, must be positive"}
	}
	return d, nil
}

// count reads a whole number of one of our own flags.
func (r *resolver) count(name string, low, high uint64) (uint64, error) {
	v := r.v.Get(name)
	if v.Int == nil {
		return 0, nil
	}
	if !v.Int.IsUint64() || v.Int.Uint64() < low || v.Int.Uint64() > high {
		return 0, &flags.UsageError{Text: fmt.Sprintf("%s: got %s, must be between %d and %d", name, v.Text, low, high)}
	}
	return v.Int.Uint64(), nil
}

// deprecations collects the notes on flags and variables that will go.
func (r *resolver) deprecations() error {
	note := func(name, version, use string) {
		text := fmt.Sprintf("%s is deprecated, use %s", name, use)
		if version != "" {
			text = fmt.Sprintf("%s is deprecated and will be removed in %s; use %s.", name, version, use)
		}
		r.s.Deprecations = append(r.s.Deprecations, text)
	}
	if r.v.Text("--sglang-schedule-policy") == "fcfs" {
		note("--sglang-schedule-policy fcfs", flags.NextVersion, "--sglang-schedule-policy fifo")
	}
	for _, f := range flags.All() {
		if v := r.v.Get(f.Name); f.ReplacedBy != "" && v.Given() {
			note(v.Spelling, f.Until, f.ReplacedBy)
		}
	}
	return nil
}

// profile opens the profile: the one that was asked for, or the demonstration if nothing about workers was said.
func (r *resolver) profile() error {
	name := r.v.Text("--profile")
	if name == "" && (r.bare != NoDemo && !r.aboutWorkers() || r.bare == Alone && !r.aboutServing()) {
		name = "demo"
		r.s.Alone = r.aboutWorkers()
	}
	if name == "" {
		return nil
	}
	p, source, err := profiles.UserStore().Open(name)
	if err != nil {
		if wrong := (*profiles.FileError)(nil); !errors.As(err, &wrong) {
			err = fmt.Errorf("--profile: %w", err)
		}
		return &ProfileError{err}
	}
	if source.Hides() {
		r.warn("profile %s is your own, %s, which hides the shipped one", name, source.Path)
	}
	r.from, r.s.From, r.s.Profile = p, p, p.Name
	whole := profiles.NewObject()
	if !r.given("--discovery-backend") && p.Load != nil {
		r.s.Load = p.Load
		if whole, err = LoadSettings(p.Load); err != nil {
			return err
		}
	}
	whole.Set("workers", nil)
	r.fromProfile(whole)
	return nil
}

// aboutWorkers reports whether the command line has any flag of the reference.
func (r *resolver) aboutWorkers() bool {
	for _, v := range r.v.FromCommandLine() {
		if !v.Flag.Ours {
			return true
		}
	}
	return false
}

// aboutServing reports whether the command line has a flag that only matters to who finds the worker.
func (r *resolver) aboutServing() bool {
	return slices.ContainsFunc(r.v.FromCommandLine(), func(v flags.Value) bool {
		return !v.Flag.Ours && slices.Contains([]flags.Group{flags.GroupModel, flags.GroupWorkers, flags.GroupDisagg}, v.Flag.Group)
	})
}

func (r *resolver) planes() error {
	p := &r.s.Planes
	p.Discovery, p.Request, p.Response = r.v.Text("--discovery-backend"), r.v.Text("--request-plane"), r.v.Text("--response-plane")
	p.Event, p.EmbeddedNATS = r.v.Text("--event-plane"), r.v.On("--embedded-nats")
	p.DiscoveryGiven = r.v.Get("--discovery-backend").Given()
	p.Reregister, p.ReregisterGiven = r.v.On("--reregister"), r.v.Get("--reregister").Given()
	if p.Event == "" {
		p.Event = "zmq"
	}
	if r.s.Load != nil {
		p.Discovery, p.Event = "mem", "zmq"
	} else if r.s.AB != "" {
		return &flags.UsageError{Text: "--ab needs a built-in load: a profile with [load], and no --discovery-backend"}
	}
	return nil
}

// strict turns warnings into an error if that was asked for.
func (r *resolver) strict() error {
	if r.v.On("--strict") && len(r.s.Warnings) > 0 {
		return fmt.Errorf("--strict: %s", strings.Join(r.s.Warnings, "; "))
	}
	return nil
}
