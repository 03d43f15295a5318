// Package quicline carries answers to frontends over QUIC.
//
// A worker keeps one [bundle] of connections to each frontend: eight for the mass of the data and one for what must not
// wait behind it, each with streams called lanes. Every answer is registered under an id that the frontend chose, and
// its frames share two lanes with other answers, one of either kind.
package quicline

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/google/uuid"
	"github.com/zeebo/xxh3"
)

// Kind says what a frame is.
type Kind uint8

// The kinds of frames.
const (
	Prologue    Kind = 1
	Data        Kind = 2
	Error       Kind = 3
	End         Kind = 4
	Stop        Kind = 5
	Kill        Kind = 6
	Reset       Kind = 7
	FirstData   Kind = 8
	PriorityEnd Kind = 9
	Bundle      Kind = 10
	Register    Kind = 11
	Registered  Kind = 12
)

const (
	headSize   = 1 + 16 + 4
	maxPayload = 32 << 20 // bytes

	// lanes is the number of lanes of either kind in a bundle.
	lanes = 8
)

// Lane returns the number of the lanes of a request.
func Lane(requestID string) int { return int(xxh3.HashString(requestID) % lanes) }

// AppendFrame adds a frame and returns the longer slice.
func AppendFrame(b []byte, kind Kind, id uuid.UUID, payload []byte) []byte {
	b = append(b, byte(kind))
	b = append(b, id[:]...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
	return append(b, payload...)
}

// readFrame reads a frame of a frontend, none of which has a payload.
func readFrame(r io.Reader) (kind Kind, id uuid.UUID, err error) {
	var head [headSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, id, err
	}
	copy(id[:], head[1:])
	if n := binary.BigEndian.Uint32(head[17:]); n != 0 {
		return 0, id, fmt.Errorf("frame of kind %d has %d bytes, want none", head[0], n)
	}
	return Kind(head[0]), id, nil
}
