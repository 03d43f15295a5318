package live

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"mockbench/engine/spawn"
)

// fileAlarm is a timer of the kernel that the runtime's poller waits for like for a socket, which is exact to some
// tens of microseconds.
type fileAlarm struct {
	fd     int
	file   *os.File
	c      chan time.Time
	ended  chan struct{}
	buffer [8]byte // number of expirations
}

// newAlarm returns the best timer there is.
func newAlarm() alarm {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return newRuntimeAlarm()
	}
	a := &fileAlarm{fd: fd, file: os.NewFile(uintptr(fd), "timer"), c: make(chan time.Time, 1), ended: make(chan struct{})}
	spawn.Go("timer", a.listen)
	return a
}

func (a *fileAlarm) listen() {
	defer close(a.ended)
	for {
		if _, err := a.file.Read(a.buffer[:]); err != nil {
			return
		}
		a.ring()
	}
}

func (a *fileAlarm) set(d time.Duration) {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(max(d, 1)))}
	if unix.TimerfdSettime(a.fd, 0, &spec, nil) != nil {
		a.ring() // early is harmless, never is not
	}
}

func (a *fileAlarm) ring() {
	select {
	case a.c <- time.Time{}:
	default:
	}
}

func (a *fileAlarm) rings() <-chan time.Time { return a.c }

func (a *fileAlarm) close() {
	a.file.Close()
	<-a.ended
}
