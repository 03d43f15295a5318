// Package recording keeps what the screen shows of a run in a file, and plays it. A file is a header and a row of
// blocks, each compressed and with a checksum, so that what was written before a crash can be read. docs/recording.md
// describes every byte.
package recording

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"mockbench/engine"
)

// Version is the version of the format. A reader refuses newer ones.
const Version = 1

// magic is what every recording begins with; its last bytes show transfers that change line ends.
const magic = "\x89MBREC\r\n"

// Sizes in bytes.
const (
	preambleSize  = len(magic) + 12 // version, 4 reserved, length and checksum of the header
	blockHeadSize = 32
	maxHeader     = 1 << 20
	maxPacked     = 1 << 26 // of a block
	maxPlain      = 1 << 27 // of a block, unpacked
)

// Header says what was recorded.
type Header struct {
	Program  string    `json:"program"`
	Started  time.Time `json:"started"`
	Mode     string    `json:"mode"` // "live" or "replay"
	Model    string    `json:"model"`
	Backend  string    `json:"backend"` // as the screen calls the engines
	NoDelay  bool      `json:"no_delay,omitempty"`
	Routing  bool      `json:"routing,omitempty"` // there are placements
	Window   bool      `json:"window,omitempty"`  // there are latencies
	Sides    bool      `json:"sides,omitempty"`   // two fleets were compared
	Workers  []string  `json:"workers"`
	Settings []string  `json:"settings,omitempty"` // the command line
}

// End is the last thing in a recording that was closed in order.
type End struct {
	Dropped uint64          `json:"dropped"`           // passes, events and moments of requests that the recorder missed
	Summary string          `json:"summary,omitempty"` // for people
	Report  json.RawMessage `json:"report,omitempty"`
}

// Errors of files that cannot be read at all.
var (
	ErrForeign = errors.New("not a recording of mockbench")
	ErrNewer   = errors.New("written by a newer version of mockbench")
	ErrEmpty   = errors.New("the recording holds nothing: it ended before its first block was complete")
	ErrDamaged = errors.New("the recording is damaged")
)

// flags of a block.
type flags uint32

const (
	flagAlone   flags = 1 << iota // the first moment of the block needs nothing before it
	flagPreempt                   // a request lost its blocks
	flagNote                      // a setting changed
	flagEnd                       // the payload is an End
)

// blockHead is the fixed part of a block.
type blockHead struct {
	length      uint32 // of the payload
	sum         uint32 // CRC-32C of what follows it
	first, last engine.Time
	moments     uint32
	flags       flags
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendBlock appends a block; head.length and head.sum are computed.
func appendBlock(dst []byte, head blockHead, payload []byte) []byte {
	start := len(dst)
	le := binary.LittleEndian
	dst = le.AppendUint32(dst, uint32(len(payload)))
	dst = le.AppendUint32(dst, 0)
	dst = le.AppendUint64(dst, bitsOf(head.first))
	dst = le.AppendUint64(dst, bitsOf(head.last))
	dst = le.AppendUint32(dst, head.moments)
	dst = le.AppendUint32(dst, uint32(head.flags))
	dst = append(dst, payload...)
	le.PutUint32(dst[start+4:], crc32.Checksum(dst[start+8:], castagnoli))
	return dst
}

func parseHead(b []byte) blockHead {
	le := binary.LittleEndian
	return blockHead{length: le.Uint32(b), sum: le.Uint32(b[4:]),
		first: timeOf(le.Uint64(b[8:])), last: timeOf(le.Uint64(b[16:])), moments: le.Uint32(b[24:]), flags: flags(le.Uint32(b[28:]))}
}

// appendPreamble appends what stands before the first block.
func appendPreamble(dst []byte, h Header) ([]byte, error) {
	text, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	if len(text) > maxHeader {
		return nil, fmt.Errorf("the header takes %d bytes, at most %d are possible", len(text), maxHeader)
	}
	le := binary.LittleEndian
	dst = append(dst, magic...)
	dst = le.AppendUint16(dst, Version)
	dst = le.AppendUint16(dst, 0)
	dst = le.AppendUint32(dst, uint32(len(text)))
	dst = le.AppendUint32(dst, crc32.Checksum(text, castagnoli))
	return append(dst, text...), nil
}

// header reads the preamble. take returns the next bytes of the file.
func header(take func(n int) ([]byte, error)) (h Header, err error) {
	fixed, err := take(preambleSize)
	if err != nil || string(fixed[:len(magic)]) != magic {
		return h, ErrForeign
	}
	le := binary.LittleEndian
	fixed = fixed[len(magic):]
	version, size, sum := le.Uint16(fixed), le.Uint32(fixed[4:]), le.Uint32(fixed[8:])
	switch {
	case version > Version:
		return h, fmt.Errorf("%w: format version %d, this program reads up to %d", ErrNewer, version, Version)
	case version == 0 || size > maxHeader:
		return h, fmt.Errorf("%w: its header is wrong", ErrDamaged)
	}
	text, err := take(int(size))
	switch {
	case err != nil:
		return h, ErrEmpty
	case crc32.Checksum(text, castagnoli) != sum || json.Unmarshal(text, &h) != nil:
		return h, fmt.Errorf("%w: its header is wrong", ErrDamaged)
	}
	return h, nil
}
