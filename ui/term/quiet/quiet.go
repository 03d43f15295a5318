// Package quiet keeps the terminal library from asking the terminal for its background colour when the program starts.
//
// Bubble Tea asks in its own package initialisation, in every run of a binary that imports it: a silent terminal then
// costs five seconds, and escape bytes precede the output of --help. It does not ask a terminal named "dumb", so this
// package takes that name before the library is initialised. It may import nothing but os: only then is it ready first.
package quiet

import "os"

var term, isSet = hide()

func hide() (string, bool) {
	name, ok := os.LookupEnv("TERM")
	os.Setenv("TERM", "dumb")
	return name, ok
}

// Restore puts TERM back to what the program was started with. Main calls it first; it may be called again.
func Restore() {
	if isSet {
		os.Setenv("TERM", term)
	} else {
		os.Unsetenv("TERM")
	}
}
