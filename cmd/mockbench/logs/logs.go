// Package logs writes the program's log in the line shape of the reference, or as JSON lines, and keeps it small: a
// message that repeats is counted instead of repeated.
package logs

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode"
)

// Levels between and beyond those of slog.
const (
	LevelTrace = slog.Level(-8)
	LevelOff   = slog.Level(64)
)

// TargetKey is the attribute that names the part of the program a message comes from.
const TargetKey = "target"

// DefaultTarget is the target of messages that name none.
const DefaultTarget = "mockbench"

// Options say what is written and how.
type Options struct {
	Filter Filter
	JSON   bool
	Color  bool
	Local  bool             // local time with offset instead of UTC
	Now    func() time.Time // nil is time.Now
}

// Log writes lines to a writer that can be changed while it is in use.
type Log struct {
	o      Options
	mu     sync.Mutex
	out    []io.Writer
	limits limits
}

// New starts a log.
func New(o Options, out ...io.Writer) *Log {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Log{o: o, out: out, limits: newLimits()}
}

// SetOutput replaces the writers; the screen takes the terminal away from the log with it.
func (l *Log) SetOutput(out ...io.Writer) {
	l.mu.Lock()
	l.out = out
	l.mu.Unlock()
}

// Logger returns a logger for one part of the program.
func (l *Log) Logger(target string) *slog.Logger {
	return slog.New(&handler{log: l, target: target})
}

// Every is Logger for messages of which every one was asked for: none is held back.
func (l *Log) Every(target string) *slog.Logger {
	return slog.New(&handler{log: l, target: target, every: true})
}

// Flush writes how often each message was held back since it was last written.
func (l *Log) Flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, held := range l.limits.flush() {
		l.write(held.level, held.target, held.message, []slog.Attr{slog.Int("repeated", held.count)})
	}
}

func (l *Log) handle(r slog.Record, target string, attrs []slog.Attr, every bool) {
	r.Attrs(func(a slog.Attr) bool {
		attrs = append(attrs, a)
		return true
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	held, ok := 0, true
	if !every {
		held, ok = l.limits.allow(l.o.Now(), key{r.Level, target, r.Message})
	}
	if !ok {
		return
	}
	if held > 0 {
		attrs = append(attrs, slog.Int("repeated", held))
	}
	l.write(r.Level, target, r.Message, attrs)
}

func (l *Log) write(level slog.Level, target, message string, attrs []slog.Attr) {
	now := l.o.Now()
	var line []byte
	if l.o.JSON {
		line = l.jsonLine(now, level, target, message, attrs)
	} else {
		line = l.textLine(now, level, target, message, attrs)
	}
	for _, w := range l.out {
		w.Write(line) // a log that cannot be written has nowhere to say so
	}
}

func (l *Log) clock(now time.Time) string {
	if l.o.Local {
		return now.Format("2006-01-02T15:04:05.000000Z07:00")
	}
	return now.UTC().Format("2006-01-02T15:04:05.000000Z")
}

func (l *Log) textLine(now time.Time, level slog.Level, target, message string, attrs []slog.Attr) []byte {
	name := fmt.Sprintf("%5s", levelName(level))
	stamp := l.clock(now)
	if l.o.Color {
		name = levelColor(level) + name + "\x1b[0m"
		stamp, target = "\x1b[2m"+stamp+"\x1b[0m", "\x1b[2m"+target+"\x1b[0m"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s: %s", stamp, name, target, oneLine(message))
	for _, a := range attrs {
		fmt.Fprintf(&b, " %s=%s", a.Key, oneLine(a.Value.String()))
	}
	b.WriteByte('\n')
	return []byte(b.String())
}

// oneLine keeps control characters, also those of clients, out of the log: those of seven and of eight bits, line ends and
// marks that turn the direction of text.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			return ' '
		}
		return r
	}, text)
}

func levelName(level slog.Level) string {
	switch {
	case level < slog.LevelDebug:
		return "TRACE"
	case level < slog.LevelInfo:
		return "DEBUG"
	case level < slog.LevelWarn:
		return "INFO"
	case level < slog.LevelError:
		return "WARN"
	}
	return "ERROR"
}

func levelColor(level slog.Level) string {
	switch levelName(level) {
	case "TRACE":
		return "\x1b[35m"
	case "DEBUG":
		return "\x1b[34m"
	case "INFO":
		return "\x1b[32m"
	case "WARN":
		return "\x1b[33m"
	}
	return "\x1b[31m"
}
