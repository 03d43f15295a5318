package bootstrap

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// preface begins a connection of a destination: a magic word, version 1 and no flags.
var preface = [8]byte{'D', 'M', 'H', 'F', 1, 0, 0, 0}

// errProtocol is wrapped by errors about what the other side sent.
var errProtocol = errors.New("invalid handoff frame")

type frameBody struct {
	Identity Identity        `json:"identity"`
	Message  json.RawMessage `json:"message"`
}

// appendFrame adds a frame to b. Messages come from this package, and all of them can be encoded.
func appendFrame(b []byte, id Identity, m Message) []byte {
	message, err := compact(encodable(m))
	if err == nil {
		message, err = compact(frameBody{id, message})
	}
	if err != nil {
		panic(fmt.Sprintf("bootstrap: encoding %T: %v", m, err))
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(message)))
	return append(b, message...)
}

// readFrame reads one frame. Errors of the connection are returned as they are, others wrap errProtocol.
func readFrame(r io.Reader) (id Identity, m Message, err error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return id, nil, err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n == 0 || n > MaxFrame {
		return id, nil, fmt.Errorf("%w: length %d, allowed: 1 to %d", errProtocol, n, MaxFrame)
	}
	payload := make([]byte, n)
	if _, err := io.ReadFull(r, payload); err != nil {
		return id, nil, err
	}
	var f frameBody
	if err = json.Unmarshal(payload, &f); err == nil {
		m, err = decodeMessage(f.Message)
	}
	if err != nil {
		return id, nil, fmt.Errorf("%w: %v", errProtocol, err)
	}
	return f.Identity, m, nil
}
