package requestplane

import "sync"

// Limits bound the requests of one server, all endpoints together.
type Limits struct {
	Running int // requests being answered
	Waiting int // accepted requests that wait for one of those to end
}

// DefaultLimits are the reference's.
func DefaultLimits() Limits { return Limits{Running: 10_000, Waiting: 40_000} }

// EngineLimits returns the limits for an explicit bound on running requests. Bounds below the smallest possible, 1
// running and 2 waiting, are raised to it.
func EngineLimits(running, waiting int) Limits {
	return Limits{Running: max(1, running), Waiting: max(2, waiting)}
}

// limiter hands out slots first come, first served.
type limiter struct {
	limits Limits

	mu      sync.Mutex
	running int
	queue   []func()
	head    int // queue[:head] have left
}

type admission uint8

const (
	runNow admission = iota
	runLater
	refused
)

// enter asks for a slot. If it answers runLater, start is called by the goroutine that frees the slot.
func (l *limiter) enter(start func()) admission {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch waiting := len(l.queue) - l.head; {
	case waiting == 0 && l.running < l.limits.Running:
		l.running++
		return runNow
	case waiting < l.limits.Waiting:
		l.queue = append(l.queue, start)
		return runLater
	}
	return refused
}

// leave frees a slot and starts the request that has waited longest.
func (l *limiter) leave() {
	l.mu.Lock()
	if l.head == len(l.queue) {
		l.running--
		l.mu.Unlock()
		return
	}
	start := l.queue[l.head]
	l.queue[l.head] = nil
	l.head++
	if l.head == len(l.queue) || l.head > 1024 && l.head > len(l.queue)/2 {
		n := copy(l.queue, l.queue[l.head:])
		clear(l.queue[n:])
		l.queue, l.head = l.queue[:n], 0
	}
	l.mu.Unlock()
	start()
}

// load returns how many requests run and wait.
func (l *limiter) load() (running, waiting int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.running, len(l.queue) - l.head
}
