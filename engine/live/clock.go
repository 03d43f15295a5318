package live

import (
	"sync"
	"time"

	"mockbench/engine"
)

// Clock maps wall time to simulated time. All workers of a process share one, so that pause and speed act on all of
// them at the same moment. It is safe for concurrent use.
type Clock struct {
	mu      sync.Mutex
	wall    time.Time   // when sim was read
	sim     engine.Time // simulated time at wall
	speed   float64     // simulated seconds a wall second
	paused  bool
	changed chan struct{} // closed and replaced at every change
}

// NewClock starts a clock at simulated time 0. speed is positive.
func NewClock(speed float64) *Clock {
	return &Clock{wall: time.Now(), speed: speed, changed: make(chan struct{})}
}

// Now returns the simulated time.
func (c *Clock) Now() engine.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now(time.Now())
}

func (c *Clock) now(wall time.Time) engine.Time {
	if c.paused {
		return c.sim
	}
	return c.sim + engine.Time(wall.Sub(c.wall).Seconds()*1000*c.speed)
}

// Until returns how long to sleep until simulated time t, and a channel that is closed when the answer changes. ok is
// false while the clock is paused.
func (c *Clock) Until(t engine.Time) (d time.Duration, changed <-chan struct{}, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paused {
		return 0, c.changed, false
	}
	left := float64(t-c.now(time.Now())) / c.speed
	return time.Duration(left * float64(time.Millisecond)), c.changed, true
}

// Pause stops simulated time.
func (c *Clock) Pause() { c.set(true, 0) }

// Resume lets simulated time go on from where it stopped.
func (c *Clock) Resume() { c.set(false, 0) }

// SetSpeed changes how fast simulated time passes, from now on; speed is positive.
func (c *Clock) SetSpeed(speed float64) {
	c.mu.Lock()
	paused := c.paused
	c.mu.Unlock()
	c.set(paused, speed)
}

func (c *Clock) set(paused bool, speed float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wall := time.Now()
	c.sim, c.wall, c.paused = c.now(wall), wall, paused
	if speed > 0 {
		c.speed = speed
	}
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
