package live

import "time"

// alarm is a timer that is set again and again by one goroutine. It may ring once for an earlier setting, so whoever
// waits for it looks at the clock afterwards.
type alarm interface {
	set(d time.Duration)
	rings() <-chan time.Time
	close()
}

// runtimeAlarm is a timer of the Go runtime. It rings up to a millisecond late where the runtime waits for it in a
// system call that counts milliseconds.
type runtimeAlarm struct{ timer *time.Timer }

func newRuntimeAlarm() alarm {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return runtimeAlarm{t}
}

func (a runtimeAlarm) set(d time.Duration)     { a.timer.Reset(d) }
func (a runtimeAlarm) rings() <-chan time.Time { return a.timer.C }
func (a runtimeAlarm) close()                  { a.timer.Stop() }
