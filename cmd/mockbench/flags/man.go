package flags

import (
	"fmt"
	"io"
	"strings"
)

// Man writes the manual page, in the macros of man(7).
func Man(w io.Writer, commands []Command) {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p(`.TH MOCKBENCH 1 "" "stands in for Dynamo %s" "User Commands"`, ReferenceVersion)
	p(".SH NAME\nmockbench \\- simulated LLM engine workers for a Dynamo frontend, with a screen")
	p(".SH SYNOPSIS\n.B mockbench\n.RI [ FLAGS ]\n.br\n.B mockbench\n.I COMMAND\n.RI [ ARGUMENTS ]")
	summary, usage, _ := strings.Cut(intro, "\n\n")
	p(".SH DESCRIPTION\n%s\n.PP\n.nf\n%s.fi\n.PP\n%s", roff(summary), roff(usage), strings.TrimSpace(roff(notes)))
	p(".SH COMMANDS\nEach has its own\n.BR \\-\\-help .")
	for _, c := range commands {
		if !c.Hidden {
			p(".TP\n.B %s\n%s.", roff(strings.TrimSpace(c.Name+" "+c.Args)), roff(c.Summary))
		}
	}
	p(".SH READING OF ARGUMENTS")
	for _, rule := range readingRules {
		p(".IP \\(bu 2\n%s", roff(strings.ReplaceAll(rule, "`", "")))
	}
	p(".SH FLAGS")
	for _, g := range groups {
		p(".SS %s", roff(string(g)))
		for _, f := range table {
			if f.Group == g && !f.Hidden {
				p(".TP\n.B %s\n%s", roff(f.usage()), roff(f.describe()))
			}
		}
	}
	p(".SH EXIT STATUS")
	for _, c := range ExitCodes {
		p(".TP\n.B %s\n%s", roff(c.Status), roff(c.Meaning))
	}
	io.WriteString(w, b.String())
}

// roff escapes a text: dashes are those of the keyboard, and no line starts a request.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`).Replace(text)
	if strings.HasPrefix(text, ".") {
		text = `\&` + text
	}
	return strings.ReplaceAll(text, "\n.", "\n\\&.")
}
