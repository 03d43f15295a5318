package outputs

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"mockbench/engine"
)

// Table holds planned answers by key, as read from a response trace.
type Table struct {
	answers map[string][]uint32
	Rows    int // rows with an answer
	Ignored int // rows without one
}

// Lookup returns the planned answer of a key. Keys are compared to the letter.
func (t *Table) Lookup(key string) (ids []uint32, ok bool) {
	if t == nil {
		return nil, false
	}
	ids, ok = t.answers[key]
	return ids, ok
}

// LoadTable reads a response trace: one JSON object a line in the manner of Mooncake traces. Any bad line is an error
// that names it.
func LoadTable(path string) (*Table, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, traceError(engine.KindMissing, path, "must be a readable file: "+reason(err))
	}
	defer f.Close()
	t, err := ReadTable(f)
	var bad *lineError
	switch {
	case errors.As(err, &bad):
		return nil, traceError(bad.kind, fmt.Sprintf("%s line %d", path, bad.line), bad.text)
	case err != nil:
		return nil, traceError(engine.KindType, path, "must be a readable file: "+reason(err))
	}
	return t, nil
}

// reason strips the path, which the message names already.
func reason(err error) string {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

func traceError(kind engine.Kind, given, allowed string) error {
	return &engine.SettingError{Setting: "response_replay_trace_path", Kind: kind, Given: given, Allowed: allowed}
}

// lineError is a bad line of a trace, counted from 1.
type lineError struct {
	line int
	kind engine.Kind
	text string
}

func (e *lineError) Error() string { return fmt.Sprintf("line %d %s", e.line, e.text) }

// ReadTable reads a response trace from r.
func ReadTable(r io.Reader) (*Table, error) {
	t := &Table{answers: map[string][]uint32{}}
	turns := map[string]int{}
	lines := map[string]int{} // by key, for the message about duplicates
	in := bufio.NewReader(r)
	for line := 1; ; line++ {
		text, err := in.ReadString('\n')
		if err != nil && err != io.EOF {
			return nil, err
		}
		if strings.TrimSpace(text) != "" {
			if bad := t.add(text, line, turns, lines); bad != nil {
				return nil, bad
			}
		}
		if err == io.EOF {
			return t, nil
		}
	}
}

// row is what a line says of its answer; other fields are somebody else's.
type row struct {
	RequestID *string
	SessionID *string
	Length    *uint64
	IDs       []uint32
}

func (t *Table) add(text string, line int, turns, lines map[string]int) *lineError {
	var r row
	if err := r.parse(text); err != nil {
		return &lineError{line, engine.KindType, "must be a JSON object with known types: " + err.Error()}
	}
	turn := 0
	if r.SessionID != nil {
		turn = turns[*r.SessionID]
		turns[*r.SessionID]++
	}
	switch {
	case r.IDs == nil:
		t.Ignored++
		return nil
	case r.Length == nil:
		return &lineError{line, engine.KindMissing, "must have output_length beside output_token_ids"}
	case *r.Length != uint64(len(r.IDs)):
		return &lineError{line, engine.KindConflict,
			fmt.Sprintf("must have as many output_token_ids as output_length %d says, has %d", *r.Length, len(r.IDs))}
	}
	key := r.key(turn, line)
	if first, twice := lines[key]; twice {
		return &lineError{line, engine.KindConflict, fmt.Sprintf("must not repeat the key %q of line %d", key, first)}
	}
	lines[key] = line
	t.answers[key] = r.IDs
	t.Rows++
	return nil
}

// key names the answer: the request's id, else session and turn, else the line.
func (r *row) key(turn, line int) string {
	if r.RequestID != nil {
		if id := trim(*r.RequestID); id != "" {
			return id
		}
	}
	if r.SessionID != nil {
		if id := trim(*r.SessionID); id != "" {
			return fmt.Sprintf("%s:%d", id, turn)
		}
	}
	return fmt.Sprintf("line:%d", line-1)
}

func trim(s string) string { return strings.TrimFunc(s, unicode.IsSpace) }

// parse reads one line. Field names are exact, and output_tokens is another name of output_length: both in one row are
// one too many.
func (r *row) parse(text string) error {
	d := json.NewDecoder(strings.NewReader(text))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return errors.New("no object")
	}
	seen := map[string]bool{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		field := name.(string)
		if field == "output_tokens" {
			field = "output_length"
		}
		var into any
		switch field {
		case "request_id":
			into = &r.RequestID
		case "session_id":
			into = &r.SessionID
		case "output_length":
			into = &r.Length
		case "output_token_ids":
			into = &r.IDs
		default:
			into = new(json.RawMessage)
			field = ""
		}
		if field != "" && seen[field] {
			return fmt.Errorf("%s is given twice", field)
		}
		seen[field] = true
		if err := d.Decode(into); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("something follows the object")
	}
	return nil
}
