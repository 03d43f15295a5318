// Package page writes figures as one HTML file: tables and plots that need neither network nor script, follow the light
// or dark scheme of the reader, and have their data beside them in words for those who do not see them.
package page

import (
	_ "embed"
	"html/template"
	"io"
)

// Page is a document.
type Page struct {
	Title    string
	Subtitle string
	Verdict  string // one line that stands out; empty for none
	Failed   bool   // the verdict is bad news
	Sections []Section
	Notes    []string
}

// Section is a heading with what belongs to it; each part may be missing.
type Section struct {
	Heading string
	Text    string
	Table   *Table
	Plots   []Plot
}

// Table has a head and rows of as many cells. All columns but the first are numbers, unless Text says so.
type Table struct {
	Caption string
	Head    []string
	Rows    []Row
	Text    bool // all cells are words
}

// Row is the cells of a line.
type Row struct {
	Cells []string
	Mark  Mark
}

// Mark says what is special about a row; every mark shows as a word or shape as well as a colour.
type Mark string

// Marks.
const (
	Plain  Mark = ""
	Good   Mark = "good"
	Bad    Mark = "bad"
	Chosen Mark = "chosen"
)

//go:embed page.html
var source string

// Write writes a page.
func Write(w io.Writer, p Page) error {
	t, err := template.New("page").Funcs(template.FuncMap{"svg": func(p Plot) template.HTML { return template.HTML(p.svg()) }}).Parse(source)
	if err != nil {
		return err
	}
	return t.Execute(w, p)
}
