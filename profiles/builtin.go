package profiles

import (
	"embed"
	"io/fs"
	"slices"
	"strings"
)

//go:embed *.toml
var builtin embed.FS

// Names lists the profiles shipped in the program.
func Names() []string {
	files, err := fs.Glob(builtin, "*.toml")
	if err != nil {
		panic(err) // the pattern is constant
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(f, extension)
	}
	return files
}

// shipped returns the text of a profile shipped in the program.
func shipped(name string) ([]byte, bool) {
	if !slices.Contains(Names(), name) {
		return nil, false
	}
	data, err := builtin.ReadFile(name + extension)
	if err != nil {
		panic(err) // it is in the list
	}
	return data, true
}
