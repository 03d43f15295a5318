// Package profiles holds the settings of a run: the one form in which flags, the JSON of the reference, TOML profiles and
// the environment end, and the profiles shipped in the program.
//
// Settings are merged as a tree of values ([Object]) and read once, by [Resolve], which checks everything and names the
// setting that is wrong.
package profiles
