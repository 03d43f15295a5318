package flags

import "github.com/spf13/pflag"

// NewSet returns the empty set of flags of a command, which keeps the order of its flags and prints nothing by itself.
func NewSet(program string) *pflag.FlagSet {
	f := pflag.NewFlagSet(program, pflag.ContinueOnError)
	f.SortFlags = false
	f.Usage = func() {}
	return f
}

// ParseSet reads the command line of a command. Errors are *UsageError.
func ParseSet(f *pflag.FlagSet, args []string) error {
	if err := f.Parse(args); err != nil {
		return &UsageError{Text: err.Error()}
	}
	return nil
}
