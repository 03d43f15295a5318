package trace

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// LineError is a line of a file that cannot be used.
type LineError struct {
	File   string
	Line   int // from 1
	Reason string
}

func (e *LineError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Reason) }

// lines reads a file line by line, compressed with gzip or not. Lines may be of any length.
type lines struct {
	name   string
	file   *os.File
	reader *bufio.Reader
	long   []byte // a line that did not fit the reader's buffer
	number int    // of the line read last
	text   []byte // of the line read last, without its end and surrounding space
}

const lineBuffer = 1 << 16

func openLines(path string) (*lines, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		f.Close()
		return nil, fmt.Errorf("trace: %s is a directory", path)
	}
	l := &lines{name: path, file: f, reader: bufio.NewReaderSize(f, lineBuffer)}
	if magic, _ := l.reader.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := newGunzip(l.reader)
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("trace: %s: %w", path, err)
		}
		l.reader = bufio.NewReaderSize(z, lineBuffer)
	}
	if mark, _ := l.reader.Peek(3); bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
		l.reader.Discard(3)
	}
	return l, nil
}

func (l *lines) close() { l.file.Close() }

// next moves to the next line that is not blank. It returns false at the end of the file.
func (l *lines) next() (bool, error) {
	for {
		text, err := l.read()
		if err != nil && !errors.Is(err, io.EOF) {
			return false, fmt.Errorf("trace: %s:%d: %w", l.name, l.number+1, err)
		}
		if err != nil && len(text) == 0 {
			return false, nil
		}
		l.number++
		if l.text = bytes.TrimSpace(text); len(l.text) > 0 {
			return true, nil
		}
	}
}

func (l *lines) read() ([]byte, error) {
	text, err := l.reader.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return text, err
	}
	l.long = append(l.long[:0], text...)
	for errors.Is(err, bufio.ErrBufferFull) {
		text, err = l.reader.ReadSlice('\n')
		l.long = append(l.long, text...)
	}
	return l.long, err
}

// wrong returns an error about the present line.
func (l *lines) wrong(format string, args ...any) error {
	return &LineError{File: l.name, Line: l.number, Reason: fmt.Sprintf(format, args...)}
}
