package flags

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

var (
	intForm   = regexp.MustCompile(`^[+-]?[0-9]+(_[0-9]+)*$`)
	floatForm = regexp.MustCompile(`^[+-]?([0-9]+(_[0-9]+)*\.?([0-9]+(_[0-9]+)*)?|\.[0-9]+(_[0-9]+)*)([eE][+-]?[0-9]+(_[0-9]+)*)?$`)
	wordForm  = regexp.MustCompile(`(?i)^[+-]?(nan|inf|infinity)$`)

	// A word that starts with a dash is a value if it is one of these, and a flag otherwise.
	negativeForm = regexp.MustCompile(`^-([0-9]+|[0-9]*\.[0-9]+)$`)
)

// ParseInt reads an integer of any size: decimal digits, a sign, underscores between digits, spaces around it.
func ParseInt(text string) (*big.Int, bool) {
	text = strings.TrimSpace(text)
	if !intForm.MatchString(text) {
		return nil, false
	}
	return new(big.Int).SetString(strings.TrimPrefix(strings.ReplaceAll(text, "_", ""), "+"), 10)
}

// parseFloat reads a decimal number, nan or infinity; a number too large for a double is infinite.
func parseFloat(text string) (float64, bool) {
	text = strings.TrimSpace(text)
	if !floatForm.MatchString(text) && !wordForm.MatchString(text) {
		return 0, false
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
	if err != nil && !strings.Contains(err.Error(), "value out of range") {
		return 0, false
	}
	return f, true
}

// parseBool reads a switch of the environment: everything that is not one of four words is off.
func parseBool(text string) bool {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "true", "1", "yes", "on":
		return true
	}
	return false
}
