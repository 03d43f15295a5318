package logs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestLineShape(t *testing.T) {
	var b bytes.Buffer
	now := time.Date(2026, 11, 30, 2, 34, 3, 317549000, time.UTC)
	l := New(Options{Now: func() time.Time { return now }}, &b)
	l.Logger("mockbench::app").With("worker", "w0").Info("worker is registered", "error", errors.New("a\nb\u009b\u202e\u2028é"))
	want := "2026-11-30T02:34:03.317549Z  INFO mockbench::app: worker is registered worker=w0 error=a b   é\n"
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

func TestColorAndJSON(t *testing.T) {
	var b bytes.Buffer
	New(Options{Color: true}, &b).Logger("x").Warn("y")
	if !strings.Contains(b.String(), "\x1b[33m WARN\x1b[0m") {
		t.Errorf("no colour in %q", b.String())
	}
	b.Reset()
	New(Options{JSON: true}, &b).Logger("x").Warn("y", "n", 3, "d", time.Second, "error", errors.New("e"))
	var got map[string]any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got["level"] != "WARN" || got["target"] != "x" || got["message"] != "y" || got["n"] != 3.0 || got["d"] != "1s" || got["error"] != "e" {
		t.Errorf("got %v", got)
	}
}

func TestFilter(t *testing.T) {
	f, unknown := ParseFilter("Warning, mockbench::ui=debug ,foo,bar=loud")
	if fmt.Sprint(unknown) != "[foo bar=loud]" {
		t.Errorf("unknown words: %v", unknown)
	}
	for _, c := range []struct {
		target string
		level  slog.Level
		want   bool
	}{
		{"mockbench", slog.LevelInfo, false}, {"mockbench", slog.LevelWarn, true},
		{"mockbench::ui::feed", slog.LevelDebug, true}, {"mockbench::ui", LevelTrace, false},
	} {
		if got := f.Enabled(c.target, c.level); got != c.want {
			t.Errorf("%s at %v: %v", c.target, c.level, got)
		}
	}
	if f, unknown := ParseFilter(""); f.Level != slog.LevelInfo || unknown != nil {
		t.Error("nothing given means info")
	}
}

// An hour of whatever happens stays below 100 kB.
func TestAnHourIsSmall(t *testing.T) {
	for name, message := range map[string]func(i int) string{
		"one message":         func(int) string { return "subscriber is too slow, messages for it are dropped" },
		"all messages differ": func(i int) string { return fmt.Sprintf("request %d was refused for its size", i) },
		"twenty take turns":   func(i int) string { return fmt.Sprintf("something happened at rank %d", i%20) },
	} {
		var b bytes.Buffer
		now := time.Unix(0, 0)
		l := New(Options{Now: func() time.Time { return now }}, &b)
		log := l.Logger("mockbench::app")
		for i := range 36_000 {
			now = now.Add(100 * time.Millisecond)
			log.Warn(message(i), "worker", "w0", "request", "0f5a9e1c-77aa-4f55-8b31-5d3a3c9f1e11")
		}
		l.Flush()
		if b.Len() > 100_000 || b.Len() < 1000 {
			t.Errorf("%s: %d bytes in an hour", name, b.Len())
		}
		if !regexp.MustCompile(`repeated=\d+`).Match(b.Bytes()) {
			t.Errorf("%s: what was held back is not counted", name)
		}
	}
}
