package zmtp

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"
)

const greetingBytes = 64

// greeting is what both sides send first: signature, version 3.0, mechanism NULL. Announcing 3.0 makes newer peers
// send subscriptions in the form that all versions understand.
var greeting = [greetingBytes]byte{0: 0xff, 9: 0x7f, 10: 3, 12: 'N', 13: 'U', 14: 'L', 15: 'L'}

// handshake opens the protocol as a socket of type self with a peer that must be of one of the accepted types. The
// caller limits its time by a deadline on the connection.
func handshake(w io.Writer, r *frameReader, self string, accepted []string) error {
	if _, err := w.Write(greeting[:]); err != nil {
		return err
	}
	if err := readGreeting(r); err != nil {
		return err
	}
	if _, err := w.Write(appendCommand(nil, "READY", appendReady(nil, self))); err != nil {
		return err
	}
	flags, body, err := r.next()
	if err != nil {
		return err
	}
	if flags&flagCommand == 0 {
		return fmt.Errorf("%w: message before READY", errGarbage)
	}
	name, data, err := splitCommand(body)
	if err != nil {
		return err
	}
	if name != "READY" {
		return fmt.Errorf("%w: command %q instead of READY", errGarbage, name)
	}
	kind, err := socketType(data)
	if err != nil {
		return err
	}
	if !slices.Contains(accepted, kind) {
		return fmt.Errorf("%w: socket type %q, must be one of %s", errGarbage, kind, strings.Join(accepted, ", "))
	}
	return nil
}

func readGreeting(r *frameReader) error {
	var peer [greetingBytes]byte
	// The signature is judged as soon as it is there: a peer of another protocol may never send the rest.
	if _, err := io.ReadFull(r.in, peer[:10]); err != nil {
		return err
	}
	if peer[0] != 0xff || peer[9] != 0x7f {
		return fmt.Errorf("%w: signature % x", errGarbage, peer[:10])
	}
	if _, err := io.ReadFull(r.in, peer[10:]); err != nil {
		return err
	}
	if peer[10] < 3 {
		return fmt.Errorf("%w: version %d, must be 3 or later", errGarbage, peer[10])
	}
	if mechanism := strings.TrimRight(string(peer[12:32]), "\x00"); mechanism != "NULL" {
		return fmt.Errorf("%w: security mechanism %q, must be NULL", errGarbage, mechanism)
	}
	return nil
}

// appendReady adds the properties of a READY command. An empty identity lets the other side choose one.
func appendReady(b []byte, self string) []byte {
	b = appendProperty(b, "Socket-Type", self)
	if self == "ROUTER" {
		b = appendProperty(b, "Identity", "")
	}
	return b
}

func appendProperty(b []byte, name, value string) []byte {
	b = append(append(b, byte(len(name))), name...)
	return append(binary.BigEndian.AppendUint32(b, uint32(len(value))), value...)
}

// socketType finds the peer's socket type among the properties of its READY command.
func socketType(data []byte) (string, error) {
	for len(data) > 0 {
		n := int(data[0])
		if len(data) < 1+n+4 {
			break
		}
		name := string(data[1 : 1+n])
		size := binary.BigEndian.Uint32(data[1+n:])
		data = data[1+n+4:]
		if uint64(size) > uint64(len(data)) {
			break
		}
		if strings.EqualFold(name, "Socket-Type") {
			return string(data[:size]), nil
		}
		data = data[size:]
	}
	return "", fmt.Errorf("%w: READY without socket type", errGarbage)
}
