// Package zmtp is the listening side of ZeroMQ's TCP protocol (ZMTP 3.0, NULL security): a publisher whose
// subscribers cannot disturb each other, and a router that answers requests.
//
// Every peer has its own goroutines, its own bounded queue and its own handshake with a time limit, so that a peer
// that stalls, stays silent or sends garbage costs nobody else a message and the sender no time. A message is encoded
// once and its bytes are shared by all peers that get it.
package zmtp

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Bits of the first byte of a frame.
const (
	flagMore    = 0x01
	flagLong    = 0x02
	flagCommand = 0x04
	flagKnown   = flagMore | flagLong | flagCommand
)

// Limits on what a peer may send; peers of a publisher or router have no reason for more.
const (
	maxFrameBytes    = 64 << 10
	maxMessageFrames = 16
)

var errGarbage = errors.New("zmtp: peer does not follow the protocol")

// Message returns the bytes of one message of the given frames, at least one.
func Message(frames ...[]byte) []byte {
	size := 0
	for _, f := range frames {
		size += FrameSize(len(f))
	}
	b := make([]byte, 0, size)
	for i, f := range frames {
		b = append(AppendFrameHead(b, len(f), i < len(frames)-1), f...)
	}
	return b
}

// FrameSize returns the bytes a frame of n bytes of content takes.
func FrameSize(n int) int {
	if n > 255 {
		return 9 + n
	}
	return 2 + n
}

// AppendFrameHead adds the head of a frame of n bytes of content, which the caller appends; more says that another
// frame of the same message follows.
func AppendFrameHead(b []byte, n int, more bool) []byte {
	var flags byte
	if more {
		flags = flagMore
	}
	return appendHead(b, flags, n)
}

func appendHead(b []byte, flags byte, n int) []byte {
	if n > 255 {
		return binary.BigEndian.AppendUint64(append(b, flags|flagLong), uint64(n))
	}
	return append(b, flags, byte(n))
}

// appendCommand adds a command frame: the length of its name, the name, its data.
func appendCommand(b []byte, name string, data []byte) []byte {
	b = appendHead(b, flagCommand, 1+len(name)+len(data))
	b = append(append(b, byte(len(name))), name...)
	return append(b, data...)
}

// frameReader reads the frames of one peer.
type frameReader struct {
	in   *bufio.Reader
	body []byte // of the last frame
}

func newFrameReader(r io.Reader) *frameReader {
	return &frameReader{in: bufio.NewReaderSize(r, 512)}
}

// next reads one frame. The body is valid until the next call. The declared length is checked before anything is
// allocated for it.
func (r *frameReader) next() (flags byte, body []byte, err error) {
	if flags, err = r.in.ReadByte(); err != nil {
		return 0, nil, err
	}
	if flags&^flagKnown != 0 || flags&flagCommand != 0 && flags&flagMore != 0 {
		return 0, nil, fmt.Errorf("%w: frame flags %#02x", errGarbage, flags)
	}
	size, err := r.size(flags)
	if err != nil {
		return 0, nil, err
	}
	if size > maxFrameBytes {
		return 0, nil, fmt.Errorf("%w: frame of %d bytes, at most %d are accepted", errGarbage, size, maxFrameBytes)
	}
	if uint64(cap(r.body)) < size {
		r.body = make([]byte, size)
	}
	r.body = r.body[:size]
	_, err = io.ReadFull(r.in, r.body)
	return flags, r.body, err
}

func (r *frameReader) size(flags byte) (uint64, error) {
	if flags&flagLong == 0 {
		n, err := r.in.ReadByte()
		return uint64(n), err
	}
	var b [8]byte
	_, err := io.ReadFull(r.in, b[:])
	return binary.BigEndian.Uint64(b[:]), err
}

// splitCommand returns the name and data of a command frame.
func splitCommand(body []byte) (name string, data []byte, err error) {
	if len(body) == 0 || len(body) < 1+int(body[0]) {
		return "", nil, fmt.Errorf("%w: command without name", errGarbage)
	}
	n := 1 + int(body[0])
	return string(body[1:n]), body[n:], nil
}
