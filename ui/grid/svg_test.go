package grid

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestSVG(t *testing.T) {
	g := New(8, 2)
	looks := []Look{Plain, {FG: 214, BG: 25, Bold: true}, {FG: Default, BG: Default, Reverse: true}}
	g.Area().Text(0, 0, "a<b & c", 0)
	g.Area().Text(0, 1, "XY", 1)
	g.Area().Text(2, 1, "Z", 2)
	text := g.SVG(looks, 233, 252)
	for _, want := range []string{
		`width="67" height="34"`,
		`<rect width="100%" height="100%" fill="#121212"/>`,
		`<text x="0.0" y="13" fill="#d0d0d0" xml:space="preserve" textLength="67.2">a&lt;b &amp; c </text>`,
		`<rect x="0.0" y="17" width="16.8" height="17" fill="#005faf"/>`,
		`<text x="0.0" y="30" fill="#ffaf00" font-weight="bold" xml:space="preserve" textLength="16.8">XY</text>`,
		`<rect x="16.8" y="17" width="8.4" height="17" fill="#d0d0d0"/>`,
		`<text x="16.8" y="30" fill="#121212" xml:space="preserve" textLength="8.4">Z</text>`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
