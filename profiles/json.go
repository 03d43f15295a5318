package profiles

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"mockbench/engine"
)

// ParseJSON reads one JSON object as the reference does: UTF-8 without byte-order mark, numbers kept as text, the last of
// equal keys counts. name says in errors where the text comes from.
func ParseJSON(name string, data []byte) (*Object, error) {
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("%s: not UTF-8 text", name)
	}
	if bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) {
		return nil, fmt.Errorf("%s: line 1: starts with a byte-order mark, save it as UTF-8 without one", name)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	v, err := parseValue(d)
	if err != nil {
		return nil, syntax(name, data, d, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, syntax(name, data, d, errors.New("text after the end of the value"))
	}
	o, ok := v.(*Object)
	if !ok {
		return nil, &engine.SettingError{Setting: name, Kind: engine.KindType, Given: kindOf(v), Allowed: "must be an object"}
	}
	return o, nil
}

func syntax(name string, data []byte, d *json.Decoder, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("the text ends too early")
	}
	if hint := slip(err); hint != "" {
		err = fmt.Errorf("%w: %s", err, hint)
	}
	at := data[:min(int(d.InputOffset()), len(data))]
	return fmt.Errorf("%s: line %d: not valid JSON: %w", name, 1+bytes.Count(at, []byte{'\n'}), err)
}

// slip names the habit of another notation that an error comes from, empty if none is known.
func slip(err error) string {
	for sign, hint := range map[string]string{
		"'}' looking for beginning of object key": "a comma before } must go",
		"']' looking for beginning of value":      "a comma before ] must go",
		`'\''`:                                    "texts and keys stand in double quotes",
		"character '/'":                           "JSON has no comments",
		"character '#'":                           "JSON has no comments",
		"character 'T'":                           "the words are true, false and null",
		"character 'F'":                           "the words are true, false and null",
		"character 'N'":                           "the words are true, false and null",
	} {
		if strings.Contains(err.Error(), sign) {
			return hint
		}
	}
	return ""
}

func parseValue(d *json.Decoder) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('{'):
		o := NewObject()
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := parseValue(d)
			if err != nil {
				return nil, err
			}
			o.put(key.(string), v)
		}
		_, err = d.Token()
		return o, err
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := parseValue(d)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = d.Token()
		return list, err
	}
	return t, nil
}

func kindOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return fmt.Sprint(v)
	case json.Number:
		return v.String()
	case string:
		return fmt.Sprintf("%q", v)
	case []any:
		return "a list"
	}
	return "an object"
}
