package recording

import (
	"encoding/json"
	"math"
	"os"

	"github.com/klauspost/compress/zstd"

	"mockbench/engine"
	"mockbench/ui"
)

func bitsOf(t engine.Time) uint64 { return math.Float64bits(float64(t)) }

func timeOf(bits uint64) engine.Time { return engine.Time(math.Float64frombits(bits)) }

// largeBlock is the size in bytes from which on a block is written without waiting for Flush.
const largeBlock = 1 << 22

// Writer writes a recording. The first error stays: what comes after it is not written.
type Writer struct {
	file *os.File
	zip  *zstd.Encoder
	code *coder
	head blockHead
	out  []byte
	err  error
	size int64
}

// Create makes a recording, in place of what the file held.
func Create(path string, h Header) (*Writer, error) {
	preamble, err := appendPreamble(nil, h)
	if err != nil {
		return nil, err
	}
	zip, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(1<<20))
	if err != nil {
		return nil, err
	}
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	w := &Writer{file: file, zip: zip, code: newCoder(false)}
	if w.write(preamble); w.err != nil {
		file.Close()
		return nil, w.err
	}
	return w, nil
}

func (w *Writer) write(b []byte) {
	if w.err != nil {
		return
	}
	n, err := w.file.Write(b)
	w.size, w.err = w.size+int64(n), err
}

// Size returns the bytes written so far.
func (w *Writer) Size() int64 { return w.size }

// Add takes a moment in. A moment that stands alone begins a new block.
func (w *Writer) Add(m *ui.Moment) error {
	if m.Alone {
		w.Flush()
	}
	if w.head.moments == 0 {
		w.head.first = m.At
		if m.Alone {
			w.head.flags |= flagAlone
		}
	}
	w.head.moments++
	w.head.last = m.At
	if len(m.Notes) > 0 {
		w.head.flags |= flagNote
	}
	for i := range m.Parts {
		for k := range m.Parts[i].Batch.Frames {
			if m.Parts[i].Batch.Frames[k].Preempted > 0 {
				w.head.flags |= flagPreempt
			}
		}
	}
	if w.code.moment(m); w.err == nil {
		w.err = w.code.err
	}
	if len(w.code.data) >= largeBlock {
		return w.Flush()
	}
	return w.err
}

// Flush writes what has been taken in, in one piece.
func (w *Writer) Flush() error {
	if w.head.moments > 0 {
		w.block(w.code.data)
		w.code.data = w.code.data[:0]
	}
	return w.err
}

func (w *Writer) block(plain []byte) {
	packed := w.zip.EncodeAll(plain, nil)
	w.out = appendBlock(w.out[:0], w.head, packed)
	w.write(w.out)
	w.head = blockHead{}
}

// Close writes the end and closes the file.
func (w *Writer) Close(e End) error {
	last := w.head.last
	w.Flush()
	text, err := json.Marshal(e)
	if err == nil {
		w.head = blockHead{first: last, last: last, flags: flagEnd}
		w.block(text)
		err = w.err
	}
	if failure := w.file.Close(); err == nil {
		err = failure
	}
	return err
}
