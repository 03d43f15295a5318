package modelcard

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// deepest is how far values may be nested.
const deepest = 1000

// json5 reads JSON5, in which config.json may be written: comments, trailing commas, bare keys, single quotes, hex.
type json5 struct {
	text  string
	at    int
	depth int
}

// parseJSON5 returns a value as encoding/json would, with numbers as json.Number. NaN and infinities become nil.
func parseJSON5(text string) (any, error) {
	p := json5{text: text}
	v, err := p.value()
	if err == nil {
		if p.space(); p.at < len(p.text) {
			err = errors.New("something follows the value")
		}
	}
	if err != nil {
		line := strings.Count(text[:min(p.at, len(text))], "\n") + 1
		return nil, fmt.Errorf("line %d: %w", line, err)
	}
	return v, nil
}

// space skips white space and comments.
func (p *json5) space() {
	for p.at < len(p.text) {
		rest := p.text[p.at:]
		r, size := utf8.DecodeRuneInString(rest)
		switch {
		case unicode.IsSpace(r) || r == '\uFEFF':
			p.at += size
		case strings.HasPrefix(rest, "//"):
			p.skipPast("\n")
		case strings.HasPrefix(rest, "/*"):
			p.at += 2
			p.skipPast("*/")
		default:
			return
		}
	}
}

func (p *json5) skipPast(end string) {
	if i := strings.Index(p.text[p.at:], end); i >= 0 {
		p.at += i + len(end)
	} else {
		p.at = len(p.text)
	}
}

// take skips space and then c, if it is next.
func (p *json5) take(c byte) bool {
	p.space()
	if p.at < len(p.text) && p.text[p.at] == c {
		p.at++
		return true
	}
	return false
}

func (p *json5) value() (any, error) {
	if p.depth++; p.depth > deepest {
		return nil, errors.New("nested too deeply")
	}
	defer func() { p.depth-- }()
	switch {
	case p.take('{'):
		return p.object()
	case p.take('['):
		return p.array()
	case p.quoted():
		return p.string()
	}
	return scalar(p.word())
}

func (p *json5) object() (any, error) {
	object := map[string]any{}
	for !p.take('}') {
		name := ""
		if p.quoted() {
			var err error
			if name, err = p.string(); err != nil {
				return nil, err
			}
		} else if name = p.word(); name == "" {
			return nil, errors.New("a name is missing")
		}
		if !p.take(':') {
			return nil, fmt.Errorf("no colon behind %q", name)
		}
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		object[name] = v
		if !p.take(',') {
			if !p.take('}') {
				return nil, fmt.Errorf("neither comma nor } behind %q", name)
			}
			break
		}
	}
	return object, nil
}

func (p *json5) array() (any, error) {
	array := []any{}
	for !p.take(']') {
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		array = append(array, v)
		if !p.take(',') {
			if !p.take(']') {
				return nil, errors.New("neither comma nor ] behind a value")
			}
			break
		}
	}
	return array, nil
}

// word takes everything up to the next mark or space.
func (p *json5) word() string {
	p.space()
	rest := p.text[p.at:]
	end := strings.IndexFunc(rest, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`,:[]{}"'/`, r) })
	if end < 0 {
		end = len(rest)
	}
	p.at += end
	return rest[:end]
}

func scalar(word string) (any, error) {
	switch word {
	case "null":
		return nil, nil
	case "true", "false":
		return word == "true", nil
	}
	number := strings.TrimLeft(word, "+-")
	if len(word)-len(number) > 1 || number == "" {
		return nil, fmt.Errorf("%q is no value", word)
	}
	sign := strings.TrimSuffix(word, number)
	if number == "NaN" || number == "Infinity" {
		return nil, nil
	}
	if hex, ok := strings.CutPrefix(strings.ToLower(number), "0x"); ok {
		n, err := strconv.ParseUint(hex, 16, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is no number", word)
		}
		number = strconv.FormatUint(n, 10)
	}
	if strings.HasPrefix(number, ".") {
		number = "0" + number
	}
	number = strings.TrimSuffix(number, ".")
	text := strings.TrimPrefix(sign, "+") + number
	if !json.Valid([]byte(text)) {
		return nil, fmt.Errorf("%q is no value", word)
	}
	return json.Number(text), nil
}

// quoted reports whether a string is next.
func (p *json5) quoted() bool {
	p.space()
	return p.at < len(p.text) && (p.text[p.at] == '"' || p.text[p.at] == '\'')
}

func (p *json5) string() (string, error) {
	quote := p.text[p.at]
	p.at++
	var b strings.Builder
	for p.at < len(p.text) {
		switch c := p.text[p.at]; c {
		case quote:
			p.at++
			return b.String(), nil
		case '\\':
			p.at++
			if err := p.escape(&b); err != nil {
				return "", err
			}
		default:
			b.WriteByte(c)
			p.at++
		}
	}
	return "", errors.New("a string does not end")
}

// escapes are the letters with a meaning of their own; a line end continues the string.
var escapes = map[rune]string{'n': "\n", 't': "\t", 'r': "\r", 'b': "\b", 'f': "\f", 'v': "\v", '0': "\x00", '\n': "", '\r': ""}

func (p *json5) escape(b *strings.Builder) error {
	r, size := utf8.DecodeRuneInString(p.text[p.at:])
	p.at += size
	switch r {
	case 'x':
		c, err := p.hex(2)
		b.WriteRune(c)
		return err
	case 'u':
		c, err := p.hex(4)
		if err == nil && utf16.IsSurrogate(c) && strings.HasPrefix(p.text[p.at:], `\u`) {
			p.at += 2
			var low rune
			low, err = p.hex(4)
			c = utf16.DecodeRune(c, low)
		}
		b.WriteRune(c)
		return err
	}
	if text, ok := escapes[r]; ok {
		b.WriteString(text)
	} else {
		b.WriteRune(r)
	}
	return nil
}

func (p *json5) hex(digits int) (rune, error) {
	if p.at+digits > len(p.text) {
		return 0, errors.New("an escape is cut")
	}
	n, err := strconv.ParseUint(p.text[p.at:p.at+digits], 16, 32)
	p.at += digits
	if err != nil {
		return 0, errors.New("an escape has no hex digits")
	}
	return rune(n), nil
}
