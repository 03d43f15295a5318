package engine

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// ErrActive is returned for a request whose id the rank still owns; nothing changes.
var ErrActive = errors.New("request is already active")

// Kind says in which way a setting is wrong. Tests compare setting and kind, never the text.
type Kind string

const (
	KindRange       Kind = "range"       // value outside what is allowed
	KindType        Kind = "type"        // not a value of the setting's type
	KindUnknown     Kind = "unknown"     // no such setting
	KindUnsupported Kind = "unsupported" // not with this backend, role or mode
	KindConflict    Kind = "conflict"    // two settings exclude each other
	KindMissing     Kind = "missing"     // another setting is needed
)

// SettingError is a wrong setting: which one, what was given, what is allowed.
type SettingError struct {
	Setting string // canonical name, for example "engine.block_size"
	Kind    Kind
	Given   string
	Allowed string
}

func (e *SettingError) Error() string {
	setting := e.Setting
	if strings.ContainsFunc(setting, func(c rune) bool { return !unicode.IsPrint(c) }) {
		setting = strconv.Quote(setting) // a key of a file can hold anything, the error stays one line
	}
	if e.Given == "" {
		return fmt.Sprintf("%s: %s", setting, e.Allowed)
	}
	return fmt.Sprintf("%s: got %s, %s", setting, e.Given, e.Allowed)
}
