package live

import (
	"context"
	"sync"
	"time"

	"mockbench/engine"
)

const (
	// maxGap is the longest time the process is believed to have been away by chance. A longer one means that it was
	// stopped (a debugger, SIGSTOP, a suspended machine), and simulated time stops with it.
	maxGap = time.Second

	// heartbeat is how often a clock in use looks at the wall clock if nobody else asks it for the time.
	heartbeat = maxGap / 4
)

// Clock maps wall time to simulated time. All workers of a process share one, so that pause and speed act on all of
// them at the same moment. It is safe for concurrent use.
//
// Simulated time does not jump when the process was stopped: while a worker uses the clock, a stretch of more than
// about a second in which no code of the process ran does not count.
type Clock struct {
	read func() time.Time // the wall clock

	mu       sync.Mutex
	wall     time.Time   // when sim was read
	sim      engine.Time // simulated time at wall
	speed    float64     // simulated seconds a wall second
	paused   bool
	changed  chan struct{} // closed and replaced at every change
	users    int
	beat     *time.Timer   // running while there are users
	seen     time.Time     // latest reading of the wall clock, if there are users
	absorbed time.Duration // sum of the gaps that did not count
}

// NewClock starts a clock at simulated time 0. speed is positive.
func NewClock(speed float64) *Clock { return newClock(speed, time.Now) }

func newClock(speed float64, read func() time.Time) *Clock {
	return &Clock{read: read, wall: read(), speed: speed, changed: make(chan struct{})}
}

// Now returns the simulated time.
func (c *Clock) Now() engine.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

// now moves the clock on to the present and returns the simulated time.
func (c *Clock) now() engine.Time {
	wall := c.read()
	if gap := wall.Sub(c.seen); c.users > 0 && gap > maxGap {
		c.absorbed += gap
		c.wall = c.wall.Add(gap)
	}
	c.seen = wall
	if c.paused {
		c.wall = wall
		return c.sim
	}
	return c.sim + engine.Time(wall.Sub(c.wall).Seconds()*1000*c.speed)
}

// Until returns how long to sleep until simulated time t, and a channel that is closed when the answer changes. ok is
// false while the clock is paused. A sleeper asks again when it wakes up: the answer may have grown by a gap.
func (c *Clock) Until(t engine.Time) (d time.Duration, changed <-chan struct{}, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paused {
		return 0, c.changed, false
	}
	left := float64(t-c.now()) / c.speed * float64(time.Millisecond)
	return time.Duration(min(left, float64(time.Hour))), c.changed, true
}

// Sleep waits for some simulated time, or until ctx ends.
func (c *Clock) Sleep(ctx context.Context, d engine.Time) error {
	end := c.Now() + d
	for {
		left, changed, running := c.Until(end)
		if running && left <= 0 {
			return ctx.Err()
		}
		var rings <-chan time.Time
		if running {
			rings = time.After(left)
		}
		select {
		case <-rings:
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Pause stops simulated time. Workers start no pass while it stands still, and a running pass does not end.
func (c *Clock) Pause() { c.change(func() { c.paused = true }) }

// Resume lets simulated time go on from where it stopped.
func (c *Clock) Resume() { c.change(func() { c.paused = false }) }

// SetSpeed changes how fast simulated time passes, from now on; it acts on sleepers at once. speed is positive, other
// values are ignored.
func (c *Clock) SetSpeed(speed float64) {
	if speed > 0 {
		c.change(func() { c.speed = speed })
	}
}

func (c *Clock) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sim = c.now()
	c.wall = c.seen
	f()
	close(c.changed)
	c.changed = make(chan struct{})
}

// Paused reports whether simulated time stands still.
func (c *Clock) Paused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.paused
}

// Speed returns simulated seconds a wall second.
func (c *Clock) Speed() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.speed
}

// Absorbed returns how much wall time did not count because the process was stopped.
func (c *Clock) Absorbed() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.absorbed
}

// hold keeps the clock looking at the wall clock until release is called as often.
func (c *Clock) hold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.users++
	if c.users == 1 {
		c.seen = c.read()
		c.beat = time.AfterFunc(heartbeat, c.look)
	}
}

func (c *Clock) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.users--
	if c.users == 0 {
		c.beat.Stop()
	}
}

func (c *Clock) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.users > 0 {
		c.now()
		c.beat.Reset(heartbeat)
	}
}
