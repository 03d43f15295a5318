// Package flags reads the command line: one table of flags feeds the reader, the help text and the documentation.
//
// The reader has the habits of the reference's own reader, because scripts depend on them: unambiguous prefixes, on and
// off pairs, negative numbers as values, underscores between digits.
package flags

//go:generate go test .. -run TestDocumentation -update

import (
	"math/big"
	"slices"
)

// Kind says what value a flag takes.
type Kind uint8

// Kinds of flags.
const (
	Switch Kind = iota // no value
	Int                // any size; ranges are checked later
	Float
	String
)

// Flag is one row of the table.
type Flag struct {
	Name    string   // with dashes
	Aliases []string // other spellings
	Off     []string // spellings that switch it off; only of a Switch
	Kind    Kind
	Arg     string   // what the help calls the value
	Allowed []string // closed list, checked on the command line only
	Words   []string // values that completion offers; whether others are allowed is settled later
	Default string   // as the help shows it; empty if unset
	Env     []string // environment variables that give a default, first set one wins
	Group   Group
	Field   string // where the value lands in the engine JSON, if it simply lands there
	Help    string // one sentence

	// InEngine marks a flag that lands in the engine JSON together with others.
	InEngine   bool
	Repeat     bool   // may be given several times, and all count
	Null       bool   // the texts "None" and "" mean unset
	ReplacedBy string // deprecated since this does the job
	Until      string // the version that will be without it, as the reference names it; empty if it names none
	Hidden     bool   // not in the help
	Ours       bool   // not a flag of the reference; never makes a prefix of one of its flags ambiguous
}

// Group is a section of the help.
type Group string

// Sections of the help, in order.
const (
	GroupRun     Group = "Run"
	GroupScreen  Group = "Screen"
	GroupModel   Group = "Model and endpoint"
	GroupEngine  Group = "Engine"
	GroupHost    Group = "Host offload"
	GroupTiming  Group = "Performance model"
	GroupOutput  Group = "Speculative decoding and output"
	GroupSGLang  Group = "SGLang and TensorRT-LLM"
	GroupDisagg  Group = "Disaggregation"
	GroupWorkers Group = "Workers and transport"
	GroupRouter  Group = "Router advertisement"
	GroupOther   Group = "Other"
)

var groups = []Group{GroupRun, GroupScreen, GroupModel, GroupEngine, GroupHost, GroupTiming, GroupOutput, GroupSGLang,
	GroupDisagg, GroupWorkers, GroupRouter, GroupOther}

// Source says where a value came from.
type Source uint8

// Sources, weakest first.
const (
	FromDefault Source = iota
	FromEnv
	FromFlag
)

// Value is the value of one flag.
type Value struct {
	Flag     *Flag
	Source   Source
	Spelling string // the spelling or variable that gave it
	Text     string
	Texts    []string // of a flag that was repeated, in order
	On       bool     // of a Switch
	Int      *big.Int
	Float    float64
	Unset    bool // a nullable flag that was given as unset
}

// Given reports whether the value comes from the command line or the environment.
func (v Value) Given() bool { return v.Source != FromDefault }

// Number returns the value of a flag that takes a number and was given one.
func (v Value) Number() (x float64, ok bool) {
	switch {
	case v.Unset:
	case v.Flag.Kind == Int && v.Int != nil:
		x, _ = v.Int.Float64()
		return x, true
	case v.Flag.Kind == Float:
		return v.Float, true
	}
	return 0, false
}

// Values are the values of all flags of a command line.
type Values struct {
	byName map[string]Value
	Exit   Exit
}

// Exit says that the command line asks for a text instead of a run.
type Exit uint8

// Reasons to print and leave.
const (
	ExitNone Exit = iota
	ExitHelp
	ExitVersion
)

// Get returns the value of a flag by its name in the table, which must exist.
func (v *Values) Get(name string) Value {
	if got, ok := v.byName[name]; ok {
		return got
	}
	f := find(name)
	if f == nil {
		panic("no flag " + name)
	}
	return defaultValue(f)
}

// On reports whether a switch is on.
func (v *Values) On(name string) bool { return v.Get(name).On }

// Text returns the text of a flag, empty if unset.
func (v *Values) Text(name string) string { return v.Get(name).Text }

// All returns the texts of a flag that may be repeated.
func (v *Values) All(name string) []string { return v.Get(name).Texts }

// FromCommandLine returns the values given on the command line, in the order of the table.
func (v *Values) FromCommandLine() []Value {
	var out []Value
	for _, f := range table {
		if got, ok := v.byName[f.Name]; ok && got.Source == FromFlag {
			out = append(out, got)
		}
	}
	return out
}

// All returns the table.
func All() []*Flag { return table }

func find(name string) *Flag {
	i := slices.IndexFunc(table, func(f *Flag) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return table[i]
}

func defaultValue(f *Flag) Value {
	v := Value{Flag: f, Text: f.Default}
	if f.Default == "" {
		return v
	}
	switch f.Kind {
	case Switch:
		v.On = f.Default == "on"
	case Int:
		v.Int, _ = ParseInt(f.Default)
	case Float:
		v.Float, _ = parseFloat(f.Default)
	}
	return v
}

// UsageError is a command line that cannot be read.
type UsageError struct {
	Text string
	Kind UsageKind
}

// UsageKind says in which way a command line is wrong. Tests compare it, never the text.
type UsageKind uint8

// Kinds of usage errors.
const (
	OtherUsage      UsageKind = iota
	UnknownFlag               // also a word that belongs to nothing
	AmbiguousFlag             // a prefix of several
	MissingValue              // nothing follows
	UnexpectedValue           // of a switch
	WrongType                 // no number
	UnknownValue              // not in a closed list
	UnknownField              // in the JSON of a flag
	BadConfig                 // a text or file that cannot be used as a whole
	Conflict                  // two flags exclude each other
)

func (e *UsageError) Error() string { return e.Text }

// Default returns the value of a flag that nobody gave; the flag must exist.
func Default(name string) Value { return (&Values{}).Get(name) }
