package quicline

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"regexp"

	"github.com/google/uuid"
)

// version is the only version of the protocol.
const version = 3

// Home says where the answer to a request is expected.
type Home struct {
	Version      int       `json:"version"`
	Address      string    `json:"address"` // ip:port
	Frontend     uuid.UUID `json:"frontend_id"`
	Registration uuid.UUID `json:"registration_id"`
	RequestID    string    `json:"request_id"`
	Certificate  string    `json:"certificate_sha256"` // of the frontend, in hexadecimal digits
}

var sum = regexp.MustCompile(`^[0-9a-f]{64}$`)

// ParseHome reads the connection info of a request.
func ParseHome(info string) (Home, error) {
	var h Home
	if err := json.Unmarshal([]byte(info), &h); err != nil {
		return h, fmt.Errorf("control message: connection info: %w", err)
	}
	if h.Version != version {
		return h, fmt.Errorf("control message: version of the QUIC transport must be %d, got %d", version, h.Version)
	}
	if _, err := netip.ParseAddrPort(h.Address); err != nil {
		return h, fmt.Errorf("control message: return address must be ip:port, got %q", h.Address)
	}
	if !sum.MatchString(h.Certificate) {
		return h, fmt.Errorf("control message: certificate_sha256 must be 64 hexadecimal digits, got %q", h.Certificate)
	}
	return h, nil
}
