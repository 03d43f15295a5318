package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"mockbench/engine"
	"mockbench/profiles"
)

// located adds to an error about a setting the line of the JSON text that gives it.
func located(name string, text []byte, err error) error {
	if s := (*engine.SettingError)(nil); errors.As(err, &s) {
		if line := lineOf(text, s.Setting); line > 0 {
			return fmt.Errorf("%s: line %d: %w", name, line, err)
		}
	}
	return fmt.Errorf("%s: %w", name, err)
}

// lineOf returns the line of the last key in a JSON text that has a dotted name, or of the nearest object around it; 0
// if the text has neither.
func lineOf(text []byte, setting string) int {
	d := json.NewDecoder(bytes.NewReader(text))
	line, deepest := 0, -1
	var walk func(path string, depth int) error
	walk = func(path string, depth int) error {
		t, err := d.Token()
		if err != nil || t != json.Delim('{') && t != json.Delim('[') {
			return err
		}
		for d.More() {
			inner := path
			if t == json.Delim('{') {
				key, err := d.Token()
				if err != nil {
					return err
				}
				inner = strings.TrimPrefix(path+"."+key.(string), ".")
				if (inner == setting || strings.HasPrefix(setting, inner+".")) && depth >= deepest {
					line, deepest = 1+bytes.Count(text[:d.InputOffset()], []byte{'\n'}), depth
				}
			}
			if err := walk(inner, depth+1); err != nil {
				return err
			}
		}
		_, err = d.Token()
		return err
	}
	_ = walk("", 0) // what cannot be read holds no more lines
	return line
}

// CheckJSON checks the text of a file for --extra-engine-args. The error names the line and the setting.
func CheckJSON(name string, text []byte) error {
	o, err := profiles.ParseJSON(name, text)
	if err != nil {
		return err
	}
	if _, err = profiles.Resolve(o); err != nil {
		return located(name, text, err)
	}
	return nil
}
