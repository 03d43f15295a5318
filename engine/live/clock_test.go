package live

import (
	"testing"
	"testing/synctest"
	"time"
)

// wall is a wall clock that the test sets.
type wall struct{ t time.Time }

func (w *wall) now() time.Time { return w.t }

func (w *wall) pass(d time.Duration) { w.t = w.t.Add(d) }

func TestClockSpeedAndPause(t *testing.T) {
	w := &wall{time.Unix(1, 0)}
	c := newClock(2, w.now)
	w.pass(time.Second)
	equal(t, "at speed 2", c.Now(), 2000)
	d, changed, ok := c.Until(3000)
	if d != 500*time.Millisecond || !ok {
		t.Errorf("until 3000: %v, %v", d, ok)
	}
	c.SetSpeed(4)
	<-changed
	d, changed, _ = c.Until(3000)
	equal(t, "at speed 4", d, 250*time.Millisecond)
	c.SetSpeed(0)
	c.SetSpeed(-1)
	equal(t, "speed", c.Speed(), 4)
	c.Pause()
	<-changed
	w.pass(time.Second)
	equal(t, "paused", c.Now(), 2000)
	_, changed, ok = c.Until(3000)
	if ok || !c.Paused() {
		t.Error("the clock is not paused")
	}
	c.Resume()
	<-changed
	w.pass(100 * time.Millisecond)
	equal(t, "resumed", c.Now(), 2400)
}

func TestClockAbsorbsGaps(t *testing.T) {
	w := &wall{time.Unix(1, 0)}
	c := newClock(1, w.now)
	w.pass(5 * time.Second)
	equal(t, "without users any time counts", c.Now(), 5000)
	c.hold()
	defer c.release()
	w.pass(900 * time.Millisecond)
	equal(t, "a short gap", c.Now(), 5900)
	w.pass(30 * time.Second)
	equal(t, "a stop", c.Now(), 5900)
	equal(t, "absorbed", c.Absorbed(), 30*time.Second)
	w.pass(10 * time.Millisecond)
	equal(t, "after it", c.Now(), 5910)
	c.Pause()
	w.pass(30 * time.Second)
	c.Resume()
	equal(t, "a stop while paused", c.Now(), 5910)
	w.pass(30 * time.Second)
	c.Pause()
	equal(t, "pause after a stop", c.Now(), 5910)
}

// A clock that nobody asks for the time looks at the wall clock by itself, as long as it has users.
func TestClockInUseSeesThatTimePasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewClock(1)
		c.hold()
		c.hold()
		c.release()
		time.Sleep(time.Hour)
		equal(t, "time", c.Now(), 3600*1000)
		equal(t, "absorbed", c.Absorbed(), 0)
		c.release()
	})
}
