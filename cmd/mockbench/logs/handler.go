package logs

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"time"
)

// handler is the slog side of a Log.
type handler struct {
	log    *Log
	target string
	attrs  []slog.Attr
	group  string
	every  bool // nothing is held back
}

// Enabled implements slog.Handler.
func (h *handler) Enabled(_ context.Context, level slog.Level) bool {
	return h.log.o.Filter.Enabled(h.target, level)
}

// Handle implements slog.Handler.
func (h *handler) Handle(_ context.Context, r slog.Record) error {
	h.log.handle(r, h.target, slices.Clone(h.attrs), h.every)
	return nil
}

// WithAttrs implements slog.Handler.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *h
	c.attrs = slices.Clone(h.attrs)
	for _, a := range attrs {
		if a.Key == TargetKey {
			c.target = a.Value.String()
			continue
		}
		a.Key = h.group + a.Key
		c.attrs = append(c.attrs, a)
	}
	return &c
}

// WithGroup implements slog.Handler.
func (h *handler) WithGroup(name string) slog.Handler {
	c := *h
	c.group = h.group + name + "."
	return &c
}

func (l *Log) jsonLine(now time.Time, level slog.Level, target, message string, attrs []slog.Attr) []byte {
	var b bytes.Buffer
	member := func(key string, v any) {
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		name, _ := json.Marshal(key)
		value, err := json.Marshal(v)
		if err != nil {
			value, _ = json.Marshal(err.Error())
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	member("time", l.clock(now))
	member("level", levelName(level))
	member("target", target)
	member("message", message)
	for _, a := range attrs {
		switch v := a.Value.Any().(type) {
		case error:
			member(a.Key, v.Error())
		case time.Duration:
			member(a.Key, v.String())
		default:
			member(a.Key, v)
		}
	}
	return append(append([]byte{'{'}, b.Bytes()...), '}', '\n')
}
