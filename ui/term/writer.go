package term

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"time"

	"mockbench/engine/spawn"
	"mockbench/ui/grid"
)

// File is an output that may be a terminal.
type File interface {
	io.ReadWriteCloser
	Fd() uintptr
}

const (
	// frameGap is the shortest time between two frames, however many are published.
	frameGap = 15 * time.Millisecond
	// maxQueued bounds what the terminal library may write while the terminal does not read.
	maxQueued = 64 << 10
)

// Writer stands between the terminal library and the terminal. It sends grids as differences to what is shown, drops
// the library's own frames, and passes everything else on. Nothing here waits for the terminal: a goroutine of its own
// writes, and of the frames published meanwhile it sends only the newest.
type Writer struct {
	out     File
	looks   []grid.Look
	onError func(error)
	wake    chan struct{} // holds one element while there is something to write
	done    chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex
	idle    *sync.Cond // signalled when everything has been written
	queue   []byte     // the library's sequences not yet written
	next    *grid.Grid // newest frame
	pending bool       // next has not been written
	redraw  bool       // next must be drawn from a cleared screen
	alt     bool       // the alternate screen is on: frames may be drawn
	busy    bool
	closed  bool
	frames  bool // the library draws
	written uint64

	shown *grid.Grid // belongs to the goroutine
	buf   []byte
}

// NewWriter starts a writer to out with the looks of the grid's styles. onError is called once, with the first error
// of a write; it may be nil.
func NewWriter(out File, looks []grid.Look, onError func(error)) *Writer {
	w := &Writer{out: out, looks: looks, onError: onError, wake: make(chan struct{}, 1), done: make(chan struct{}),
		next: grid.New(0, 0), shown: grid.New(0, 0)}
	w.idle = sync.NewCond(&w.mu)
	spawn.Go("screen writer", w.run)
	return w
}

// Publish makes g the frame to show; the writer keeps a copy. With full the screen is cleared and drawn anew.
func (w *Writer) Publish(g *grid.Grid, full bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next.CopyFrom(g)
	w.pending = true
	w.redraw = w.redraw || full
	w.signal()
}

// Write takes what the terminal library writes. It never blocks and never fails.
func (w *Writer) Write(p []byte) (int, error) {
	const home = "\x1b[H"
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.frames && bytes.HasPrefix(p, []byte(home)) && len(p) > 8 {
		return len(p), nil // a frame of the library: ours are published
	}
	if w.closed || len(w.queue) > maxQueued {
		return len(p), nil
	}
	text := string(p)
	switch {
	case strings.Contains(text, "\x1b[?1049h"):
		w.alt, w.redraw = true, true
	case strings.Contains(text, "\x1b[?1049l"):
		w.alt = false
	case strings.Contains(text, "2J"), strings.Contains(text, "2K"):
		w.redraw = true
	}
	w.queue = append(w.queue, p...)
	w.signal()
	return len(p), nil
}

// PassFrames lets the library's own frames through, for a screen that publishes none.
func (w *Writer) PassFrames() {
	w.mu.Lock()
	w.frames = true
	w.mu.Unlock()
}

func (w *Writer) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *Writer) run() {
	defer close(w.done)
	for range w.wake {
		for {
			out, frame, closed := w.take()
			if len(out) == 0 {
				if closed {
					return
				}
				break
			}
			_, err := w.out.Write(out)
			w.mu.Lock()
			w.busy = false
			w.written += uint64(len(out))
			w.idle.Broadcast()
			w.mu.Unlock()
			if err != nil {
				w.fail(err)
				return
			}
			if frame && !closed {
				time.Sleep(frameGap)
			}
		}
	}
}

// take composes what to write now: the library's sequences first, then the newest frame. It reports whether a frame
// is in it.
func (w *Writer) take() (out []byte, frame, closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf = append(w.buf[:0], w.queue...)
	w.queue = w.queue[:0]
	if w.pending && w.alt && !w.closed {
		before := len(w.buf)
		w.appendFrame()
		w.pending = false
		frame = len(w.buf) > before
	}
	w.busy = len(w.buf) > 0
	if !w.busy {
		w.idle.Broadcast()
	}
	return w.buf, frame, w.closed
}

// appendFrame appends the difference between next and shown, as one synchronised update.
func (w *Writer) appendFrame() {
	const begin, end = "\x1b[?2026h", "\x1b[?2026l"
	start := len(w.buf)
	w.buf = append(w.buf, begin...)
	if w.redraw || w.shown.W != w.next.W || w.shown.H != w.next.H {
		w.buf = append(w.buf, "\x1b[m\x1b[H\x1b[2J"...)
		w.shown.Resize(w.next.W, w.next.H)
		w.redraw = false
	}
	empty := len(w.buf)
	w.buf = grid.AppendDiff(w.buf, w.shown, w.next, w.looks)
	w.shown.CopyFrom(w.next)
	if len(w.buf) == empty && empty == start+len(begin) {
		w.buf = w.buf[:start]
		return
	}
	w.buf = append(w.buf, end...)
}

func (w *Writer) fail(err error) {
	w.mu.Lock()
	w.closed = true
	w.idle.Broadcast()
	w.mu.Unlock()
	if w.onError != nil {
		w.onError(err)
	}
}

// Flush waits until everything has been written, at most for the limit, and reports whether it has.
func (w *Writer) Flush(limit time.Duration) bool {
	deadline := time.Now().Add(limit)
	timer := time.AfterFunc(limit, w.idle.Broadcast)
	defer timer.Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	for (w.busy || len(w.queue) > 0) && !w.closed {
		if !time.Now().Before(deadline) {
			return false
		}
		w.idle.Wait()
	}
	return !w.busy
}

// Stop ends the writer: no more frames, and what the library has said so far is written. It reports whether that was
// done within the limit.
func (w *Writer) Stop(limit time.Duration) bool {
	w.Abandon()
	w.signal()
	select {
	case <-w.done:
		return true
	case <-time.After(limit):
		return false
	}
}

// Abandon makes the writer draw nothing more. It does not wait.
func (w *Writer) Abandon() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
}

// Written returns the bytes sent to the terminal so far.
func (w *Writer) Written() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.written
}

// Read reads from the terminal. With Fd and Close it makes the library see a terminal in the writer.
func (w *Writer) Read(p []byte) (int, error) { return w.out.Read(p) }

// Fd returns the descriptor of the terminal.
func (w *Writer) Fd() uintptr { return w.out.Fd() }

// Close does nothing: the terminal stays open, and Stop ends the writer.
func (w *Writer) Close() error { return nil }
