package logs

import (
	"cmp"
	"log/slog"
	"slices"
	"time"
)

// A message may come in a burst, then once a minute. All messages together have a larger burst and a rate that keeps an
// hour below 100 kB.
const (
	burst       = 10
	every       = time.Minute
	totalBurst  = 200
	totalEvery  = 12 * time.Second
	maxMessages = 1000 // different ones that are remembered
)

// key identifies a message: its fields may differ.
type key struct {
	level   slog.Level
	target  string
	message string
}

// bucket allows a burst and then one message an interval.
type bucket struct {
	tokens float64
	last   time.Time
	held   int
}

func (b *bucket) take(now time.Time, size float64, interval time.Duration) bool {
	if b.last.IsZero() {
		b.tokens = size
	} else {
		b.tokens = min(size, b.tokens+now.Sub(b.last).Seconds()/interval.Seconds())
	}
	b.last = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

// limits holds messages back. Messages below info are written only on request, and all of them.
type limits struct {
	messages map[key]*bucket
	total    bucket
}

func newLimits() limits { return limits{messages: map[key]*bucket{}} }

// allow reports whether a message may be written, and how many like it were held back before.
func (l *limits) allow(now time.Time, k key) (held int, ok bool) {
	if k.level < slog.LevelInfo {
		return 0, true
	}
	b := l.messages[k]
	if b == nil {
		if len(l.messages) >= maxMessages {
			clear(l.messages)
		}
		b = &bucket{}
		l.messages[k] = b
	}
	if !b.take(now, burst, every) || !l.total.take(now, totalBurst, totalEvery) {
		b.held++
		return 0, false
	}
	held, b.held = b.held, 0
	return held, true
}

// heldBack is a message that was counted and not written.
type heldBack struct {
	key
	count int
}

// flushed bounds what is told of messages that were held back.
const flushed = 20

// flush returns the messages that were held back most often; the rest is summed up in one.
func (l *limits) flush() []heldBack {
	var all []heldBack
	for k, b := range l.messages {
		if b.held > 0 {
			all = append(all, heldBack{k, b.held})
			b.held = 0
		}
	}
	slices.SortFunc(all, func(a, b heldBack) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.message, b.message))
	})
	if len(all) <= flushed {
		return all
	}
	rest := heldBack{key: key{slog.LevelWarn, DefaultTarget, "other messages were held back"}}
	for _, h := range all[flushed:] {
		rest.count += h.count
	}
	return append(all[:flushed], rest)
}
