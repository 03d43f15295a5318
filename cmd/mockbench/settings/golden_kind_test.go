package settings_test

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"mockbench/cmd/mockbench/flags"
	"mockbench/engine"
)

// reasons are the recorded kinds of failure that a kind of ours stands for. Where a rule is about two settings, the
// reference calls it a conflict, a missing requirement or a range as its wording goes.
var reasons = map[engine.Kind][]string{
	engine.KindRange:       {"out_of_range", "wrong_count", "bad_data", "io", "missing_requirement", "conflict"},
	engine.KindType:        {"wrong_type", "syntax", "bad_data"},
	engine.KindUnknown:     {"unknown_value", "unknown_field"},
	engine.KindUnsupported: {"unsupported", "conflict", "missing_requirement", "missing_dependency", "out_of_range"},
	engine.KindConflict:    {"conflict", "duplicate_field", "bad_data", "missing_requirement", "out_of_range"},
	engine.KindMissing:     {"missing_field", "missing_requirement", "conflict", "out_of_range"},
}

var usageReasons = map[flags.UsageKind]string{flags.UnknownFlag: "unknown_flag", flags.AmbiguousFlag: "ambiguous_flag",
	flags.MissingValue: "missing_value", flags.UnexpectedValue: "unexpected_value", flags.WrongType: "wrong_type",
	flags.UnknownValue: "unknown_value", flags.UnknownField: "unknown_field", flags.BadConfig: "bad_config", flags.Conflict: "conflict"}

// reasonsOf returns the recorded kinds of failure that an error can stand for.
func reasonsOf(err error) []string {
	var usage *flags.UsageError
	var setting *engine.SettingError
	var file *fs.PathError
	switch {
	case errors.As(err, &usage) && usage.Kind != flags.OtherUsage:
		return []string{usageReasons[usage.Kind]}
	case errors.As(err, &setting):
		return reasons[setting.Kind]
	case errors.As(err, &file):
		return []string{"io"}
	case strings.Contains(err.Error(), "AIS data"):
		return []string{"missing_dependency"}
	case strings.Contains(err.Error(), "not valid JSON"), strings.Contains(err.Error(), "not UTF-8"):
		return []string{"syntax", "wrong_type"}
	}
	return nil
}

// checkReason compares the kind of an error with the recorded one.
func checkReason(t *testing.T, c goldenCase, err error) {
	t.Helper()
	gist, ok := c.Expect["gist"].(map[string]any)
	if !ok {
		return
	}
	want := gist["reason"]
	number := want == "wrong_type" && slices.Contains(reasonsOf(err), "out_of_range") // more than 64 bits
	if want == "other" || number || slices.Contains(reasonsOf(err), want.(string)) {
		return
	}
	t.Errorf("%q is of kind %v, want %v", err, reasonsOf(err), want)
}
