package logs

import (
	"log/slog"
	"strings"
)

// Filter says which messages are written: a level, and other levels for targets that start with a name.
type Filter struct {
	Level   slog.Level
	Targets []TargetLevel
}

// TargetLevel is the level of the targets that start with a name.
type TargetLevel struct {
	Target string
	Level  slog.Level
}

// Enabled reports whether a message of a target is written; the longest matching target decides.
func (f Filter) Enabled(target string, level slog.Level) bool {
	least, length := f.Level, -1
	for _, t := range f.Targets {
		if strings.HasPrefix(target, t.Target) && len(t.Target) > length {
			least, length = t.Level, len(t.Target)
		}
	}
	return level >= least
}

var levels = map[string]slog.Level{"off": LevelOff, "error": slog.LevelError, "warn": slog.LevelWarn, "warning": slog.LevelWarn,
	"info": slog.LevelInfo, "debug": slog.LevelDebug, "trace": LevelTrace}

// ParseFilter reads DYN_LOG: levels and target=level pairs, separated by commas. Words it does not know are returned and
// change nothing.
func ParseFilter(text string) (f Filter, unknown []string) {
	f.Level = slog.LevelInfo
	for _, word := range strings.Split(text, ",") {
		word = strings.TrimSpace(word)
		target, name, pair := strings.Cut(word, "=")
		if !pair {
			target, name = "", word
		}
		level, known := levels[strings.ToLower(name)]
		switch {
		case word == "":
		case !known:
			unknown = append(unknown, word)
		case pair:
			f.Targets = append(f.Targets, TargetLevel{target, level})
		default:
			f.Level = level
		}
	}
	return f, unknown
}
