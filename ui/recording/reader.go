package recording

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"sort"

	"github.com/klauspost/compress/zstd"

	"mockbench/engine"
	"mockbench/ui"
)

// Recording is an open recording. It may be read from several goroutines at once.
type Recording struct {
	Header Header
	End    *End   // nil if the recording was not closed in order
	Torn   string // what of the file cannot be read, and why; empty if all can

	file     io.ReaderAt
	close    func() error
	segments []segment
	zip      *zstd.Decoder
}

// block is where a block lies.
type block struct {
	blockHead
	payload int64
}

// maxTime is more than any run lasts, in milliseconds.
const maxTime engine.Time = 1e13

// segment is a row of blocks of which the first stands alone.
type segment struct {
	blocks      []block
	first, last engine.Time
}

// Open opens a recording. What cannot be read at its end, because the writer was killed or the file was damaged, is left
// out and told in Torn. Errors wrap ErrForeign, ErrNewer, ErrEmpty or ErrDamaged, or come from the file.
func Open(path string) (*Recording, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a file", path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	r, err := Read(f, info.Size())
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	r.close = f.Close
	return r, nil
}

// Read reads a recording of so many bytes.
func Read(file io.ReaderAt, size int64) (*Recording, error) {
	r := &Recording{file: file, close: func() error { return nil }}
	at := int64(0)
	take := func(n int) ([]byte, error) {
		if int64(n) > size-at {
			return nil, io.ErrUnexpectedEOF
		}
		b := make([]byte, n)
		_, err := file.ReadAt(b, at)
		if errors.Is(err, io.EOF) {
			err = nil // at the very end
		}
		at += int64(n)
		return b, err
	}
	var err error
	if r.Header, err = header(take); err != nil {
		return nil, err
	}
	if r.zip, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxPlain)); err != nil {
		return nil, err
	}
	for at < size && r.End == nil {
		start := at
		if why := r.index(take, &at); why != "" {
			r.Torn = fmt.Sprintf("%s at byte %d: the last %d bytes are left out", why, start, size-start)
			break
		}
	}
	switch {
	case len(r.segments) == 0:
		return nil, ErrEmpty
	case r.Torn == "" && r.End == nil:
		r.Torn = "the recording was not closed: it ends with its last complete block"
	case r.Torn == "" && at < size:
		r.Torn = fmt.Sprintf("%d bytes follow on the end", size-at)
	}
	return r, nil
}

// index notes the next block and returns what is wrong with it.
func (r *Recording) index(take func(int) ([]byte, error), at *int64) (why string) {
	fixed, err := take(blockHeadSize)
	if err != nil {
		return "an incomplete block"
	}
	b := block{parseHead(fixed), *at}
	if b.length > maxPacked {
		return "a damaged block"
	}
	payload, err := take(int(b.length))
	if err != nil {
		return "an incomplete block"
	}
	if crc32.Update(crc32.Checksum(fixed[8:], castagnoli), castagnoli, payload) != b.sum {
		return "a damaged block"
	}
	switch n := len(r.segments); {
	case b.flags&flagEnd != 0:
		r.End = &End{}
		if plain, err := r.zip.DecodeAll(payload, nil); err != nil || json.Unmarshal(plain, r.End) != nil {
			r.End = nil
			return "a damaged end"
		}
	case !(b.last >= b.first) || !(b.first >= 0) || b.last > maxTime || b.moments == 0 ||
		n > 0 && !(b.first >= r.segments[n-1].last):
		return "a block of an impossible time"
	case b.flags&flagAlone != 0:
		r.segments = append(r.segments, segment{[]block{b}, b.first, b.last})
	case n == 0:
		return "a block without a beginning"
	default:
		s := &r.segments[n-1]
		s.blocks, s.last = append(s.blocks, b), b.last
	}
	return ""
}

// Close closes the file.
func (r *Recording) Close() error { return r.close() }

// Span returns the times of the first and the last moment.
func (r *Recording) Span() (first, last engine.Time) {
	return r.segments[0].first, r.segments[len(r.segments)-1].last
}

// segmentAt returns the index of the segment that a time lies in.
func (r *Recording) segmentAt(t engine.Time) int {
	n := sort.Search(len(r.segments), func(i int) bool { return r.segments[i].first > t })
	return max(n-1, 0)
}

// moments decodes a segment.
func (r *Recording) moments(n int) ([]ui.Moment, error) {
	s := &r.segments[n]
	var out []ui.Moment
	c := newCoder(true)
	for _, b := range s.blocks {
		payload := make([]byte, b.length)
		if _, err := r.file.ReadAt(payload, b.payload); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		var err error
		if c.data, err = r.zip.DecodeAll(payload, nil); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		for range b.moments {
			var m ui.Moment
			c.spare = maxBlocks
			c.moment(&m)
			if c.err == nil {
				c.err = r.check(&m, b, len(out) == 0)
			}
			if c.err != nil {
				return nil, fmt.Errorf("%w: a block at byte %d: %w", ErrDamaged, b.payload-blockHeadSize, c.err)
			}
			out = append(out, m)
		}
	}
	return out, nil
}

// check reports what a screen could not show.
func (r *Recording) check(m *ui.Moment, b block, first bool) error {
	if !(m.At >= b.first && m.At <= b.last) || first && !m.Alone {
		return errFormat
	}
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Worker < 0 || p.Worker >= len(r.Header.Workers) {
			return errFormat
		}
	}
	return nil
}

// Each calls f with every moment, in order, until it returns an error.
func (r *Recording) Each(f func(m *ui.Moment) error) error {
	for n := range r.segments {
		list, err := r.moments(n)
		if err != nil {
			return err
		}
		for i := range list {
			if err := f(&list[i]); err != nil {
				return err
			}
		}
	}
	return nil
}
